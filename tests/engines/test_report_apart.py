"""Handing off over a database server whose report tables are locked by somebody else, or dropped."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from engine_support import SCOPE, Desk

from passdown.app.integrity import check_store
from support.places import ServerPlace

REPORT_TABLES = (
    "pc_handoff_report_projects",
    "pc_handoff_report_project_revisions",
    "pc_handoff_report_workstreams",
    "pc_handoff_report_workstream_revisions",
)
PATIENCE_S = 30


@contextmanager
def report_tables_locked(place: ServerPlace) -> Iterator[None]:
    """Nobody else reads or writes a table of the report while this is open; released when the connection ends."""
    with closing(place.server.connect(place.database)) as connection, closing(connection.cursor()) as cursor:
        if place.engine == "postgresql":
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {', '.join(REPORT_TABLES)} IN ACCESS EXCLUSIVE MODE")
        else:
            cursor.execute(f"LOCK TABLES {', '.join(f'{table} WRITE' for table in REPORT_TABLES)}")
        yield


def hands_off(url: str) -> tuple[list[int], str]:
    """Open, hand off twice, continue: the revisions there are, and the objective that continuing reads."""
    with Desk(url) as desk:
        desk.hand_off(SCOPE, objective="First")
        desk.hand_off(SCOPE, objective="Second")
        value = desk.call("continue_handoff", scope_id=SCOPE, target={"kind": "latest"}, confirm_scope=SCOPE)
        return desk.numbers(), value["content"]["objective"]


@pytest.mark.engines("postgresql", "mysql")
def test_report_tables_that_somebody_locks_keep_no_handoff_waiting(place: ServerPlace) -> None:
    """Catches: opening, a handoff or Continue that reads, writes or counts rows of the report's tables."""
    with ThreadPoolExecutor(1) as pool:
        with report_tables_locked(place):
            pending = pool.submit(hands_off, place.url)
            try:
                found = pending.result(timeout=PATIENCE_S)
            except TimeoutError:
                found = None
        assert found == ([2, 1], "Second")


@pytest.mark.engines("postgresql", "mysql")
def test_a_server_store_hands_off_without_the_tables_of_a_report_that_is_off(
    fresh_place: ServerPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: opening that misses the tables or makes them anew, and a check that wants them on a server."""
    monkeypatch.setenv("PASSDOWN_FEATURES_OFF", "report")
    fresh_place.open(create=True).close()
    for table in REPORT_TABLES:
        fresh_place.server.execute(f"DROP TABLE {table}", database=fresh_place.database)
    assert hands_off(fresh_place.url) == ([2, 1], "Second")
    assert check_store(fresh_place.url).ok
    sql = "SELECT table_name FROM information_schema.tables"
    names = {name for (name,) in fresh_place.rows(f"{sql} WHERE table_schema = {fresh_place.schema}")}
    assert "pd_handoff_heads" in names
    assert not names & set(REPORT_TABLES)
