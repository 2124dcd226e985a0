"""Opening a store: is it there, is it ours, is its schema the one this version writes?

Design: an up-to-date store is opened by reading three rows. Anything that changes the file (creating it, migrating it)
happens under the same turn that writers take, after looking again, so that of many processes that open a new store at
the same time one does the work and the others find it done. A file that is not a store of ours is never written.

A database on a server is opened by :mod:`passdown.storage.sql_opening`, which alone loads SQLAlchemy.

Public operation: :func:`open_store`.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from pathlib import Path
from typing import Final

from passdown.kernel.errors import PassdownError
from passdown.storage.address import locate
from passdown.storage.faults import is_busy, os_refusal, refusal
from passdown.storage.session import Store
from passdown.storage.sqlite_connect import connect_reader, connect_writer, schema_state
from passdown.storage.sqlite_store import SqliteStore
from passdown.storage.version import APPLICATION_ID, SchemaState

WAIT_SECONDS: Final = 10.0
MIGRATION_WAIT_SECONDS: Final = 60.0


def open_store(target: Path | str, *, create: bool, migrate: bool = True, wait_seconds: float = WAIT_SECONDS) -> Store:
    """Open the store in the SQLite file ``target`` (a ``Path``), or in the database that ``target`` (a URL) names.

    URLs: ``sqlite:///PATH``, ``postgresql://``, ``mysql://`` or ``mariadb://``, ``oceanbase://``; their form and their
    refusals (``invalid_request``) are those of :mod:`passdown.storage.address`.

    ``create``: make what is missing: the file (mode 0600) and its folder (0700), or our tables in the empty database of
    a server; otherwise ``store_not_readable`` with rule ``missing``. ``migrate``: bring an older schema up to this
    version; otherwise it is ``store_not_readable`` with rule ``schema_behind``. ``wait_seconds`` bounds how long an
    operation waits for others before it is ``store_busy``.

    Further refusals: ``store_not_readable`` (``damaged``, ``foreign``, ``denied``, ``not_a_file``, ``recovery``; on
    servers ``unreachable``, ``other_engine``, ``driver_missing``), ``store_not_writable`` (``denied``, ``read_only``,
    ``full``, ``unreachable``), ``schema_too_new`` with ``found`` and ``known``. Close the store after use.
    """
    place = locate(target) if isinstance(target, str) else target
    if isinstance(place, Path):
        return _open_file(place, create=create, migrate=migrate, wait_seconds=wait_seconds)
    from passdown.storage.sql_opening import open_server

    return open_server(place, create=create, migrate=migrate, wait_seconds=wait_seconds)


def _open_file(path: Path, *, create: bool, migrate: bool, wait_seconds: float) -> Store:
    try:
        path = Path(os.path.realpath(path))
        there = _is_there(path)
    except ValueError as error:  # a NUL in the name
        raise PassdownError("store_not_readable", rule="unreachable") from error
    if not there and not create:
        raise PassdownError("store_not_readable", rule="missing")
    state: SchemaState = _state(path) if there else "absent"
    store = SqliteStore(path, wait_seconds=wait_seconds)
    try:
        if state != "current":
            if not migrate:
                raise PassdownError("store_not_readable", rule="schema_behind")
            _bring_up(store, path)
    except BaseException:
        store.close()
        raise
    return store


def _is_there(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise os_refusal(error, writing=False) from error
    if not stat.S_ISREG(mode):
        raise PassdownError("store_not_readable", rule="not_a_file")
    return True


def _state(path: Path) -> SchemaState:
    try:
        connection, _ = connect_reader(path)
    except sqlite3.Error as error:
        raise refusal(error, writing=False) from error
    try:
        return schema_state(connection)
    finally:
        connection.close()


def _bring_up(store: SqliteStore, path: Path) -> None:
    try:
        _make_folder(path.parent)
    except OSError as error:
        raise os_refusal(error, writing=True) from error
    deadline = time.monotonic() + MIGRATION_WAIT_SECONDS
    with store.turn(deadline):
        try:
            _make_file(path)
        except OSError as error:
            raise os_refusal(error, writing=True) from error
        if _state(path) == "current":
            return
        try:
            connection = connect_writer(path)
            try:
                _mark(connection, deadline)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise refusal(error, writing=True) from error
        # 400 ms of imports, paid only by whoever finds the schema behind.
        from passdown.storage.migrate import upgrade

        upgrade(path)


def _mark(connection: sqlite3.Connection, deadline: float) -> None:
    """Sign the file as ours and switch it to the write-ahead log; both survive in its header.

    The switch needs the file for itself and does not wait for readers, so it is repeated.
    """
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != ("wal",):
            raise PassdownError("store_not_writable", rule="no_wal")
        return


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(folder.parent)


def _make_file(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a new name in ``folder`` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
