"""How the schema of a SQLite file comes to be: in one transaction, once, and not before it has to."""

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

from passdown.storage import migrate as migration
from passdown.storage import open_store
from passdown.storage.steps import content, octets
from passdown.storage.version import APPLICATION_ID, SCHEMA_HEAD, SCHEMA_REVISIONS


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
