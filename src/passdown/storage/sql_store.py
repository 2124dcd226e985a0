"""A database server as a :class:`passdown.storage.Store`, through SQLAlchemy Core.

States of a store: open, closed. Two small pools of connections: one only reads, each transaction over a snapshot; one
writes, READ COMMITTED. The threads of a process get a connection to write in order of arrival, after that the server
orders the writers; what must not race is decided by comparisons and keys.

Invariants: a connection is used by one thread at a time, never crosses a fork, and is thrown away when it was lost or
interrupted, so that the same store works again when the server is back. The first statement of every transaction
compares the schema. The counter of writes is the last row that a transaction touches: it is one row that all writers
share, so touching it last keeps the time short in which they wait for each other (the flush of one commit), and as all
take it last it can close no circle of waiters. A transaction that changed nothing is rolled back and wakes nobody.

Retries: deadlocks, lock waits, serialisation failures and connections lost before the commit was sent run the work
again, and so does a key that was taken between a look and an INSERT or UPDATE (a few times; a caller that is simply
wrong gets its ``internal_error``). A commit whose answer was lost is not repeated: the work may be done. It is
``store_outcome_unknown``, and the caller repeats the whole request, whose second commit finds the first.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import create_engine, text
from sqlalchemy.engine import Connection
from sqlalchemy.engine import Engine as SqlEngine

from passdown.kernel.errors import PassdownError
from passdown.storage.address import Address
from passdown.storage.attempts import AgainError, attempts
from passdown.storage.locks import FifoQueue
from passdown.storage.server_engine import REPEATABLE, Engine, Fault, OtherEngineError, Role, fault_of, refusal
from passdown.storage.session import Session, T
from passdown.storage.sql_session import FAILURES, SqlSession
from passdown.storage.version import HEAD_ROWS, REVISION_QUERY, UPGRADES_TABLE, SchemaState, judge

READERS: Final = 16
WRITERS: Final = 8
IDLE_SECONDS: Final = 1_800
_COUNT_WRITE: Final = text("UPDATE pd_counters SET value = value + 1 WHERE name = :name")
_WRITES: Final = "SELECT value FROM pd_counters WHERE name = :name"
_REVISION: Final = text(REVISION_QUERY)
_COUNTER: Final = "pd_counters"
_VERSIONS: Final = "alembic_version"
_CERTAIN: Final = frozenset({Fault.CONSTRAINT, Fault.KEY, Fault.IMMUTABLE, Fault.FULL, Fault.READ_ONLY, Fault.DENIED})
_KEY_ATTEMPTS: Final = 3
_CONNECT_FAILURES: Final = (*FAILURES, OtherEngineError)


class SqlStore:
    """See the module; made by :func:`passdown.storage.open_store`."""

    def __init__(self, engine: Engine, address: Address, *, wait_seconds: float) -> None:
        self.url = address.url
        self.engine = engine.name
        self._engine = engine
        self._wait_seconds = wait_seconds
        self._closed = False
        self._local = threading.local()
        self._queue = FifoQueue(WRITERS)
        self._readers = pooled(engine, address, "read", wait_seconds, READERS)
        self._writers = pooled(engine, address, "write", wait_seconds, WRITERS)
        _STORES.add(self)

    # --- the operations of the protocol ----------------------------------------------------------------------------

    def read(self, work: Callable[[Session], T]) -> T:
        """See :meth:`passdown.storage.Store.read`."""
        return attempts(lambda: self._read_once(work), time.monotonic() + self._wait_seconds)

    def write(self, work: Callable[[Session], T]) -> T:
        """See :meth:`passdown.storage.Store.write`."""
        if getattr(self._local, "writing", False):
            raise PassdownError("internal_error", rule="nested_write")
        taken: list[BaseException] = []
        deadline = time.monotonic() + self._wait_seconds
        queue = self._queue
        if not queue.acquire(deadline):
            raise PassdownError("store_busy")
        self._local.writing = True
        try:
            return attempts(lambda: self._write_once(work, taken), deadline)
        finally:
            self._local.writing = False
            queue.release()

    def writes(self) -> int:
        """See :meth:`passdown.storage.Store.writes`."""
        row = self.read(lambda session: session.one(_WRITES, name=b"writes"))
        return int(row[0]) if row is not None else 0

    def close(self) -> None:
        """See :meth:`passdown.storage.Store.close`."""
        self._closed = True
        self._readers.dispose()
        self._writers.dispose()

    def schema_state(self) -> SchemaState:
        """Compare the database with this version: without our tables it is ``absent``, with older ones ``behind``.

        Raises ``schema_too_new``, or ``store_not_readable`` (``foreign`` for tables of another program).
        """
        return attempts(self._schema_state_once, time.monotonic() + self._wait_seconds)

    # --- writing ---------------------------------------------------------------------------------------------------

    def _write_once(self, work: Callable[[Session], T], taken: list[BaseException]) -> T:
        connection = self._connect(self._writers, writing=True)
        session = SqlSession(connection, self._engine, writable=True)
        sound = False
        try:
            self._begin(connection, session, writing=True)
            try:
                result = work(session)
            finally:
                session.end()
            self._raise_fault(session, writing=True, taken=taken)
            if session.changed:
                self._count(connection)
                self._commit(connection)
            else:
                self._roll_back(connection, writing=True)
            sound = True
            return result
        except PassdownError as error:
            self._raise_fault(session, writing=True, taken=taken)
            sound = session.fault is None
            raise error
        except Exception:
            sound = session.fault is None
            raise
        finally:
            self._give_back(connection, session, sound=sound)

    def _count(self, connection: Connection) -> None:
        try:
            counted = connection.execute(_COUNT_WRITE, {"name": b"writes"}).rowcount
        except FAILURES as error:
            raise self._met(error, writing=True) from error
        if counted != 1:
            raise PassdownError("store_not_readable", rule="damaged")

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except FAILURES as error:
            fault = fault_of(self._engine, error)
            if fault is Fault.AGAIN:
                raise AgainError from error
            if fault in _CERTAIN:
                raise refusal(fault, writing=True) from error
            raise PassdownError("store_outcome_unknown") from error

    # --- reading ---------------------------------------------------------------------------------------------------

    def _read_once(self, work: Callable[[Session], T]) -> T:
        connection = self._connect(self._readers, writing=False)
        session = SqlSession(connection, self._engine, writable=False)
        sound = False
        try:
            self._begin(connection, session, writing=False)
            try:
                result = work(session)
            finally:
                session.end()
            self._raise_fault(session, writing=False)
            sound = True
            return result
        except PassdownError as error:
            self._raise_fault(session, writing=False)
            sound = session.fault is None
            raise error
        except Exception:
            sound = session.fault is None
            raise
        finally:
            self._give_back(connection, session, sound=sound)

    def _schema_state_once(self) -> SchemaState:
        connection = self._connect(self._readers, writing=False)
        session = SqlSession(connection, self._engine, writable=False)
        sound = False
        try:
            state = state_of(connection, self._engine)
            sound = True
            return state
        except FAILURES as error:
            raise self._met(error, writing=False) from error
        finally:
            self._give_back(connection, session, sound=sound)

    # --- shared ----------------------------------------------------------------------------------------------------

    def _connect(self, pool: SqlEngine, *, writing: bool) -> Connection:
        if self._closed:
            raise PassdownError("internal_error", rule="store_closed")
        try:
            return pool.connect()
        except _CONNECT_FAILURES as error:
            fault = fault_of(self._engine, error)
            if fault in REPEATABLE:
                raise AgainError from error
            raise refusal(fault, writing=writing) from error

    def _begin(self, connection: Connection, session: SqlSession, *, writing: bool) -> None:
        """Begin, fix the snapshot of a read, and refuse if another version migrated the store since it was opened."""
        try:
            if not writing and self._engine.begin_read is not None:
                connection.exec_driver_sql(self._engine.begin_read)
            rows = [tuple(row) for row in connection.execute(_REVISION)]
        except FAILURES as error:
            session.error, session.fault = error, fault_of(self._engine, error)
            raise self._met(error, writing=writing) from error
        if rows != HEAD_ROWS and judge(rows) != "current":
            raise PassdownError("store_not_readable", rule="schema_behind")

    def _met(self, error: BaseException, *, writing: bool) -> Exception:
        """What to raise for an error that came before the commit: again, or the refusal."""
        fault = fault_of(self._engine, error)
        refused = refusal(fault, writing=writing)
        return AgainError(refused) if fault in REPEATABLE or fault is Fault.LOST else refused

    def _raise_fault(self, session: SqlSession, *, writing: bool, taken: list[BaseException] | None = None) -> None:
        if session.error is None or session.fault is None:
            return
        if session.fault is Fault.KEY and taken is not None:
            taken.append(session.error)
            if len(taken) < _KEY_ATTEMPTS:
                raise AgainError(refusal(Fault.KEY, writing=writing)) from session.error
        raise self._met(session.error, writing=writing) from session.error

    def _roll_back(self, connection: Connection, *, writing: bool) -> None:
        try:
            connection.rollback()
        except FAILURES as error:
            raise self._met(error, writing=writing) from error

    def _give_back(self, connection: Connection, session: SqlSession, *, sound: bool) -> None:
        """Roll back what is open; a connection that met an error of its own or was interrupted is thrown away."""
        if session.inherited:
            _INHERITED.append(connection)  # ending it would talk into the transaction of the parent
            return
        try:
            if sound and not self._closed:
                connection.rollback()
            else:
                connection.invalidate()
        except FAILURES:
            connection.invalidate()
        finally:
            connection.close()

    def _leave_to_parent(self) -> None:
        """In a forked child: forget the connections without closing them, which would end the parent's."""
        for pool in (self._readers, self._writers):
            _INHERITED.append(pool.pool)
            pool.dispose(close=False)
        self._local = threading.local()
        self._queue = FifoQueue(WRITERS)


def pooled(engine: Engine, address: Address, role: Role, wait_seconds: float, size: int) -> SqlEngine:
    """A pool of at most ``size`` connections for ``role``; who finds none within ``wait_seconds`` is refused."""
    return create_engine(
        engine.dialect,
        creator=lambda: engine.connect(address, role, wait_seconds),
        pool_size=size,
        max_overflow=0,
        pool_timeout=wait_seconds,
        pool_recycle=IDLE_SECONDS,
        pool_use_lifo=True,
        pool_reset_on_return=None,
        hide_parameters=True,
        **engine.arguments,
    )


def state_of(connection: Connection, engine: Engine) -> SchemaState:
    """What the database says about its schema; see :meth:`SqlStore.schema_state`. SQLAlchemy's errors pass."""
    tables = names(connection, engine.ddl.tables)
    if not tables:
        return "absent"
    rows = [tuple(row) for row in connection.execute(_REVISION)] if _VERSIONS in tables else []
    # These two come first, so what holds nothing else is an upgrade that was cut short.
    if _COUNTER not in tables and (rows or not tables <= {_VERSIONS, UPGRADES_TABLE}):
        raise PassdownError("store_not_readable", rule="foreign")
    return judge(rows)


def names(connection: Connection, sql: str) -> set[str]:
    """The names that a query over the catalog answers, in lower case."""
    found: set[Any] = {row[0] for row in connection.execute(text(sql))}
    return {(name.decode() if isinstance(name, bytes) else str(name)).lower() for name in found}


_STORES: Final[weakref.WeakSet[SqlStore]] = weakref.WeakSet()
_INHERITED: Final[list[object]] = []


def _after_fork_in_child() -> None:
    for store in list(_STORES):
        store._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork_in_child)
