"""Restore: into an empty store of any engine, all of it or nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backup_support import add_large, fill, is_empty, make_older
from storage_support import files, put, refused, told, value_of

from passdown.kernel.errors import PassdownError
from passdown.storage import backup as module
from passdown.storage import open_store
from passdown.storage.backup import backup, restore
from passdown.storage.tables import TABLES
from passdown.storage.version import SCHEMA_HEAD
from support.places import LATER, FilePlace, Place


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with rows in every table."""
    folder = tmp_path_factory.mktemp("made")
    store = open_store(folder / "passdown.db", create=True)
    fill(FilePlace(folder / "passdown.db"), store)
    store.close()
    backup(folder / "passdown.db", folder / "copy.db")
    return folder / "copy.db"


@pytest.fixture
def file(made: Path, tmp_path: Path) -> Path:
    """The same backup in a folder of its own."""
    (tmp_path / "kept").mkdir()
    copy = tmp_path / "kept" / "copy.db"
    shutil.copyfile(made, copy)
    return copy


def test_a_backup_is_restored_into_any_engine(fresh_place: Place, file: Path) -> None:
    """Catches: rows lost, doubled or converted, and a counter that does not have its old value."""
    before = files(file.parent)
    copied = restore(file, fresh_place.target)
    assert fresh_place.everything() == FilePlace(file).everything()
    assert copied.summary.total == sum(len(rows) for rows in fresh_place.everything().values())
    assert files(file.parent) == before
    store = fresh_place.open(migrate=False)
    store.write(put(b"later"))
    assert value_of(store, b"later") == 0
    store.close()


def test_a_backup_of_a_restored_store_has_the_digest_of_the_first(
    fresh_place: Place, file: Path, tmp_path: Path
) -> None:
    """Catches: anything that changes on the way from SQLite to a server and back."""
    told_by_restore = restore(file, fresh_place.target).summary
    assert backup(fresh_place.target, tmp_path / "again.db").summary == told_by_restore


def test_rows_that_are_too_large_for_one_statement_are_restored_too(fresh_place: Place, tmp_path: Path) -> None:
    """Catches: an INSERT of more megabytes than a server takes, and a body that is cut."""
    source = FilePlace(tmp_path / "large" / "passdown.db")
    store = source.open(create=True)
    add_large(store, 1_200_000)
    store.close()
    backup(source.target, tmp_path / "copy.db")
    restore(tmp_path / "copy.db", fresh_place.target)
    assert fresh_place.everything() == source.everything()


def test_the_restored_rows_are_protected_as_before(fresh_place: Place, file: Path) -> None:
    """Catches: triggers dropped for the sake of the copying."""
    restore(file, fresh_place.target)
    with pytest.raises(Exception, match="immutable"):
        fresh_place.rows("DELETE FROM pd_handoff_revisions")


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_a_store_that_holds_one_row_of_any_kind_is_refused(database: Path, file: Path, table: str) -> None:
    """Catches: two histories mixed in one store."""
    place = FilePlace(database)
    columns = place.columns(table)
    values = ", ".join("x'6b'" if is_bytes else "1" for _, is_bytes in columns)
    place.rows(f"INSERT INTO {table} VALUES ({values})")
    before = place.everything()
    error = refused(lambda: restore(file, database))
    assert (error.code, error.members) == ("store_not_empty", {"table": table})
    assert place.everything() == before


def test_a_store_is_not_restored_into_itself(file: Path) -> None:
    """Catches: a file that reads and writes itself."""
    assert refused(lambda: restore(file, file)).code == "store_not_empty"


def test_a_digest_that_was_written_down_is_compared_first(database: Path, file: Path) -> None:
    """Catches: a backup that was changed since, restored as if it were the one that was made."""
    wanted = "sha256:" + "0" * 64
    error = refused(lambda: restore(file, database, digest=wanted))
    assert (error.code, error.members) == ("digest_mismatch", {"digest": "rows"})
    assert is_empty(FilePlace(database))
    place = FilePlace(file)
    said = restore(file, database).summary.digest
    place.rows("UPDATE pd_tokens SET name = x'00' WHERE token_id = (SELECT MIN(token_id) FROM pd_tokens)")
    assert refused(lambda: restore(file, database, digest=said)).code == "digest_mismatch"


def test_what_was_stored_is_read_back_before_it_counts(
    fresh_place: Place, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: a restore that believes its own statements."""
    inserting = module._insert

    def forgetful(session: Any, table: Any, rows: Any) -> None:
        inserting(session, table, rows[:-1] if table.name == "pd_sources" else rows)

    fresh_place.open(create=True).close()
    monkeypatch.setattr(module, "_insert", forgetful)
    assert told(refused(lambda: restore(file, fresh_place.target))) == ("store_damaged", "read_back")
    assert is_empty(fresh_place)


@pytest.mark.parametrize("window", ["inserting", "reading back"])
def test_a_restore_killed_on_the_way_leaves_an_empty_store_that_takes_it_again(
    fresh_place: Place, file: Path, window: str
) -> None:
    """Catches: half a store that looks like a whole one, and one that can never be filled again."""
    fresh_place.open(create=True).close()

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def at_sources(table: str, done: int) -> None:
        if table == "pd_sources" and done > 32 and window == "inserting":
            die()

    process = os.fork()
    if process == 0:
        try:
            reading, times = module.summary, [0]

            def dying(session: Any, progress: Any = None) -> Any:
                times[0] += 1
                if times[0] == 2:
                    die()
                return reading(session, progress)

            if window == "reading back":
                module.summary = dying  # type: ignore[assignment]
            restore(file, fresh_place.target, progress=at_sources)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert is_empty(fresh_place)
    restore(file, fresh_place.target)
    assert fresh_place.everything() == FilePlace(file).everything()


def test_no_writer_comes_between_the_look_and_the_restore(fresh_place: Place, file: Path) -> None:
    """Catches: rows of a server that runs already, mixed into what is restored. Whoever comes too early makes the store
    not empty; whoever comes later waits and then writes into the whole store."""
    fresh_place.open(create=True).close()
    other = fresh_place.open(wait_seconds=60)
    begun, seen = threading.Event(), []

    def write() -> None:
        begun.wait(30)
        seen.append(other.write(put(b"theirs")))

    writer = threading.Thread(target=write)
    writer.start()

    def tell(table: str, done: int) -> None:
        begun.set()

    restore(file, fresh_place.target, progress=tell)
    writer.join(60)
    other.close()
    assert seen == [True]
    expected = FilePlace(file).everything()
    found = fresh_place.everything()
    writes = next(value for name, value in expected["pd_counters"] if name == b"writes")
    assert (b"theirs", 0) in found["pd_counters"] and (b"writes", writes + 1) in found["pd_counters"]
    assert {name: rows for name, rows in found.items() if name != "pd_counters"} == {
        name: rows for name, rows in expected.items() if name != "pd_counters"
    }


# --- files that are no backup -------------------------------------------------------------------------------------


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(40_000))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    path.unlink()
    FilePlace(path).rows("CREATE TABLE guests (id INTEGER)")


def _other_id(path: Path) -> None:
    FilePlace(path).rows("PRAGMA application_id=7")


def _newer(path: Path) -> None:
    FilePlace(path).rows("UPDATE alembic_version SET version_num = '0999'")


def _no_table(path: Path) -> None:
    FilePlace(path).rows("DROP TABLE pd_tokens")


def _view(path: Path) -> None:
    FilePlace(path).rows("DROP TABLE pd_tokens")
    FilePlace(path).rows("CREATE VIEW pd_tokens AS SELECT 1 AS token_id")


def _no_column(path: Path) -> None:
    FilePlace(path).rows("ALTER TABLE pd_tokens DROP COLUMN host")


def _text(path: Path) -> None:
    FilePlace(path).rows("UPDATE pd_tokens SET name = 'text' WHERE token_id = (SELECT MIN(token_id) FROM pd_tokens)")


def _no_counter(path: Path) -> None:
    FilePlace(path).rows("DELETE FROM pd_counters WHERE name = x'777269746573'")


def _torn(path: Path) -> None:
    """A page in the middle of the file, overwritten."""
    with path.open("r+b") as opened:
        opened.seek(path.stat().st_size // 2 // 4096 * 4096)
        opened.write(b"\x5a" * 4096)


def _cut(path: Path) -> None:
    with path.open("r+b") as opened:
        opened.truncate(path.stat().st_size // 2 // 4096 * 4096)


def _gone(path: Path) -> None:
    path.unlink()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


NO_BACKUPS = {
    "garbage": (_garbage, ("store_not_readable", "damaged")),
    "empty": (_empty, ("store_not_readable", "foreign")),
    "foreign": (_foreign, ("store_not_readable", "foreign")),
    "another id": (_other_id, ("store_not_readable", "foreign")),
    "newer": (_newer, ("schema_too_new", None)),
    "no table": (_no_table, ("store_not_readable", "damaged")),
    "a view for a table": (_view, ("store_not_readable", "damaged")),
    "no column": (_no_column, ("store_not_readable", "damaged")),
    "text for bytes": (_text, ("store_not_readable", "damaged")),
    "no counter": (_no_counter, ("store_not_readable", "damaged")),
    "torn": (_torn, ("store_not_readable", "damaged")),
    "cut": (_cut, ("store_not_readable", "damaged")),
    "gone": (_gone, ("file_not_readable", None)),
    "a folder": (_folder, ("file_not_readable", "not_a_file")),
    "a pipe": (_pipe, ("file_not_readable", "not_a_file")),
}


@pytest.mark.parametrize(("spoil", "expected"), NO_BACKUPS.values(), ids=NO_BACKUPS)
def test_what_is_no_whole_backup_is_refused_and_stores_nothing(
    file: Path, tmp_path: Path, spoil: Callable[[Path], None], expected: tuple[str, str | None]
) -> None:
    """Catches: a damaged or foreign file that becomes a store."""
    spoil(file)
    target = tmp_path / "new" / "passdown.db"
    assert told(refused(lambda: restore(file, target))) == expected
    assert not target.exists() or is_empty(FilePlace(target))


def test_an_older_backup_is_brought_up_in_a_copy(fresh_place: Place, file: Path) -> None:
    """Catches: a backup that grows too old to be restored, or that is changed by being restored."""
    place = FilePlace(file)
    make_older(place)
    before = files(file.parent)
    digest = restore(file, fresh_place.target).summary.digest
    assert files(file.parent) == before
    found = fresh_place.everything()
    assert [found.pop(table) for table in LATER] == [[]] * len(LATER)
    names = [name for name in found if name != "pd_counters"]
    assert {name: found[name] for name in names} == {
        name: sorted(place.rows(f"SELECT * FROM {name}"), key=repr) for name in names
    }
    assert fresh_place.rows("SELECT version_num FROM alembic_version") == [(SCHEMA_HEAD,)]
    error = refused(lambda: restore(file, fresh_place.target, digest="sha256:" + "0" * 64))
    assert error.code == "digest_mismatch"
    assert refused(lambda: restore(file, fresh_place.target, digest=digest)).code == "store_not_empty"


READ_ONLY = """
import os, sys
from pathlib import Path
from passdown.storage import open_store
from passdown.storage.backup import restore
file, target = map(Path, sys.argv[1:])
open_store(target, create=True).close()
if os.geteuid() == 0:
    for name in target.parent, *target.parent.iterdir():
        os.chown(name, 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)
print(os.access(file, os.W_OK), restore(file, target).summary.total)
"""


def test_a_backup_that_nobody_can_write_is_restored_all_the_same(public_folder: Path) -> None:
    """Catches: a backup on a read-only medium that cannot be used. A user who may only read plays the medium."""
    file = public_folder / "passdown.db"
    file.chmod(0o444)
    public_folder.chmod(0o555)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(file), f"{folder}/passdown.db"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "False 1\n"), done.stderr
    assert os.listdir(public_folder) == ["passdown.db"]


def test_a_live_store_that_changes_while_it_is_read_is_not_restored(
    database: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: what was checked and what is stored being two different states of the file."""
    copying = module._copy_rows

    def late(reading: Any, writing: Any, progress: Any) -> Any:
        copied, writes = copying(reading, writing, progress)
        changed = type(copied)(copied.rows, "sha256:other")
        return changed, writes

    monkeypatch.setattr(module, "_copy_rows", late)
    with pytest.raises(PassdownError) as caught:
        restore(file, database)
    assert caught.value.code == "store_busy"
    assert is_empty(FilePlace(database))
