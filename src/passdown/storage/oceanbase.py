"""OceanBase's engine through PyMySQL: the protocol of MySQL with settings and errors of its own.

It detects no deadlock: two writers that wait for each other go on when the first of them has waited for its row too
long, so that wait is short. Tested against a single node; how several nodes behave is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pymysql

from passdown.storage import mysql
from passdown.storage.address import Address
from passdown.storage.server_engine import Engine, Fault, OtherEngineError, Role

LOCK_WAIT_US: Final = 3_000_000
_UNKNOWN_VARIABLE: Final = 1193
_BY_CODE: Final = {
    4012: Fault.SLOW,
    6002: Fault.AGAIN,  # the server rolled the transaction back
    6210: Fault.SLOW,
    6224: Fault.AGAIN,  # the transaction has to be rolled back
}


def connect(address: Address, role: Role, wait_seconds: float) -> pymysql.Connection[Any]:
    """A connection for ``role``; see :class:`passdown.storage.server_engine.Engine`."""
    wait = min(LOCK_WAIT_US, max(1, int(wait_seconds * 1_000_000)))
    try:
        return mysql.dial(address, role, [f"SET ob_trx_lock_timeout={wait}", *mysql.settings_for(role)])
    except pymysql.Error as error:
        if error.args and error.args[0] == _UNKNOWN_VARIABLE:
            raise OtherEngineError from error
        raise


def fault(error: BaseException) -> Fault:
    """What an error of PyMySQL means here."""
    if isinstance(error, pymysql.Error) and error.args and error.args[0] in _BY_CODE:
        return _BY_CODE[error.args[0]]
    return mysql.fault(error)


ENGINE: Final[Engine] = replace(mysql.ENGINE, name="oceanbase", connect=connect, fault=fault)
