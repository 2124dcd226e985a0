"""Backup: one consistent file from any engine, whole under its name or not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from backup_support import counted, digest_of, fill, key_of, make_older
from storage_support import CHILDREN, files, put, refused, told

from passdown.storage import backup as module
from passdown.storage import open_store
from passdown.storage.backup import PART_PREFIX, backup
from passdown.storage.tables import INDEXES, NUMBERS, TABLES
from passdown.storage.upgrading import Upgraded, schema_revision, upgrade_store
from passdown.storage.version import SCHEMA_HEAD
from support.places import TABLES as KNOWN
from support.places import FilePlace, Place


def parts(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(PART_PREFIX)]


def test_the_list_of_tables_is_the_schema_of_every_engine(place: Place) -> None:
    """Catches: a table or column that a migration added and no backup copies, and a key that is not the table's own."""
    assert {table.name: table.immutable for table in TABLES} == KNOWN
    own = {"alembic_version"} | ({"pd_upgrades"} if place.engine == "oceanbase" else set())
    assert {table.name for table in TABLES} == place.tables() - own
    for table in TABLES:
        columns = place.columns(table.name)
        assert table.columns == tuple(name for name, _ in columns)
        assert {name for name, is_bytes in columns if not is_bytes} == NUMBERS & set(table.columns)
        assert table.key == key_of(place, table.name)
    keys = place.keys()
    assert len(INDEXES) == sum(kind == "plain" for _, kind, _ in keys)


def test_a_backup_holds_every_row_of_any_engine(place: Place, tmp_path: Path) -> None:
    """Catches: a row lost or doubled between two batches, bytes converted on their way, a digest that depends on the
    engine, and a counter of writes that the backup itself raised."""
    with_rows = place.open()
    fill(place, with_rows)
    before = with_rows.writes()
    with_rows.close()
    file = tmp_path / "copy.db"
    copied = backup(place.target, file)
    copy = FilePlace(file)
    assert copy.everything() == place.everything()
    assert copied.summary.rows == counted(place)
    assert copied.summary.total == sum(counted(place).values()) > 3_000
    assert copied.summary.digest == digest_of(file)
    assert copy.rows("SELECT value FROM pd_counters WHERE name = x'777269746573'") == [(before,)]
    assert copied.bytes == file.stat().st_size


def test_a_backup_is_one_private_file_that_is_a_store(place: Place, tmp_path: Path) -> None:
    """Catches: a log or a lock left beside it, a file that others may read, one that no command can open."""
    folder = tmp_path / "kept"
    folder.mkdir()
    backup(place.target, folder / "copy.db")
    assert os.listdir(folder) == ["copy.db"]
    assert (folder / "copy.db").stat().st_mode & 0o777 == 0o600
    assert (folder / "copy.db").stat().st_nlink == 1
    store = open_store(folder / "copy.db", create=False, migrate=False)
    assert store.writes() == 0
    store.write(put(b"new"))
    store.close()


def test_the_same_rows_give_the_same_digest_and_one_changed_row_another(database: Path, tmp_path: Path) -> None:
    """Catches: a digest over something that is not in the rows, or not over all of them."""
    store = open_store(database, create=False)
    fill(FilePlace(database), store)
    first = backup(database, tmp_path / "1.db").summary.digest
    assert backup(database, tmp_path / "2.db").summary.digest == first
    store.write(lambda s: s.run("UPDATE pd_tokens SET host = :h WHERE token_id = :t", h=b"other", t=b"a0"))
    store.close()
    assert FilePlace(database).rows("SELECT COUNT(*) FROM pd_tokens WHERE host = x'6f74686572'") == [(1,)]
    assert backup(database, tmp_path / "3.db").summary.digest != first


def test_a_backup_beside_a_storm_of_commits_is_one_moment(place: Place, tmp_path: Path) -> None:
    """Catches: tables or batches read at different times, half a transaction, and writers that a backup stops.

    Each commit inserts a pair of counters and raises the counter of writes by one. Between both of a pair lie so many
    others that they are read in different batches."""
    store = place.open()
    store.write(lambda s: [put(b"middle-%d" % number)(s) for number in range(1_100)])  # type: ignore[func-returns-value]
    seen: list[int] = []

    def wait_for_commits(table: str, done: int) -> None:
        """The source is in the middle of being read: go on only when others have committed meanwhile."""
        if table != "pd_counters":
            return
        limit = time.monotonic() + 30
        start = store.writes()
        while store.writes() < start + 3:
            assert time.monotonic() < limit, "writers stand still while a backup is made"
        seen.append(done)

    command = [sys.executable, str(CHILDREN), "commit_loop", place.text]
    with (
        subprocess.Popen([*command, "0"], stdout=subprocess.DEVNULL) as one,
        subprocess.Popen([*command, "1000000"], stdout=subprocess.DEVNULL) as two,
    ):
        try:
            limit = time.monotonic() + 30
            while store.writes() < 5:
                assert time.monotonic() < limit
            backup(place.target, tmp_path / "copy.db", progress=wait_for_commits)
        finally:
            for process in (one, two):
                process.kill()
    written = store.writes()
    store.close()
    assert len(seen) >= 2
    rows = dict(FilePlace(tmp_path / "copy.db").rows("SELECT name, value FROM pd_counters"))
    left, right = ({name[len(side) :] for name in rows if name.startswith(side)} for side in (b"left", b"right"))
    assert left == right
    assert rows[b"writes"] == len(left) + 1 < written


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "empty", "link", "broken link", "folder"])
def test_nothing_that_has_the_name_is_replaced(database: Path, tmp_path: Path, kind: str) -> None:
    """Catches: an older backup lost for a newer one."""
    file = tmp_path / "copy.db"
    if kind == "folder":
        file.mkdir()
    elif "link" in kind:
        file.symlink_to(database if kind == "link" else tmp_path / "nowhere")
    else:
        file.write_bytes(b"" if kind == "empty" else b"kept")
    before = [path.lstat() for path in sorted(tmp_path.iterdir())]
    assert refused(lambda: backup(database, file)).code == "file_exists"
    assert [path.lstat() for path in sorted(tmp_path.iterdir())] == before


def test_a_name_that_was_taken_meanwhile_is_not_replaced_either(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: a look before the work instead of a name that decides."""
    file = tmp_path / "copy.db"
    reading = module._read_back
    monkeypatch.setattr(module, "_read_back", lambda part: (file.write_bytes(b"theirs"), reading(part))[1])
    assert refused(lambda: backup(database, file)).code == "file_exists"
    assert (file.read_bytes(), parts(tmp_path)) == (b"theirs", [])


def test_a_place_without_hard_links_gets_the_file_all_the_same(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: backups that cannot be made onto a memory stick."""

    def no_links(*_: object) -> None:
        raise PermissionError(1, "not here")

    monkeypatch.setattr(os, "link", no_links)
    backup(database, tmp_path / "copy.db")
    assert refused(lambda: backup(database, tmp_path / "copy.db")).code == "file_exists"
    assert FilePlace(tmp_path / "copy.db").rows("SELECT COUNT(*) FROM pd_counters") == [(1,)]
    assert parts(tmp_path) == []


@pytest.mark.parametrize(
    ("place_of", "rule"), [("nowhere/copy.db", "missing"), ("data/passdown.db/copy.db", "missing")]
)
def test_a_folder_that_is_not_there_is_refused(database: Path, tmp_path: Path, place_of: str, rule: str) -> None:
    """Catches: folders made on the way, or a fault of ours."""
    assert told(refused(lambda: backup(database, tmp_path / place_of))) == ("file_not_writable", rule)
    assert sorted(os.listdir(tmp_path)) == ["data"]


def test_a_disk_that_is_full_leaves_nothing(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches: half a backup under its name, and words about the store that was only read."""
    import errno

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    folder = tmp_path / "kept"
    folder.mkdir()
    assert told(refused(lambda: backup(database, folder / "copy.db"))) == ("file_not_writable", "full")
    assert os.listdir(folder) == []


def test_a_file_that_does_not_hold_what_was_written_is_no_backup(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: a backup that nobody read back."""
    reading = module._read_back

    def damaging(part: Path) -> Any:
        FilePlace(part).rows("UPDATE pd_counters SET value = 9")
        return reading(part)

    monkeypatch.setattr(module, "_read_back", damaging)
    assert told(refused(lambda: backup(database, tmp_path / "copy.db"))) == ("store_damaged", "read_back")
    assert sorted(os.listdir(tmp_path)) == ["data"]


def test_a_missing_store_and_one_without_its_tables_have_no_backup(database: Path, tmp_path: Path) -> None:
    """Catches: an empty backup of a mistyped name."""
    error = refused(lambda: backup(tmp_path / "none.db", tmp_path / "copy.db"))
    assert told(error) == ("store_not_readable", "missing")
    FilePlace(database).rows("DROP TABLE pd_tokens")
    error = refused(lambda: backup(database, tmp_path / "copy.db"))
    assert told(error) == ("store_not_readable", "damaged")
    assert sorted(os.listdir(tmp_path)) == ["data"]


@pytest.mark.parametrize("window", ["reading", "naming"])
def test_a_backup_killed_on_the_way_leaves_no_file_of_its_name(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    """Catches: a name that is given before the file is whole, and a leftover that stands in the way of the next one."""
    store = open_store(database, create=False)
    fill(FilePlace(database), store)
    store.close()
    folder = tmp_path / "kept"
    folder.mkdir()

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def at_sources(table: str, done: int) -> None:
        if table == "pd_sources" and done > 32:
            die()

    if window == "naming":
        monkeypatch.setattr(os, "link", die)
    process = os.fork()
    if process == 0:
        try:
            backup(database, folder / "copy.db", progress=at_sources if window == "reading" else None)
        finally:
            os._exit(0)
    monkeypatch.undo()
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert not os.path.lexists(folder / "copy.db")
    assert len(parts(folder)) == 1
    backup(database, folder / "copy.db")
    assert FilePlace(folder / "copy.db").everything() == FilePlace(database).everything()


# --- older schemas ------------------------------------------------------------------------------------------------


def test_an_older_file_is_backed_up_as_it_is_and_brought_up_in_the_copy(database: Path, tmp_path: Path) -> None:
    """Catches: a backup before an upgrade that makes the upgrade."""
    store = open_store(database, create=False)
    fill(FilePlace(database), store)
    store.close()
    make_older(FilePlace(database))
    before = files(database.parent)
    kept = {
        name: FilePlace(database).rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in ("pd_sources", "pd_tokens")
    }
    backup(database, tmp_path / "copy.db")
    assert files(database.parent) == before
    copy = FilePlace(tmp_path / "copy.db")
    assert schema_revision(tmp_path / "copy.db") == SCHEMA_HEAD
    assert {name: copy.rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in kept} == kept
    assert copy.rows("SELECT COUNT(*) FROM pd_replays") == [(0,)]


@pytest.mark.engines("postgresql", "mysql", "oceanbase")
def test_an_older_store_on_a_server_is_left_as_it_is(fresh_place: Place, tmp_path: Path) -> None:
    """Catches: a schema changed by a command that only reads."""
    fresh_place.open(create=True).close()
    make_older(fresh_place)
    error = refused(lambda: backup(fresh_place.target, tmp_path / "copy.db"))
    assert told(error) == ("store_not_readable", "schema_behind")
    assert fresh_place.rows("SELECT version_num FROM alembic_version") == [("0001",)]
    assert os.listdir(tmp_path) == []


def test_an_upgrade_tells_from_where_to_where_and_keeps_the_data(fresh_place: Place) -> None:
    """Catches: an upgrade that says something else than it did, or loses rows."""
    assert told(refused(lambda: upgrade_store(fresh_place.target))) == ("store_not_readable", "missing")
    store = fresh_place.open(create=True)
    store.write(put(b"kept", 3))
    store.close()
    make_older(fresh_place)
    assert schema_revision(fresh_place.target) == "0001"
    done = upgrade_store(fresh_place.target)
    assert (done, done.changed) == (Upgraded("0001", SCHEMA_HEAD), True)
    again = upgrade_store(fresh_place.target)
    assert (again, again.changed) == (Upgraded(SCHEMA_HEAD, SCHEMA_HEAD), False)
    assert fresh_place.everything()["pd_counters"] == [(b"kept", 3), (b"writes", 1)]


def test_a_newer_schema_is_neither_upgraded_nor_backed_up(fresh_place: Place, tmp_path: Path) -> None:
    """Catches: an old program that copies only what it knows."""
    fresh_place.open(create=True).close()
    fresh_place.rows("UPDATE alembic_version SET version_num = '0999'")
    assert refused(lambda: upgrade_store(fresh_place.target)).code == "schema_too_new"
    assert refused(lambda: backup(fresh_place.target, tmp_path / "copy.db")).code == "schema_too_new"
    assert not (tmp_path / "copy.db").exists()
