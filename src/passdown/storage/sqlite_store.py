"""SQLite as a :class:`passdown.storage.Store`.

States of a store: open, closed, or *forked in use* (a child of a process that was inside a transaction when it forked;
it refuses everything, since SQLite's own bookkeeping is then unknown). One connection writes, a small last-in-first-out
pool reads, each with a snapshot of its own.

Invariants: a writer has the turn of the queue, then the file lock, then the write lock of the database, always in this
order; a connection is used by one thread at a time; no connection crosses a fork; a file that is not the one that was
opened is never written. A transaction that changed nothing is rolled back: it costs no disk access and wakes nobody.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from passdown.kernel.errors import PassdownError
from passdown.storage.attempts import AgainError, attempts
from passdown.storage.faults import is_busy, os_refusal, refusal
from passdown.storage.locks import FifoQueue, FileLock
from passdown.storage.session import Session, T
from passdown.storage.sqlite_connect import (
    BUSY_SECONDS,
    check_head,
    connect_reader,
    connect_writer,
    fingerprint,
    identity,
)
from passdown.storage.sqlite_session import SqliteSession

IDLE_READERS: Final = 8
_COUNT_WRITE: Final = "UPDATE pd_counters SET value = value + 1 WHERE name = :name"
_WRITES: Final = "SELECT value FROM pd_counters WHERE name = :name"


class SqliteStore:
    """See the module; made by :func:`passdown.storage.open_store`."""

    engine = "sqlite"

    def __init__(self, path: Path, *, wait_seconds: float) -> None:
        self.url = f"sqlite:///{path}"
        self.path = path
        self._wait_seconds = wait_seconds
        self._busy_seconds = min(BUSY_SECONDS, wait_seconds)
        self._identity: tuple[int, int] | None = None
        self._closed = False
        self._forked_in_use = False
        self._renew()
        _STORES.add(self)

    def _renew(self) -> None:
        self._mutex = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0
        self._writer: sqlite3.Connection | None = None
        self._queue = FifoQueue()
        self._file_lock = FileLock(self.path.with_name(self.path.name + ".lock"))
        self._writing_thread: int | None = None

    # --- the operations of the protocol ----------------------------------------------------------------------------

    def read(self, work: Callable[[Session], T]) -> T:
        """See :meth:`passdown.storage.Store.read`."""
        return attempts(lambda: self._read_once(work), time.monotonic() + self._wait_seconds)

    def write(self, work: Callable[[Session], T]) -> T:
        """See :meth:`passdown.storage.Store.write`."""
        deadline = time.monotonic() + self._wait_seconds
        with self.turn(deadline):
            return attempts(lambda: self._write_once(work), deadline)

    def writes(self) -> int:
        """See :meth:`passdown.storage.Store.writes`."""
        row = self.read(lambda session: session.one(_WRITES, name=b"writes"))
        return int(row[0]) if row is not None else 0

    def close(self) -> None:
        """See :meth:`passdown.storage.Store.close`."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        if self._queue.acquire(time.monotonic() + self._wait_seconds):
            self._drop_writer()
            self._file_lock.close()
            self._queue.release()

    # --- the turn to write -----------------------------------------------------------------------------------------

    @contextmanager
    def turn(self, deadline: float) -> Iterator[None]:
        """Hold the queue and the file lock, whichever comes later by ``deadline``; else ``store_busy``."""
        self._check_usable()
        if self._writing_thread == threading.get_ident():
            raise PassdownError("internal_error", rule="nested_write")
        if not self._queue.acquire(deadline):
            raise PassdownError("store_busy")
        queue, process = self._queue, os.getpid()
        try:
            try:
                locked = self._file_lock.acquire(deadline)
            except OSError as error:
                raise os_refusal(error, writing=True) from error
            if not locked:
                raise PassdownError("store_busy")
            self._writing_thread = threading.get_ident()
            try:
                yield
            finally:
                # In a child that was forked inside the turn, queue and lock are new, and the old ones are the parent's.
                if os.getpid() == process:
                    self._writing_thread = None
                    self._file_lock.release()
        finally:
            if os.getpid() == process:
                queue.release()

    def _write_once(self, work: Callable[[Session], T]) -> T:
        self._check_usable()
        self._check_identity(writing=True)
        healthy = False
        session: SqliteSession | None = None
        try:
            connection = self._open_writer()
            connection.execute("BEGIN IMMEDIATE")
            check_head(connection)
            before = connection.total_changes
            session = SqliteSession(connection, writable=True)
            try:
                result = work(session)
            finally:
                session.end()
            _raise_fault(session, writing=True)
            if connection.total_changes == before:
                connection.execute("ROLLBACK")
            else:
                if connection.execute(_COUNT_WRITE, {"name": b"writes"}).rowcount != 1:
                    raise PassdownError("store_not_readable", rule="damaged")
                connection.execute("COMMIT")
            healthy = True
            return result
        except sqlite3.Error as error:
            if is_busy(error):
                raise AgainError from error
            raise refusal(error, writing=True) from error
        except PassdownError as error:
            if session is not None and is_busy(session.fault):
                raise AgainError from session.fault
            raise error
        finally:
            if not healthy and not (session is not None and session.inherited):
                self._undo_write(session)

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = connect_writer(self.path, busy_seconds=self._busy_seconds)
        return self._writer

    def _undo_write(self, session: SqliteSession | None) -> None:
        """Roll back; a connection that met an error of its own is not trusted further."""
        if self._writer is None:
            return
        if session is None or session.fault is not None:
            self._drop_writer()
            return
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop_writer()

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    def _read_once(self, work: Callable[[Session], T]) -> T:
        self._check_usable()
        self._check_identity(writing=False)
        with self._mutex:
            connection = self._idle.pop() if self._idle else None
            self._reading += 1
        session: SqliteSession | None = None
        frozen = False
        try:
            before = fingerprint(self.path) if connection is None else ()
            if connection is None:
                connection, frozen = connect_reader(self.path, busy_seconds=self._busy_seconds)
            connection.execute("BEGIN")
            check_head(connection)
            session = SqliteSession(connection, writable=False)
            try:
                result = work(session)
            finally:
                session.end()
            _raise_fault(session, writing=False)
            if frozen and fingerprint(self.path) != before:
                raise AgainError from PassdownError("store_busy")
            return result
        except sqlite3.Error as error:
            if is_busy(error):
                raise AgainError from error
            raise refusal(error, writing=False) from error
        except PassdownError as error:
            if session is not None and is_busy(session.fault):
                raise AgainError from session.fault
            raise error
        finally:
            if session is None or not session.inherited:
                healthy = session is not None and session.fault is None and not frozen
                self._give_back(connection, reusable=healthy)

    def _give_back(self, connection: sqlite3.Connection | None, *, reusable: bool) -> None:
        if connection is not None and reusable:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                reusable = False
        with self._mutex:
            self._reading -= 1
            if connection is not None and reusable and not self._closed and len(self._idle) < IDLE_READERS:
                self._idle.append(connection)
                connection = None
        if connection is not None:
            connection.close()

    # --- shared ----------------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self._closed:
            raise PassdownError("internal_error", rule="store_closed")
        if self._forked_in_use:
            raise PassdownError("internal_error", rule="forked_in_use")

    def _check_identity(self, *, writing: bool) -> None:
        """A file that was removed or replaced would take writes that nobody finds again."""
        found = identity(self.path, writing=writing)
        if self._identity is None:
            self._identity = found
        elif found != self._identity:
            raise PassdownError("store_not_writable" if writing else "store_not_readable", rule="replaced")

    # --- fork ------------------------------------------------------------------------------------------------------

    def _before_fork(self) -> None:
        """Close what is idle, so that the child starts without any state of SQLite, and hold still until it is done."""
        self._mutex.acquire()
        while self._idle:
            self._idle.pop().close()
        self._fork_has_turn = self._queue.acquire(0.0)
        if self._fork_has_turn:
            self._drop_writer()

    def _after_fork_in_parent(self) -> None:
        if self._fork_has_turn:
            self._queue.release()
        self._mutex.release()

    def _after_fork_in_child(self) -> None:
        self._forked_in_use |= self._reading > 0 or not self._fork_has_turn
        if self._writer is not None:
            _INHERITED.append(self._writer)  # closing it could touch what the parent is writing
        self._file_lock.abandon()
        self._renew()


def _raise_fault(session: SqliteSession, *, writing: bool) -> None:
    if session.fault is not None:
        raise refusal(session.fault, writing=writing) from session.fault


_STORES: Final[weakref.WeakSet[SqliteStore]] = weakref.WeakSet()
_INHERITED: Final[list[sqlite3.Connection]] = []
_fork_lock = threading.Lock()
_forking: list[SqliteStore] = []


def _before_fork() -> None:
    _fork_lock.acquire()
    _forking[:] = list(_STORES)
    for store in _forking:
        store._before_fork()


def _after_fork_in_parent() -> None:
    while _forking:
        _forking.pop()._after_fork_in_parent()
    _fork_lock.release()


def _after_fork_in_child() -> None:
    while _forking:
        _forking.pop()._after_fork_in_child()
    _fork_lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
