"""Files and folders that are missing, damaged, foreign, full or closed to us: a typed refusal, nothing half written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from storage_support import answer, child, files, put, raw, refused, rows, told, value_of

from passdown.storage import open_store


def test_a_missing_store_is_not_made_unless_asked(tmp_path: Path) -> None:
    """Catches: a read that leaves an empty store behind."""
    for path in (tmp_path / "passdown.db", tmp_path / "deep" / "er" / "passdown.db"):
        error = refused(lambda path=path: open_store(path, create=False))
        assert told(error) == ("store_not_readable", "missing")
    assert os.listdir(tmp_path) == []


def test_a_new_store_and_its_folder_are_private(tmp_path: Path) -> None:
    """Catches: files that other users of the machine can read, whatever the umask is."""
    path = tmp_path / "deep" / "data" / "passdown.db"
    before = os.umask(0)
    try:
        store = open_store(path, create=True)
        store.write(put(b"a"))
    finally:
        os.umask(before)
    modes = {name: (path.parent / name).stat().st_mode & 0o777 for name in os.listdir(path.parent)}
    store.close()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert modes == dict.fromkeys(["passdown.db", "passdown.db-wal", "passdown.db-shm", "passdown.db.lock"], 0o600)


def test_an_odd_name_is_a_name_like_any_other(tmp_path: Path) -> None:
    """Catches: characters of the path read as parts of a URI."""
    path = tmp_path / "100% of #1? 数据 %41" / "a?mode=memory#x.db"
    store = open_store(path, create=True)
    store.write(put(b"here", 5))
    store.close()
    assert path.stat().st_size > 0
    again = open_store(path, create=False)
    assert value_of(again, b"here") == 5
    again.close()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    """Catches: a bare OSError or ValueError."""
    assert refused(lambda: open_store(tmp_path / name, create=True)).code == "store_not_readable"


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """Catches: an unclear failure of SQLite."""
    assert told(refused(lambda: open_store(tmp_path, create=True))) == ("store_not_readable", "not_a_file")


def test_a_symlink_to_the_store_shares_its_lock(database: Path, tmp_path: Path) -> None:
    """Catches: two lock files for one database."""
    link = tmp_path / "link.db"
    link.symlink_to(database)
    store = open_store(link, create=False)
    store.write(put(b"through"))
    store.close()
    assert "link.db.lock" not in os.listdir(tmp_path)
    assert "passdown.db.lock" in os.listdir(database.parent)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("damage", ["text", "zeros", "half", "header"])
def test_a_damaged_file_is_refused_and_stays_as_it_is(database: Path, damage: str, create: bool) -> None:
    """Catches: a store made anew over the remains of the old one."""
    good = database.read_bytes()
    bad = {
        "text": b"This is not a database.\n" * 500,
        "zeros": bytes(len(good)),
        "half": good[: len(good) // 2 - 100],
        "header": b"X" * 100 + good[100:],
    }[damage]
    database.write_bytes(bad)
    before = files(database.parent)
    assert told(refused(lambda: open_store(database, create=create))) == ("store_not_readable", "damaged")
    assert files(database.parent) == before


def test_damage_deep_in_the_file_is_found_when_it_is_read(database: Path) -> None:
    """Catches: a malformed page answered as missing rows or as a fault of ours."""
    store = open_store(database, create=False)
    store.write(lambda s: [put(b"%d" % n + b"x" * 1000, n)(s) for n in range(200)])
    store.close()
    root = rows(database, "SELECT rootpage FROM sqlite_master WHERE name = 'pd_counters'")[0][0]
    with database.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xee" * 4096)
    store = open_store(database, create=False)
    error = refused(lambda: store.read(lambda s: s.all("SELECT * FROM pd_counters")))
    assert told(error) == ("store_not_readable", "damaged")
    assert told(refused(lambda: store.write(put(b"more")))) == ("store_not_readable", "damaged")
    store.close()


def test_a_database_of_another_program_is_not_adopted(tmp_path: Path) -> None:
    """Catches: our tables appearing in somebody else's file, even one that uses the same migration tool."""
    path = tmp_path / "other.db"
    other = raw(path)
    other.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    other.execute("INSERT INTO alembic_version VALUES ('0001')")
    other.close()
    before = files(tmp_path)
    for create in (True, False):
        error = refused(lambda create=create: open_store(path, create=create))
        assert told(error) == ("store_not_readable", "foreign")
    assert files(tmp_path) == before


def test_a_store_in_a_folder_that_nobody_may_write_is_read_and_not_written(public_folder: Path) -> None:
    """Catches: reading that needs a file beside the database, and a write that fails without a type."""
    path = public_folder / "passdown.db"
    store = open_store(path, create=False)
    store.write(put(b"known", 7))
    store.close()
    (public_folder / "passdown.db.lock").unlink()
    path.chmod(0o444)
    public_folder.chmod(0o555)
    before = files(public_folder)
    assert answer(child("unprivileged", path, "known")) == [7, ["store_not_writable", "denied"]]
    assert files(public_folder) == before


def test_a_reader_without_rights_sees_what_a_running_writer_committed(public_folder: Path) -> None:
    """Catches: a log beside the database ignored by declaring the database immutable."""
    path = public_folder / "passdown.db"
    with_log = open_store(path, create=False)
    with_log.write(put(b"known", 8))
    public_folder.chmod(0o555)
    assert (public_folder / "passdown.db-wal").stat().st_size > 0
    assert answer(child("unprivileged", path, "known"))[0] == 8
    public_folder.chmod(0o755)
    with_log.close()


def test_a_log_that_a_crash_left_in_a_closed_folder_is_not_ignored(public_folder: Path) -> None:
    """Catches: an old state shown as the current one, because the log could not be recovered."""
    path = public_folder / "passdown.db"
    store = open_store(path, create=False)
    store.write(put(b"known", 9))
    log = (public_folder / "passdown.db-wal").read_bytes()
    image = path.read_bytes()
    store.close()
    path.write_bytes(image)
    (public_folder / "passdown.db-wal").write_bytes(log)
    public_folder.chmod(0o555)
    assert answer(child("unprivileged", path, "known"))[0] == "store_not_readable"
    public_folder.chmod(0o755)
    store = open_store(path, create=False)
    assert value_of(store, b"known") == 9
    store.close()


def test_a_read_of_a_frozen_file_begins_again_when_somebody_commits_meanwhile(public_folder: Path) -> None:
    """Catches: pages of two states in one read where no lock can be taken."""
    path = public_folder / "passdown.db"
    store = open_store(path, create=False)
    store.write(put(b"changing", 1))
    store.close()
    public_folder.chmod(0o555)
    reader = child("unprivileged_read_beside_a_writer", path)
    assert reader.stdout.readline() == "inside\n"
    public_folder.chmod(0o755)
    store = open_store(path, create=False)
    store.write(lambda s: s.run("UPDATE pd_counters SET value = 2 WHERE name = :n", n=b"changing"))
    public_folder.chmod(0o555)
    assert answer(reader, say="\n") == {"seen": [1, 2], "result": 2}
    public_folder.chmod(0o755)
    store.close()


def test_a_file_that_we_may_not_read_is_refused(public_folder: Path) -> None:
    """Catches: an untyped failure at the door."""
    (public_folder / "passdown.db").chmod(0o000)
    refusal = answer(child("unprivileged", public_folder / "passdown.db", "writes"))
    assert refusal == ["store_not_readable", "denied"]


def test_no_store_is_made_where_we_may_not_write(public_folder: Path) -> None:
    """Catches: an untyped failure, or a folder left behind."""
    public_folder.chmod(0o555)
    for path in (public_folder / "new.db", public_folder / "sub" / "new.db"):
        assert answer(child("unprivileged_create", path)) == ["store_not_writable", "denied"]
    assert os.listdir(public_folder) == ["passdown.db"]


def _whole(path: Path, told_by_child: dict[str, object]) -> None:
    """Nothing is damaged, every acknowledged write is there with all its 40 rows, and the refused one is not."""
    assert told_by_child["after"] is True
    assert told_by_child["reading"] == 40 * told_by_child["acknowledged"] + 1
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    parts = rows(path, "SELECT value, COUNT(*) FROM pd_counters WHERE instr(name, x'66696c6c2d') = 1 GROUP BY value")
    assert parts == [(number, 40) for number in range(told_by_child["acknowledged"])]


def test_a_file_that_may_not_grow_refuses_the_write_and_stays_whole(database: Path) -> None:
    """Catches: half a transaction after a failed write, and a store that stays broken when there is room again."""
    result = answer(child("fill", database, 64 * 1024))
    assert result["refusal"][0] == "store_not_writable"
    assert result["acknowledged"] > 0
    _whole(database, result)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte in memory, where we may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_refuses_the_write_and_the_store_stays_whole(small_disk: Path, migrated: Path) -> None:
    """Catches: the same on a real full file system; room returns when another file is removed."""
    path = small_disk / "passdown.db"
    shutil.copyfile(migrated, path)
    (small_disk / "ballast").write_bytes(bytes(200 * 1024))
    result = answer(child("fill", path, 0))
    assert result["refusal"][0] == "store_not_writable"
    assert result["acknowledged"] > 0
    _whole(path, result)


def test_a_full_disk_makes_no_half_store(small_disk: Path) -> None:
    """Catches: a first opening that fails and leaves a file that is never finished."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(960 * 1024))
    assert refused(lambda: open_store(small_disk / "passdown.db", create=True)).code == "store_not_writable"
    ballast.unlink()
    store = open_store(small_disk / "passdown.db", create=True)
    assert store.write(put(b"a")) is True
    store.close()


def test_the_last_reader_to_close_leaves_no_log_behind(database: Path) -> None:
    """Catches: read-only connections that leave files beside the database which no later reader can use."""
    store = open_store(database, create=False)
    assert store.writes() == 0
    store.close()
    assert os.listdir(database.parent) == ["passdown.db"]


def test_the_database_is_durable_and_keeps_a_log(database: Path) -> None:
    """Catches: a setting lost on the way: write-ahead log in the file, full synchronisation on the writer."""
    store = open_store(database, create=False)
    store.write(put(b"a"))
    assert store._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._writer.execute("PRAGMA foreign_keys").fetchone() == (0,)
    store.close()
    assert rows(database, "PRAGMA journal_mode") == [("wal",)]
    assert sqlite3.threadsafety == 3
