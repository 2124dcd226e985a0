"""The report switched off, failing or slow: handing off and continuing do not notice."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from passdown.api.openapi import api_document
from passdown.app.application import open_application
from passdown.app.features import features_off, operations_on
from passdown.app.integrity import check_store
from passdown.app.operations import DOCUMENT_OPERATIONS, OPERATIONS
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.report.operations import LIST_PROJECTS, ListProjectsAsk
from passdown.report.report_models import HandoffReport

OFF = {"PASSDOWN_FEATURES_OFF": "report"}
TESTS = Path(__file__).parent.parent
WHO = Principal("ana", "asserted", "owner")


def drop_report_tables(database: Path) -> int:
    """Drop every table of the report with SQLite itself; how many there were."""
    with closing(sqlite3.connect(database)) as connection:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'pc_handoff_report_%'"
        names = [name for (name,) in connection.execute(sql)]
        for name in names:
            connection.execute(f"DROP TABLE {name}")
        connection.commit()
        return len(names)


@pytest.mark.parametrize("value", ["reports", "report,handoff", "report;x"])
def test_a_name_that_no_feature_has_is_refused(value: str) -> None:
    with pytest.raises(PassdownError) as caught:
        features_off({"PASSDOWN_FEATURES_OFF": value})
    assert (caught.value.code, caught.value.members["rule"]) == ("invalid_request", "unknown_feature")


@pytest.mark.parametrize(
    ("value", "expected"), [("", set()), ("report", {"report"}), (" report , ", {"report"}), (None, set())]
)
def test_names_stand_with_commas_between_them(value: str | None, expected: set[str]) -> None:
    assert features_off({} if value is None else {"PASSDOWN_FEATURES_OFF": value}) == expected


def test_an_operation_of_the_report_is_refused_as_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSDOWN_FEATURES_OFF", "report")
    with open_application(tmp_path, create=True) as application:
        with pytest.raises(PassdownError) as caught:
            application.caller(WHO)(LIST_PROJECTS, ListProjectsAsk())
        assert (caught.value.code, caught.value.members["feature"]) == ("feature_off", "report")
        assert not any("handoff_report" in name for name in application.handlers())
        assert application.places() is None


def referenced(value: Any) -> set[str]:
    """The names of all components that a part of the document refers to."""
    if isinstance(value, dict):
        own = {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(referenced, value.values()))
    return set().union(*map(referenced, value)) if isinstance(value, list) else set()


def test_the_api_document_of_the_rest_is_the_same_to_the_byte() -> None:
    """Catches: a path, a schema or an error of the rest that exists or looks as it does only beside the report."""
    whole = api_document(OPERATIONS, documents=DOCUMENT_OPERATIONS, document_model=HandoffReport)
    rest = api_document(operations_on(OPERATIONS, frozenset({"report"})), documents=DOCUMENT_OPERATIONS)
    assert rest["paths"]
    assert not any("handoff-reports" in path for path in rest["paths"])
    for path, described in rest["paths"].items():
        assert orjson.dumps(described) == orjson.dumps(whole["paths"][path]), path
    kept = {path: item for path, item in whole["paths"].items() if path in rest["paths"]}
    assert list(kept) == list(rest["paths"])
    for kind, components in rest["components"].items():
        for name, described in components.items():
            assert orjson.dumps(described) == orjson.dumps(whole["components"][kind][name]), name
    needed, found = referenced(rest["paths"]), set()
    while needed - found:
        found |= needed
        needed = set().union(*(referenced(rest["components"]["schemas"].get(name, {})) for name in found)) | found
    assert set(rest["components"]["schemas"]) >= found & set(whole["components"]["schemas"])
    assert {name: rest[name] for name in rest if name not in ("paths", "components", "tags")} == {
        name: whole[name] for name in whole if name not in ("paths", "components", "tags")
    }


@pytest.mark.slow
def test_the_suite_of_handoffs_is_green_without_the_report_and_its_tables(tmp_path: Path) -> None:
    """Runs `tests/handoff` whole, in another process, over stores that lose the tables as soon as they are made."""
    (tmp_path / "tables_dropped.py").write_text(
        "import sqlite3\n"
        "import passdown.app.application as application\n"
        "opened = application.open_store\n"
        "def open_store(place, *, create, **more):\n"
        "    store = opened(place, create=create, **more)\n"
        "    path = str(place).removeprefix('sqlite:///')\n"
        "    with sqlite3.connect(path) as connection:\n"
        "        sql = \"SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'pc_handoff_report_%'\"\n"
        "        names = [name for (name,) in connection.execute(sql)]\n"
        "        assert len(names) == 4 or not create, names\n"
        "        for name in names:\n"
        "            connection.execute(f'DROP TABLE {name}')\n"
        "    return store\n"
        "application.open_store = open_store\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tables_dropped", "-m", "not slow"]
    environment = {**os.environ, **OFF, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [*command, "--engines", "sqlite", str(TESTS / "handoff")],
        cwd=TESTS.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:]


def test_the_check_of_a_store_passes_over_tables_that_are_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_application(tmp_path, create=True).close()
    assert drop_report_tables(tmp_path / "passdown.db") == 4
    assert not check_store(tmp_path / "passdown.db").complete
    monkeypatch.setenv("PASSDOWN_FEATURES_OFF", "report")
    assert check_store(tmp_path / "passdown.db").ok


def test_a_report_that_is_locked_out_keeps_no_handoff_waiting(tmp_path: Path) -> None:
    """A reader that never ends, as a report that hangs would be, beside a writer."""
    from passdown.handoff.source_operations import CAPTURE_SOURCE, CaptureSourceAsk

    with (
        open_application(tmp_path, create=True) as application,
        closing(sqlite3.connect(tmp_path / "passdown.db", isolation_level=None)) as hanging,
    ):
        hanging.execute("BEGIN")
        hanging.execute("SELECT * FROM pc_handoff_report_projects").fetchall()
        ask = CaptureSourceAsk(scope_id="s", source_type="content", content="Written meanwhile.")
        assert application.caller(WHO)(CAPTURE_SOURCE, ask).replayed is False


def test_a_report_that_fails_changes_nothing_for_handoffs(tmp_path: Path) -> None:
    """Its tables are gone although it is on: it fails, and the rest goes on."""
    from passdown.handoff.source_operations import CAPTURE_SOURCE, CaptureSourceAsk

    open_application(tmp_path, create=True).close()
    drop_report_tables(tmp_path / "passdown.db")
    with open_application(tmp_path, create=False) as application:
        call = application.caller(WHO)
        with pytest.raises(PassdownError):
            call(LIST_PROJECTS, ListProjectsAsk())
        ask = CaptureSourceAsk(scope_id="s", source_type="content", content="Still written.")
        assert call(CAPTURE_SOURCE, ask).replayed is False
