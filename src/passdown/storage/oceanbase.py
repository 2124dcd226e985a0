"""OceanBase's engine through PyMySQL: the protocol of MySQL with settings and errors of its own.

It detects no deadlock: two writers that wait for each other go on when the first of them has waited for its row too
long, so that wait is short. Named locks outlive the connection that took them, so upgrades stand in line at a row of a
small table of its own, ``pd_upgrades``. Tested against a single node; how several nodes behave is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pymysql
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from passdown.storage import mysql
from passdown.storage.address import Address
from passdown.storage.server_engine import REPEATABLE, Engine, Fault, OtherEngineError, Role
from passdown.storage.version import UPGRADES_TABLE

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

LOCK_WAIT_US: Final = 3_000_000
UPGRADE_US: Final = 3_600_000_000
"""How long one change of the schema may take, and how long the connection may rest that holds the upgrade lock."""

_UNKNOWN_VARIABLE: Final = 1193
_BY_CODE: Final = {
    4012: Fault.SLOW,
    6002: Fault.AGAIN,  # the server rolled the transaction back
    6210: Fault.SLOW,
    6224: Fault.AGAIN,  # the transaction has to be rolled back
}


def connect(address: Address, role: Role, wait_seconds: float) -> pymysql.Connection[Any]:
    """A connection for ``role``; see :class:`passdown.storage.server_engine.Engine`."""
    wait = max(1, int(wait_seconds * 1_000_000))
    if role == "upgrade":
        own = [f"SET ob_trx_lock_timeout={wait}, ob_query_timeout={UPGRADE_US}, ob_trx_idle_timeout={UPGRADE_US}"]
    else:
        own = [f"SET ob_trx_lock_timeout={min(LOCK_WAIT_US, wait)}"]
    try:
        return mysql.dial(address, role, [*own, *mysql.settings_for(role)])
    except pymysql.Error as error:
        if error.args and error.args[0] == _UNKNOWN_VARIABLE:
            raise OtherEngineError from error
        raise


def fault(error: BaseException) -> Fault:
    """What an error of PyMySQL means here."""
    if isinstance(error, pymysql.Error) and error.args and error.args[0] in _BY_CODE:
        return _BY_CODE[error.args[0]]
    return mysql.fault(error)


def lock_upgrades(connection: Connection, database: str, seconds: float) -> bool:
    """Lock the row until the end of the transaction; the time to wait is that of the connection."""
    del database, seconds
    connection.execute(text(f"CREATE TABLE IF NOT EXISTS {UPGRADES_TABLE} (id SMALLINT NOT NULL PRIMARY KEY)"))
    try:
        connection.execute(text(f"INSERT IGNORE INTO {UPGRADES_TABLE} (id) VALUES (1)"))
        connection.commit()
        connection.execute(text(f"SELECT id FROM {UPGRADES_TABLE} WHERE id = 1 FOR UPDATE")).all()
    except DBAPIError as error:
        if error.orig is not None and fault(error.orig) in REPEATABLE:
            return False
        raise
    return True


ENGINE: Final[Engine] = replace(
    mysql.ENGINE, name="oceanbase", connect=connect, fault=fault, lock_upgrades=lock_upgrades
)
