"""The schema: what it is, how it comes to be, who may not touch it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.pool import NullPool
from storage_support import answer, child, files, put, raw, refused, rows, schema_of, told, value_of

from passdown.storage import Store, open_store
from passdown.storage import migrate as migration
from passdown.storage.steps import content, octets
from passdown.storage.version import APPLICATION_ID, SCHEMA_HEAD, SCHEMA_REVISIONS

KEYS = {
    "pd_counters": ["name"],
    "pd_sources": ["scope_id", "source_key"],
    "pd_handoff_heads": ["scope_id"],
    "pd_handoff_revisions": ["scope_id", "revision"],
    "pd_handoff_evidence": ["scope_id", "revision", "ordinal"],
    "pd_tokens": ["token_id"],
    "pd_replays": ["request_key"],
    "pd_token_limits": ["token_id", "kind", "name"],
    "pc_handoff_report_projects": ["project_id"],
    "pc_handoff_report_project_revisions": ["project_id", "version"],
    "pc_handoff_report_workstreams": ["scope_id"],
    "pc_handoff_report_workstream_revisions": ["scope_id", "version"],
}
UNIQUE = {
    ("pd_tokens", ("token_sha256",)),
    ("pd_handoff_heads", ("artifact_id",)),
    ("pc_handoff_report_projects", ("project_key",)),
    ("pc_handoff_report_workstreams", ("project_id", "workstream_key")),
}
INDEXES = {
    ("pd_sources", ("scope_id", "after_revision", "source_key")),
    ("pd_handoff_heads", ("updated_us",)),
    ("pd_replays", ("recorded_us",)),
    ("pc_handoff_report_workstreams", ("project_id", "scope_id")),
    ("pc_handoff_report_workstream_revisions", ("project_id", "catalog_revision")),
}
IMMUTABLE = [
    "pd_sources",
    "pd_handoff_revisions",
    "pd_handoff_evidence",
    "pc_handoff_report_project_revisions",
    "pc_handoff_report_workstream_revisions",
]
NULLABLE = {("pd_sources", name) for name in ("read_by", "name", "description", "remote_refs", "body")} | {
    ("pd_handoff_evidence", "source_key"),
    ("pd_handoff_evidence", "artifact_revision"),
    ("pd_tokens", "host"),
    ("pd_tokens", "expires_us"),
    ("pd_tokens", "revoked_us"),
    ("pd_replays", "answer"),
    ("pc_handoff_report_workstreams", "workstream_key"),
}


def test_the_schema_has_these_tables_keys_and_indexes(database: Path) -> None:
    """Catches: a key in another order, a unique rule forgotten, a column that allows NULL."""
    names = {row[0] for row in rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names == set(KEYS) | {"alembic_version"}
    unique, indexes, nullable = set(), set(), set()
    for table, key in KEYS.items():
        columns = rows(database, f"PRAGMA table_info({table})")
        assert [row[1] for row in sorted(columns, key=lambda row: row[5]) if row[5]] == key
        assert {row[2] for row in columns} <= {"BLOB", "BIGINT", "SMALLINT", "INTEGER"}
        nullable |= {(table, row[1]) for row in columns if not row[3]}
        for _, name, is_unique, origin, _ in rows(database, f"PRAGMA index_list({table})"):
            parts = tuple(row[2] for row in rows(database, f"PRAGMA index_info({name})"))
            if origin == "u":
                unique.add((table, parts))
            elif origin == "c":
                assert not is_unique
                indexes.add((table, parts))
    assert (unique, indexes, nullable) == (UNIQUE, INDEXES, NULLABLE)


def _row(database: Path, table: str, key: bytes) -> tuple[str, dict[str, Any]]:
    """A statement and values that fill every column of a table."""
    columns = rows(database, f"PRAGMA table_info({table})")
    names = [row[1] for row in columns]
    values = {row[1]: key if row[2] == "BLOB" else 1 for row in columns}
    places = ", ".join(":" + name for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", values


@pytest.mark.parametrize("table", IMMUTABLE)
def test_immutable_rows_are_kept_by_the_database_itself(store: Store, database: Path, table: str) -> None:
    """Catches: a statement of ours, or of any tool without our code, that changes history."""
    insert, values = _row(database, table, b"k")
    assert store.write(lambda s: s.insert_new(insert, **values)) is True
    column = KEYS[table][0]
    for change in (
        f"UPDATE {table} SET {column} = :v",
        f"DELETE FROM {table} WHERE {column} = :v",
        insert.replace("INSERT", "REPLACE"),
    ):
        params = values if change.startswith("REPLACE") else {"v": b"k"}
        error = refused(lambda change=change, params=params: store.write(lambda s: s.run(change, **params)))
        assert told(error) == ("internal_error", "immutable")
    tool = raw(database)
    with pytest.raises(sqlite3.IntegrityError):
        tool.execute(f"DELETE FROM {table}")
    tool.close()
    assert rows(database, f"SELECT COUNT(*) FROM {table}") == [(1,)]


@pytest.mark.parametrize("table", sorted(set(KEYS) - set(IMMUTABLE)))
def test_other_rows_can_change(store: Store, database: Path, table: str) -> None:
    """Catches: a trigger on a table whose rows move on."""
    insert, values = _row(database, table, b"k")
    store.write(lambda s: s.run(insert, **values))
    key = KEYS[table][0]
    assert store.write(lambda s: s.run(f"DELETE FROM {table} WHERE {key} = :v", v=b"k")) == 1


def test_the_tables_of_the_report_may_be_dropped_without_the_others_changing(store: Store, database: Path) -> None:
    """Catches: a key from the core into the report, or triggers that stand in the way."""
    tool = raw(database)
    for table in KEYS:
        if table.startswith("pc_"):
            tool.execute(f"DROP TABLE {table}")
    tool.close()
    insert, values = _row(database, "pd_handoff_revisions", b"k")
    assert store.write(lambda s: s.insert_new(insert, **values)) is True


def test_each_known_revision_has_exactly_one_migration_and_the_last_is_the_head() -> None:
    """Catches: a migration that the list forgot, after which every store is "too new"."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", migration.SCRIPTS)
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [SCHEMA_HEAD]
    assert [script.revision for script in scripts.walk_revisions()] == list(reversed(SCHEMA_REVISIONS))


def test_types_that_can_be_keys_stay_so_on_the_other_engines() -> None:
    """Catches: a key of type BLOB, which MySQL engines refuse, and contents cut at 64 KiB."""
    assert octets(1024).compile(mysql.dialect()) == "VARBINARY(1024)"
    assert content().compile(mysql.dialect()) == "MEDIUMBLOB"
    assert octets(1024).compile(postgresql.dialect()) == "BYTEA"


def test_opening_a_current_store_imports_nothing_heavy(database: Path) -> None:
    """Catches: 200 ms and more paid by every command."""
    assert answer(child("open_current", database)) == []


def test_of_eight_processes_that_open_a_new_store_one_migrates_and_all_succeed(tmp_path: Path) -> None:
    """Catches: two migrations at once, or a busy error at the first start."""
    path = tmp_path / "data" / "passdown.db"
    processes = [child("open_new", path) for _ in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [answer(process) for process in processes]
    assert sorted(told_by["migrated"] for told_by in answers) == [False] * 7 + [True]
    assert [told_by["writes"] for told_by in answers] == [0] * 8


@pytest.mark.parametrize(("found", "shown"), [("0003", "0003"), ("f00d", "f00d"), ("<b>'; --", "unreadable")])
def test_a_newer_schema_is_refused_and_no_byte_changes(database: Path, found: str, shown: str) -> None:
    """Catches: older code that writes into, or migrates, what it does not know; and text from the file in an error."""
    tool = raw(database)
    tool.execute("UPDATE alembic_version SET version_num = ?", (found,))
    tool.close()
    before = files(database.parent)
    for create in (True, False):
        error = refused(lambda create=create: open_store(database, create=create))
        assert (error.code, error.members) == ("schema_too_new", {"found": shown, "known": SCHEMA_HEAD})
    assert files(database.parent) == before


def test_a_store_that_is_migrated_under_a_running_process_is_refused_from_then_on(store: Store, database: Path) -> None:
    """Catches: an old server that goes on writing into a newer schema."""
    store.write(put(b"a"))
    tool = raw(database)
    tool.execute("UPDATE alembic_version SET version_num = '0999'")
    tool.close()
    assert refused(lambda: store.write(put(b"b"))).code == "schema_too_new"
    assert refused(store.writes).code == "schema_too_new"
    assert rows(database, "SELECT COUNT(*) FROM pd_counters WHERE name = x'62'") == [(0,)]


def test_a_schema_that_is_behind_is_left_alone_when_migrating_is_not_wanted(tmp_path: Path) -> None:
    """Catches: a quick reader that begins to migrate."""
    path = tmp_path / "passdown.db"
    path.touch()
    error = refused(lambda: open_store(path, create=False, migrate=False))
    assert told(error) == ("store_not_readable", "schema_behind")
    assert files(tmp_path) == {"passdown.db": b""}
    error = refused(lambda: open_store(tmp_path / "none.db", create=True, migrate=False))
    assert told(error) == ("store_not_readable", "schema_behind")
    assert os.listdir(tmp_path) == ["passdown.db"]


def _changes_of_schema(migrated: Path) -> int:
    """How many statements the migration executes that begin with CREATE."""
    return sum(1 for row in schema_of(migrated) if row[3] is not None)


def _fail_after(engine: Any, number: int, fail: Any) -> None:
    """Call ``fail`` as soon as ``number`` objects were created."""
    created = []

    def count(conn, cursor, statement, parameters, context, executemany):
        if statement.lstrip().upper().startswith("CREATE"):
            created.append(statement)
            if len(created) == number:
                fail()

    event.listen(engine, "after_cursor_execute", count)


@pytest.mark.parametrize("point", ["first", "second", "middle", "last"])
def test_a_migration_killed_on_the_way_leaves_nothing_and_the_next_opening_does_it(
    tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Catches: a store that is half there after kill -9, or that can never be opened again."""
    total = _changes_of_schema(migrated)
    number = {"first": 1, "second": 2, "middle": total // 2, "last": total}[point]
    path = tmp_path / "passdown.db"

    def suicidal(*args: Any, **options: Any) -> Any:
        engine = create_engine(*args, **options)
        _fail_after(engine, number, lambda: os.kill(os.getpid(), signal.SIGKILL))
        return engine

    monkeypatch.setattr(migration, "create_engine", suicidal)
    process = os.fork()
    if process == 0:
        open_store(path, create=True)
        os._exit(0)
    monkeypatch.undo()
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert rows(path, "SELECT name FROM sqlite_master") == []
    open_store(path, create=False).close()
    assert schema_of(path) == schema_of(migrated)


def test_a_migration_whose_steps_were_committed_one_by_one_resumes_after_each_of_them(
    tmp_path: Path, migrated: Path
) -> None:
    """Catches: a step that cannot be repeated, for engines that commit every change of the schema by itself."""

    class Halt(Exception):
        pass

    def halt() -> None:
        raise Halt

    for number in range(1, _changes_of_schema(migrated) + 1):
        path = tmp_path / f"{number}.db"

        def connect(path: Path = path) -> sqlite3.Connection:
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            return connection

        engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
        _fail_after(engine, number, halt)
        with pytest.raises(Halt), engine.connect() as connection:
            migration.upgrade_on(connection)
        engine.dispose()
        assert len([row for row in schema_of(path) if row[3] is not None]) == number
        store = open_store(path, create=False)
        assert store.writes() == 0
        assert value_of(store, b"writes") == 0
        store.close()
        assert schema_of(path) == schema_of(migrated)
        assert rows(path, "SELECT version_num FROM alembic_version") == [(SCHEMA_HEAD,)]


def test_a_migration_keeps_the_data_that_is_there(database: Path, migrated: Path, tmp_path: Path) -> None:
    """Catches: steps that empty tables when the note of the revision was lost."""
    store = open_store(database, create=False)
    store.write(put(b"kept", 3))
    store.close()
    copy = tmp_path / "copy.db"
    shutil.copyfile(database, copy)
    tool = raw(copy)
    tool.execute("DELETE FROM alembic_version")
    tool.close()
    store = open_store(copy, create=False)
    assert (value_of(store, b"kept"), store.writes()) == (3, 1)
    store.close()
    assert schema_of(copy) == schema_of(migrated)
