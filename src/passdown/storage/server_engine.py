"""What a server engine is made of: the few things in which PostgreSQL, MariaDB and OceanBase differ.

Design: :class:`~passdown.storage.sql_store.SqlStore` knows transactions, an :class:`Engine` knows one server: how to
connect, what its errors mean, how to ask which tables there are, how an upgrade locks out other upgrades. One small
file for each engine makes one such description; this file loads it when its scheme is first met.

Public operations: :func:`engine_named`, :func:`refusal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal

from passdown.kernel.errors import PassdownError
from passdown.storage.address import Address
from passdown.storage.ddl import Ddl

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

Role = Literal["read", "write", "upgrade"]

CONNECT_SECONDS: Final = 5
"""How long a connection may take to be made; a server that does not answer by then counts as unreachable."""

ANSWER_SECONDS: Final = 60
"""How long a statement may go without an answer before the connection counts as lost."""


class Fault(Enum):
    """What an error of a driver means to the store."""

    KEY = auto()
    """A primary or unique key is taken."""
    CONSTRAINT = auto()
    IMMUTABLE = auto()
    AGAIN = auto()
    """Deadlock, lock wait, serialisation, too many connections: the server undid the transaction, repeat it."""
    SLOW = auto()
    """The server gave a statement up: repeat the transaction, unless that was the commit, whose outcome is unknown."""
    LOST = auto()
    """No connection, or none any more."""
    DENIED = auto()
    MISSING = auto()
    """No such database, or not the tables of a store."""
    READ_ONLY = auto()
    FULL = auto()
    OTHER_ENGINE = auto()
    STATEMENT = auto()
    """A fault of ours: everything that has no meaning above."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One kind of server.

    ``dialect`` is the URL prefix by which SQLAlchemy finds its dialect, ``arguments`` go to ``create_engine``.
    ``connect(address, role, wait_seconds)`` gives a connection of the driver with every setting made. ``fault`` reads
    an error of the driver. ``begin_read`` begins a snapshot where a plain begin does not. ``insert_savepoint``: an
    error dooms the transaction, so an INSERT whose key decides runs inside a savepoint. ``lock_upgrades(connection,
    database, seconds)`` takes a lock that ends with the transaction of the connection or with the connection; False if
    somebody kept it. ``transactional_ddl``: the whole upgrade is one transaction, that of the lock.
    """

    name: str
    dialect: str
    arguments: Mapping[str, Any]
    connect: Callable[[Address, Role, float], Any]
    fault: Callable[[BaseException], Fault]
    begin_read: str | None
    insert_savepoint: bool
    lock_upgrades: Callable[[Connection, str, float], bool]
    transactional_ddl: bool
    ddl: Ddl


def engine_named(name: str) -> Engine:
    """The description of an engine.

    ``store_not_readable`` with rule ``driver_missing`` where the extra ``server`` is not installed.
    """
    try:
        if name == "postgresql":
            from passdown.storage.postgresql import ENGINE
        elif name == "mysql":
            from passdown.storage.mysql import ENGINE
        else:
            from passdown.storage.oceanbase import ENGINE
    except ImportError as error:
        raise PassdownError("store_not_readable", rule="driver_missing") from error
    return ENGINE


REPEATABLE: Final = frozenset({Fault.AGAIN, Fault.SLOW})


class OtherEngineError(Exception):
    """The server is not of the engine that the URL names."""


def fault_of(engine: Engine, error: BaseException) -> Fault:
    """What an error means that came through SQLAlchemy, from the driver or from the network."""
    from sqlalchemy.exc import DBAPIError, InvalidatePoolError
    from sqlalchemy.exc import TimeoutError as PoolTimeout

    if isinstance(error, PoolTimeout):
        return Fault.AGAIN
    if isinstance(error, InvalidatePoolError):
        return Fault.LOST
    if isinstance(error, OtherEngineError):
        return Fault.OTHER_ENGINE
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(original, OSError):
        return Fault.LOST
    return engine.fault(original)


def refusal(fault: Fault, *, writing: bool) -> PassdownError:
    """The typed refusal for a fault met while ``writing`` or reading."""
    if fault in REPEATABLE:
        return PassdownError("store_busy")
    if fault in _FAULTS_OF_OURS:
        return PassdownError("internal_error", rule=_FAULTS_OF_OURS[fault])
    if fault is Fault.READ_ONLY and not writing:
        return PassdownError("internal_error", rule="change_in_read")
    if fault in (Fault.FULL, Fault.READ_ONLY):
        return PassdownError("store_not_writable", rule=_RULES[fault])
    if fault in (Fault.MISSING, Fault.OTHER_ENGINE):
        return PassdownError("store_not_readable", rule=_RULES[fault])
    return PassdownError("store_not_writable" if writing else "store_not_readable", rule=_RULES[fault])


_FAULTS_OF_OURS: Final = {
    Fault.KEY: "constraint",
    Fault.CONSTRAINT: "constraint",
    Fault.IMMUTABLE: "immutable",
    Fault.STATEMENT: "statement",
}
_RULES: Final = {
    Fault.LOST: "unreachable",
    Fault.DENIED: "denied",
    Fault.MISSING: "missing",
    Fault.READ_ONLY: "read_only",
    Fault.FULL: "full",
    Fault.OTHER_ENGINE: "other_engine",
}
