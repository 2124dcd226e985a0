"""How connections to a SQLite file are made, and what the file says about its schema.

Design: every function gives or judges a connection; none decides when. A connection begins its transactions explicitly
(``isolation_level=None``), never creates the file, and may pass from thread to thread as long as one uses it at a time.

Public operations: :func:`connect_writer`, :func:`connect_reader`, :func:`fingerprint`, :func:`schema_state`,
:func:`check_head`.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from passdown.kernel.errors import PassdownError
from passdown.storage.faults import os_refusal, primary_code, refusal
from passdown.storage.version import APPLICATION_ID, HEAD_ROWS, REVISION_QUERY, SchemaState, judge

BUSY_SECONDS: Final = 5.0
_CACHED_STATEMENTS: Final = 512
_CACHE_KIB: Final = 8_192
_JOURNAL_LIMIT_BYTES: Final = 64 * 1024 * 1024
_READ_ONLY_CODES: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})

Fingerprint = tuple[int, ...]


def connect_writer(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection that can write: durable at every commit. Raises ``sqlite3.Error``."""
    connection = _connect(path, "mode=rw", busy_seconds)
    try:
        _tune(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA journal_size_limit={_JOURNAL_LIMIT_BYTES}")
        # Without it REPLACE deletes rows past the triggers that keep them.
        connection.execute("PRAGMA recursive_triggers=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> tuple[sqlite3.Connection, bool]:
    """A connection that can only read, and whether it is *frozen*. Raises ``sqlite3.Error``.

    Readers of a write-ahead log share an index file beside the database. Where the folder takes no new file and nobody
    left one, SQLite cannot open the database at all, unless it is told that the file never changes (``immutable``).
    That is true of a medium that nobody can write; it may be false where only *we* may not write. So it is done only
    while no log holds committed pages, and a frozen connection serves one read, after which the caller compares
    :func:`fingerprint` with what it was before.
    """
    folder = path.parent
    # Opened for writing where possible, although it never writes: only such a connection removes the log when it is the
    # last to close.
    mode = "mode=rw" if os.access(path, os.W_OK) and os.access(folder, os.W_OK) else "mode=ro"
    connection = _connect(path, mode, busy_seconds)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.Error as error:
        connection.close()
        if primary_code(error) not in _READ_ONLY_CODES or _log_size(path) > 0:
            raise
        return _read_only(_connect(path, "mode=ro&immutable=1", busy_seconds)), True
    except BaseException:
        connection.close()
        raise
    return _read_only(connection), False


def fingerprint(path: Path) -> Fingerprint:
    """What changes when somebody commits to the file or checkpoints into it: identity, size, times, size of the log.

    Raises ``store_not_readable``.
    """
    seen = _stat(path, writing=False)
    return (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, _log_size(path))


def identity(path: Path, *, writing: bool) -> tuple[int, int]:
    """Device and inode of the file; raises ``store_not_readable`` or ``store_not_writable`` if it is not there."""
    seen = _stat(path, writing=writing)
    return seen.st_dev, seen.st_ino


def schema_state(connection: sqlite3.Connection) -> SchemaState:
    """Compare the file with this version: an empty database is ``absent``, an older one ``behind``.

    Raises ``schema_too_new``, or ``store_not_readable`` (``foreign``, ``damaged``). Runs inside one transaction of its
    own, so that a migration committed meanwhile is seen whole or not at all.
    """
    try:
        connection.execute("BEGIN")
        try:
            if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
                return "absent"
            if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                raise PassdownError("store_not_readable", rule="foreign")
            has_version = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"
            if connection.execute(has_version).fetchone() is None:
                return "absent"
            return judge(connection.execute(REVISION_QUERY).fetchall())
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise refusal(error, writing=False) from error


def check_head(connection: sqlite3.Connection) -> None:
    """Inside a transaction: refuse if another version migrated the store since it was opened.

    As the first statement it also fixes the snapshot of a read. Raises ``sqlite3.Error`` besides the refusals.
    """
    rows = connection.execute(REVISION_QUERY).fetchall()
    if rows != HEAD_ROWS and judge(rows) != "current":
        raise PassdownError("store_not_readable", rule="schema_behind")


def _connect(path: Path, mode: str, busy_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
    )
    try:
        # A file that was received may hold views and triggers that call functions.
        connection.execute("PRAGMA trusted_schema=OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        _tune(connection)
        connection.execute("PRAGMA query_only=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _stat(path: Path, *, writing: bool) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise os_refusal(error, writing=writing) from error


def _tune(connection: sqlite3.Connection) -> None:
    """Settings that make SQLite look into the file, unlike those at connecting."""
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    connection.execute("PRAGMA temp_store=MEMORY")


def _log_size(path: Path) -> int:
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0
