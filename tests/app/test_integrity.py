"""The check of a whole store: silent on what the product writes, and loud on each thing that was changed behind it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from engine_support import Desk
from store_damages import DAMAGES, EVIDENCE, HEADS, PROJECTS, REVISIONS, WORKSTREAMS, S
from store_support import FIRST, SECOND, furnish, pages

from passdown.app import integrity
from passdown.app.integrity import Checked, check_store
from passdown.kernel.errors import PassdownError
from passdown.storage import Session, Store, open_store
from passdown.storage.backup import backup, restore
from support.places import FilePlace, Place

NAMES = [
    *("file", "schema", "values", "counters", "heads", "revisions", "evidence", "sources"),
    *("receipts", "test_runs", "projects", "workstreams", "tokens", "replays"),
]


def found(checked: Checked) -> dict[str, dict[str, int]]:
    """Check to code to count, of what is wrong."""
    return {
        check.name: {problem.code: problem.count for problem in check.problems}
        for check in checked.checks
        if not check.ok
    }


# --- nothing wrong ------------------------------------------------------------------------------------------------


def test_what_the_product_wrote_is_sound_and_survives_a_backup(
    place: Place, fresh_place: Place, tmp_path: Path
) -> None:
    """Catches: a check that is stricter than the product, one that reads nothing, and a backup after which a report
    has other bytes or digests."""
    with Desk(place.url) as desk:
        furnish(desk)
    before, rows = pages(place.url), place.everything()
    checked = check_store(place.target)
    assert (found(checked), checked.ok, checked.engine) == ({}, True, place.engine)
    examined = {check.name: check.examined for check in checked.checks}
    only_files = {"file": 1, "values": 98} if place.engine == "sqlite" else {}
    assert examined.pop("schema") >= 17
    assert examined == only_files | {
        "counters": 1,
        "heads": 3,
        "revisions": 5,
        "evidence": 6,
        "sources": 8,
        "receipts": 2,
        "test_runs": 1,
        "projects": 6,
        "workstreams": 6,
        "tokens": 2,
        "replays": 1,
    }
    assert place.everything() == rows
    backup(place.target, tmp_path / "copy.db")
    restore(tmp_path / "copy.db", fresh_place.target)
    restore(tmp_path / "copy.db", tmp_path / "new" / "passdown.db")
    for copy in (fresh_place, FilePlace(tmp_path / "copy.db"), FilePlace(tmp_path / "new" / "passdown.db")):
        assert check_store(copy.target).ok
        assert pages(copy.url) == before
    report = orjson.loads(before["shop json"])
    assert {item["workstream"]["scope_id"] for item in report["workstreams"]} == {FIRST, SECOND}
    assert set(before) >= {"shop json", "other json", "ungrouped markdown", FIRST, "tokens"}


def test_an_empty_store_is_sound(place: Place) -> None:
    """Catches: a check that needs rows."""
    checked = check_store(place.target)
    assert (found(checked), checked.ok) == ({}, True)
    if place.engine == "sqlite":
        assert [check.name for check in checked.checks] == NAMES


# --- each thing that can be wrong ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("furnished") / "passdown.db"
    with Desk(f"sqlite:///{path}") as desk:
        furnish(desk)
    return path


@pytest.fixture
def copy(furnished: Path, tmp_path: Path) -> FilePlace:
    """The furnished store without the triggers that keep its rows, so that it can be damaged by hand."""
    path = tmp_path / "passdown.db"
    shutil.copyfile(furnished, path)
    return FilePlace(path)


def damage(place: FilePlace, *statements: str) -> None:
    """Change the file by hand; the triggers are taken off and put back as they were."""
    triggers = place.rows("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    for name, _ in triggers:
        place.rows(f"DROP TRIGGER {name}")
    before = place.everything()
    for statement in statements:
        place.rows(statement)
    assert place.everything() != before, "nothing was damaged"
    for _, sql in triggers:
        place.rows(sql)


@pytest.mark.parametrize(("statements", "expected"), DAMAGES.values(), ids=DAMAGES)
def test_every_damage_is_found_and_no_other(
    copy: FilePlace, statements: list[str], expected: dict[str, dict[str, int]]
) -> None:
    """Catches: a rule that is not checked, and one that blames what is right. The store is left as it is."""
    damage(copy, *statements)
    before = copy.everything()
    checked = check_store(copy.target)
    assert found(checked) == expected
    assert (checked.ok, checked.complete) == (False, True)
    assert [check.name for check in checked.checks] == NAMES
    assert copy.everything() == before


def test_places_are_told_by_their_key_and_only_the_first_few(copy: FilePlace) -> None:
    """Catches: a report of a thousand lines, a count that ends with what is shown, and bytes that are no text."""
    damage(
        copy,
        f"INSERT INTO {HEADS} (scope_id, artifact_id, revision, updated_us) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n WHERE i < 1200) SELECT CAST(printf('zz%04d', i) AS BLOB), CAST(i AS BLOB), 1, 1 FROM n",
        f"INSERT INTO {HEADS} VALUES (x'0a1b', x'0a', 1, 1)",
    )
    (problem,) = next(check for check in check_store(copy.target).checks if check.name == "heads").problems
    assert (problem.code, problem.count) == ("head_differs", 1_201)
    assert problem.first == (
        {"table": HEADS, "scope_id": "0a1b"},
        *({"table": HEADS, "scope_id": f"zz{number:04}"} for number in range(1, 5)),
    )


SCHEMAS: dict[str, tuple[str, str, bool]] = {
    "a trigger is gone": ("DROP TRIGGER pd_sources_no_update", "trigger_missing", True),
    "an index is gone": ("DROP INDEX pd_sources_after", "index_missing", True),
    "a table is gone": ("DROP TABLE pd_token_limits", "table_missing", False),
    "a column is gone": ("ALTER TABLE pd_tokens DROP COLUMN host", "column_missing", False),
}


@pytest.mark.parametrize(("statement", "code", "complete"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_with_parts_missing_is_told(copy: FilePlace, statement: str, code: str, complete: bool) -> None:
    """Catches: a store that lost what keeps its rows, or a check that stumbles over what is not there."""
    copy.rows(statement)
    checked = check_store(copy.target)
    assert (found(checked), checked.complete, checked.ok) == ({"schema": {code: 1}}, complete, False)


@pytest.mark.engines("postgresql", "mysql", "oceanbase")
def test_a_schema_with_parts_missing_is_told_on_a_server_too(fresh_place: Place) -> None:
    """Catches: a check that knows the catalog of SQLite only."""
    fresh_place.open(create=True).close()
    on = " ON pd_sources"
    fresh_place.rows("DROP TRIGGER pd_sources_no_update" + (on if fresh_place.engine == "postgresql" else ""))
    fresh_place.rows("DROP INDEX pd_sources_after" + ("" if fresh_place.engine == "postgresql" else on))
    checked = check_store(fresh_place.target)
    assert found(checked) == {"schema": {"trigger_missing": 1, "index_missing": 1}}
    fresh_place.rows("ALTER TABLE pd_tokens DROP COLUMN host")
    fresh_place.rows("DROP TABLE pd_token_limits")
    checked = check_store(fresh_place.target)
    codes = {"trigger_missing": 1, "index_missing": 1, "column_missing": 1, "table_missing": 1}
    assert (found(checked), checked.complete) == ({"schema": codes}, False)


@pytest.mark.engines("postgresql", "mysql", "oceanbase")
def test_damage_on_a_server_is_found_by_the_same_rules(fresh_place: Place) -> None:
    """Catches: a query of a check that some engine reads in another way."""
    with Desk(fresh_place.url) as desk:
        furnish(desk)
    literal = fresh_place.literal
    scope = literal(SECOND.encode())
    fresh_place.rows(f"UPDATE {HEADS} SET revision = 7 WHERE scope_id = {scope}")
    fresh_place.rows(f"INSERT INTO {EVIDENCE} VALUES ({scope}, 5, 0, 1, {literal(b'k' * 32)}, NULL)")
    columns = f"SELECT scope_id, 5, artifact_id, 4, {literal(b'd' * 32)}, content, 1, recorded_by, 1"
    fresh_place.rows(f"INSERT INTO {REVISIONS} {columns} FROM {REVISIONS} WHERE scope_id = {scope} AND revision = 1")
    fresh_place.rows(f"UPDATE {PROJECTS} SET catalog_revision = 99")
    fresh_place.rows(f"UPDATE {WORKSTREAMS} SET version = 9 WHERE scope_id = {scope}")
    fresh_place.rows("DELETE FROM pd_tokens")
    fresh_place.rows("UPDATE pd_replays SET answer = NULL")
    assert found(check_store(fresh_place.target)) == {
        "heads": {"head_differs": 1, "revision_gap": 1},
        "revisions": {"content_digest_differs": 1},
        "evidence": {"evidence_differs": 1, "evidence_source_missing": 1},
        "projects": {"catalog_counter_differs": 2},
        "workstreams": {"version_differs": 1, "descriptor_differs": 1},
        "tokens": {"limit_without_token": 2},
        "replays": {"answer_missing": 1},
    }


@pytest.mark.parametrize(
    ("statement", "place_of"),
    [
        ("UPDATE pd_tokens SET name = 'text' WHERE principal = x'6275696c646572'", "pd_tokens"),
        ("UPDATE pd_replays SET recorded_us = 1.5", "pd_replays"),
        (f"UPDATE {HEADS} SET updated_us = x'00' WHERE scope_id = {S}", HEADS),
    ],
)
def test_a_value_of_another_kind_than_its_column_is_told(copy: FilePlace, statement: str, place_of: str) -> None:
    """Catches: text where bytes belong, which equals no bytes, and a crash of the checks behind."""
    copy.rows(statement)
    checked = check_store(copy.target)
    assert (found(checked), checked.complete) == ({"values": {"value_kind_differs": 1}}, False)
    assert checked.checks[-1].problems[0].first[0]["table"] == place_of


def test_a_file_whose_pages_contradict_each_other_is_told(copy: FilePlace) -> None:
    """Catches: an index that no longer finds its rows, which no query of ours would show."""
    copy.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    page_size = copy.rows("PRAGMA page_size")[0][0]
    root = copy.rows("SELECT rootpage FROM sqlite_master WHERE name = 'pd_sources_after'")[0][0]
    with copy.path.open("r+b") as file:
        file.seek((root - 1) * page_size + 3)
        assert file.read(2) != b"\0\0"
        file.seek((root - 1) * page_size + 3)
        file.write(b"\0\1")
    checked = check_store(copy.target)
    assert (set(found(checked)), checked.complete) == ({"file"}, False)
    assert set(found(checked)["file"]) == {"file_damaged"}


def test_a_file_that_is_no_database_any_more_is_refused(copy: FilePlace) -> None:
    """Catches: a fault of ours for damage of the file."""
    copy.path.write_bytes(b"x" * 5_000)
    with pytest.raises(PassdownError) as caught:
        check_store(copy.target)
    assert (caught.value.code, caught.value.members["rule"]) == ("store_not_readable", "damaged")


def test_a_check_neither_makes_nor_upgrades_a_store(copy: FilePlace, tmp_path: Path) -> None:
    """Catches: a check that changes what it checks."""
    with pytest.raises(PassdownError) as caught:
        check_store(tmp_path / "none" / "passdown.db")
    assert caught.value.members["rule"] == "missing"
    assert not (tmp_path / "none").exists()
    copy.rows("UPDATE alembic_version SET version_num = '0001'")
    before = copy.path.read_bytes()
    with pytest.raises(PassdownError) as caught:
        check_store(copy.target)
    assert (caught.value.code, caught.value.members["rule"]) == ("store_not_readable", "schema_behind")
    assert copy.path.read_bytes() == before


def test_commits_beside_a_check_are_no_contradictions(
    furnished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: tables that are read at different times. Somebody commits before every statement of the check."""
    path = tmp_path / "passdown.db"
    shutil.copyfile(furnished, path)
    steps: list[str] = []
    with Desk(f"sqlite:///{path}") as desk:
        project_id = desk.call("get_handoff_report_project", key="shop")["project"]["project_id"]

        def commit(sql: str) -> None:
            steps.append(sql)
            desk.hand_off(FIRST, objective=f"Step {len(steps)}")
            change = {"project_id": project_id, "expected_version": len(steps) + 1, "title": f"Step {len(steps)}"}
            desk.call("update_handoff_report_project", **change)

        def interleaved(*arguments: Any, **options: Any) -> Store:
            store = open_store(*arguments, **options)
            reading = store.read
            store.read = lambda work: reading(lambda session: work(Interleaved(session, commit)))  # type: ignore
            return store

        monkeypatch.setattr(integrity, "open_store", interleaved)
        checked = check_store(path)
        monkeypatch.undo()
        assert len(steps) >= 40
        assert found(checked) == {}
        assert check_store(path).ok
        assert desk.numbers(FIRST)[0] == 3 + len(steps)


class Interleaved:
    """A session that lets somebody else in before each of its statements."""

    def __init__(self, session: Session, commit: Callable[[str], None]) -> None:
        self._session = session
        self._commit = commit

    def all(self, sql: str, /, **params: Any) -> Any:
        self._commit(sql)
        return self._session.all(sql, **params)

    def one(self, sql: str, /, **params: Any) -> Any:
        self._commit(sql)
        return self._session.one(sql, **params)
