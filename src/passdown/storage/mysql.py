"""MariaDB and MySQL through PyMySQL.

Reads are REPEATABLE READ and begin with a consistent snapshot; writes are READ COMMITTED, so that no gap is locked.
Statements run with a fixed SQL mode, whatever the server's own is: strict, and with the backslash escapes that the
driver writes. Every change of the schema commits by itself, so an upgrade is a row of steps that can be repeated.
"""

from __future__ import annotations

import hashlib
import math
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import text

from passdown.storage.address import Address
from passdown.storage.ddl import Ddl, trigger_name
from passdown.storage.server_engine import ANSWER_SECONDS, CONNECT_SECONDS, Engine, Fault, OtherEngineError, Role

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

BY_CODE: Final = {
    0: Fault.LOST,  # the driver's own "connection is closed"
    1062: Fault.KEY,
    1586: Fault.KEY,
    1048: Fault.CONSTRAINT,
    1364: Fault.CONSTRAINT,
    3819: Fault.CONSTRAINT,
    4025: Fault.CONSTRAINT,
    1644: Fault.IMMUTABLE,  # SIGNAL, raised by our own triggers only
    1205: Fault.AGAIN,
    1213: Fault.AGAIN,
    6235: Fault.AGAIN,
    1040: Fault.AGAIN,  # too many connections
    1203: Fault.AGAIN,
    1044: Fault.DENIED,
    1045: Fault.DENIED,
    1142: Fault.DENIED,
    1143: Fault.DENIED,
    1227: Fault.DENIED,
    1370: Fault.DENIED,
    1419: Fault.DENIED,
    1698: Fault.DENIED,
    1049: Fault.MISSING,
    1146: Fault.MISSING,
    1290: Fault.READ_ONLY,
    1792: Fault.READ_ONLY,
    1836: Fault.READ_ONLY,
    1021: Fault.FULL,
    1114: Fault.FULL,
    1053: Fault.LOST,  # shutting down
    1080: Fault.LOST,
    1152: Fault.LOST,
    1158: Fault.LOST,
    1159: Fault.LOST,
    1160: Fault.LOST,
    1161: Fault.LOST,
    1317: Fault.LOST,  # interrupted: a server that stops ends its statements like this
    1927: Fault.LOST,  # connection was killed
    2002: Fault.LOST,
    2003: Fault.LOST,
    2006: Fault.LOST,
    2013: Fault.LOST,
    2014: Fault.LOST,
    4031: Fault.LOST,
}
SQL_MODE: Final = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
ISOLATION: Final = {"read": "REPEATABLE READ", "write": "READ COMMITTED", "upgrade": "READ COMMITTED"}
BEGIN_READ: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


def dial(address: Address, role: Role, settings: Sequence[str]) -> pymysql.Connection[Any]:
    """A connection with ``settings`` executed one by one. Raises ``pymysql.Error`` or ``OSError``."""
    options: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password,
        **{name: value for name, value in address.options.items() if name != "unix_socket"},
    }
    connection: pymysql.Connection[Any] = pymysql.connect(
        database=address.database,
        charset="utf8mb4",
        # An UPDATE then counts the rows it found, also those that already had the new values.
        client_flag=CLIENT.FOUND_ROWS,
        connect_timeout=CONNECT_SECONDS,
        # Changing the schema of a large table may take as long as it takes.
        read_timeout=None if role == "upgrade" else ANSWER_SECONDS,
        write_timeout=ANSWER_SECONDS,
        autocommit=False,
        defer_connect=True,
        **{name: value for name, value in options.items() if value is not None},
    )
    # The driver leaves a socket open that it could not connect, so a socket file is opened here.
    path = address.option("unix_socket")
    connection.connect(None if path is None else _open_socket(path))
    try:
        with connection.cursor() as cursor:
            for setting in settings:
                cursor.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_socket(path: str) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.settimeout(CONNECT_SECONDS)
        opened.connect(path)
    except BaseException:
        opened.close()
        raise
    return opened


def settings_for(role: Role) -> list[str]:
    """What every engine of this protocol is told first."""
    return [
        f"SET SESSION sql_mode='{SQL_MODE}', time_zone='+00:00'",
        f"SET SESSION TRANSACTION ISOLATION LEVEL {ISOLATION[role]}",
    ]


def connect(address: Address, role: Role, wait_seconds: float) -> pymysql.Connection[Any]:
    """A connection for ``role``; see :class:`passdown.storage.server_engine.Engine`."""
    wait = max(1, math.ceil(wait_seconds))
    connection = dial(
        address,
        role,
        [*settings_for(role), f"SET SESSION innodb_lock_wait_timeout={wait}, lock_wait_timeout={wait}"],
    )
    try:
        with connection.cursor() as cursor:
            # The greeting of OceanBase names only the version of MySQL that it is like.
            cursor.execute("SELECT VERSION()")
            version = str(cursor.fetchone()).lower()
            if "oceanbase" in version:
                raise OtherEngineError
            if "mariadb" in version and role == "write":
                # A writer that stopped between two statements would hold its rows, and with the counter all others.
                cursor.execute(f"SET SESSION idle_write_transaction_timeout={ANSWER_SECONDS}")
        connection.rollback()
    except BaseException:
        connection.close()
        raise
    return connection


def fault(error: BaseException) -> Fault:
    """What an error of PyMySQL means."""
    if not isinstance(error, pymysql.Error) or not error.args:
        return Fault.STATEMENT
    return BY_CODE.get(error.args[0], Fault.STATEMENT)


def upgrade_lock(database: str) -> str:
    """The name of the lock, at most 64 characters, which are all that a name may have."""
    return "passdown-" + hashlib.sha256(database.encode()).hexdigest()[:32]


def lock_upgrades(connection: Connection, database: str, seconds: float) -> bool:
    """Take a named lock until the connection ends; names are shared by all databases of a server."""
    ask = {"name": upgrade_lock(database), "wait": max(1, int(seconds))}
    return connection.execute(text("SELECT GET_LOCK(:name, :wait)"), ask).scalar() == 1


def _refuse(table: str, change: str) -> Sequence[str]:
    return (
        f"CREATE TRIGGER {trigger_name(table, change)} BEFORE {change} ON {table} FOR EACH ROW"
        f" SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rows of {table} are immutable'",
    )


DDL: Final = Ddl(
    tables="SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
    indexes="SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = DATABASE()",
    triggers="SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
    changes=("UPDATE", "DELETE"),
    refuse=_refuse,
)

ENGINE: Final = Engine(
    name="mysql",
    dialect="mysql+pymysql://",
    arguments={},
    connect=connect,
    fault=fault,
    begin_read=BEGIN_READ,
    insert_savepoint=False,
    lock_upgrades=lock_upgrades,
    transactional_ddl=False,
    ddl=DDL,
)
