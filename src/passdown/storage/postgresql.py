"""PostgreSQL through psycopg.

Reads are REPEATABLE READ and read-only, so that their first statement fixes the snapshot; writes are READ COMMITTED.
The store lives in the current schema of the connection. DDL is transactional: an upgrade happens whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import psycopg
from sqlalchemy import text

from passdown.storage.address import Address
from passdown.storage.ddl import Ddl, trigger_name
from passdown.storage.server_engine import ANSWER_SECONDS, CONNECT_SECONDS, Engine, Fault, Role

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

UPGRADE_LOCK: Final = 0x5041_5353_444F_574E
"""Key of the advisory lock under which a schema is changed; advisory locks are counted by database."""

_BY_CODE: Final = {
    "23505": Fault.KEY,
    "23001": Fault.IMMUTABLE,  # restrict_violation, raised by our own trigger only: there are no foreign keys
    "40001": Fault.AGAIN,
    "40P01": Fault.AGAIN,
    "55P03": Fault.AGAIN,  # lock_timeout
    "53300": Fault.AGAIN,  # too many connections
    "25006": Fault.READ_ONLY,
    "3D000": Fault.MISSING,
    "42P01": Fault.MISSING,
    "3F000": Fault.MISSING,  # no schema to create tables in
    "42501": Fault.DENIED,
    "57P01": Fault.LOST,
    "57P02": Fault.LOST,
    "57P03": Fault.LOST,
    "57P05": Fault.LOST,
    "25P03": Fault.LOST,  # idle in a transaction for too long
    "58030": Fault.LOST,
}
_BY_CLASS: Final = {"08": Fault.LOST, "23": Fault.CONSTRAINT, "28": Fault.DENIED, "53": Fault.FULL}
_AT_THE_DOOR: Final = (
    ("authentication failed", Fault.DENIED),
    ("no password supplied", Fault.DENIED),
    ("no pg_hba.conf entry", Fault.DENIED),
    ("permission denied", Fault.DENIED),
    ("too many clients", Fault.AGAIN),
    ("too many connections", Fault.AGAIN),
    ("remaining connection slots", Fault.AGAIN),
)


def connect(address: Address, role: Role, wait_seconds: float) -> psycopg.Connection[Any]:
    """A connection for ``role``; see :class:`passdown.storage.server_engine.Engine`. Raises ``psycopg.Error``."""
    options: dict[str, Any] = {
        "host": address.option("host") or address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password,
        **{name: value for name, value in address.options.items() if name != "host"},
    }
    connection = psycopg.connect(
        dbname=address.database,
        client_encoding="UTF8",
        application_name="passdown",
        connect_timeout=CONNECT_SECONDS,
        keepalives_idle=ANSWER_SECONDS // 2,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=ANSWER_SECONDS * 1000,
        **{name: value for name, value in options.items() if value is not None},
    )
    try:
        settings = {"lock_timeout": str(max(1, int(wait_seconds * 1000))), "TimeZone": "UTC"}
        if role != "upgrade":
            # A writer that stopped between two statements would hold its rows, and with the counter every other writer.
            settings["idle_in_transaction_session_timeout"] = str(ANSWER_SECONDS * 1000)
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        connection.commit()
        if role == "read":
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
        else:
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    except BaseException:
        connection.close()
        raise
    return connection


def fault(error: BaseException) -> Fault:
    """What an error of psycopg means."""
    if not isinstance(error, psycopg.Error):
        return Fault.STATEMENT
    code = error.sqlstate
    if code is not None:
        return _BY_CODE.get(code) or _BY_CLASS.get(code[:2], Fault.STATEMENT)
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Fault.STATEMENT
    return _at_the_door(error)


def _at_the_door(error: psycopg.Error) -> Fault:
    """Refusals at connecting carry no code in the protocol library, only the server's sentence."""
    said = str(error)
    for part, found in _AT_THE_DOOR:
        if part in said:
            return found
    if "does not exist" in said and "FATAL" in said:
        return Fault.DENIED if 'role "' in said else Fault.MISSING
    connection = getattr(error, "pgconn", None)
    if connection is not None and (connection.needs_password or ("FATAL" not in said and connection.used_password)):
        return Fault.DENIED
    return Fault.LOST


def lock_upgrades(connection: Connection, database: str, seconds: float) -> bool:
    """Take the advisory lock until the end of the transaction."""
    del database
    connection.execute(text("SELECT set_config('lock_timeout', :wait, true)"), {"wait": f"{int(seconds * 1000)}ms"})
    try:
        with connection.begin_nested():
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
    except Exception as error:
        if fault(getattr(error, "orig", None) or error) is Fault.AGAIN:
            return False
        raise
    return True


def _refuse(table: str, change: str) -> Sequence[str]:
    scope = "STATEMENT" if change == "TRUNCATE" else "ROW"
    return (
        "CREATE OR REPLACE FUNCTION pd_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'rows of % are immutable', TG_TABLE_NAME USING ERRCODE = 'restrict_violation'; END $$",
        f"CREATE TRIGGER {trigger_name(table, change)} BEFORE {change} ON {table}"
        f" FOR EACH {scope} EXECUTE FUNCTION pd_refuse_change()",
    )


_IN_SCHEMA: Final = "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()"

ENGINE: Final = Engine(
    name="postgresql",
    dialect="postgresql+psycopg://",
    arguments={"use_native_hstore": False},
    connect=connect,
    fault=fault,
    begin_read=None,
    insert_savepoint=True,
    lock_upgrades=lock_upgrades,
    transactional_ddl=True,
    ddl=Ddl(
        tables=f"SELECT c.relname FROM pg_catalog.pg_class c {_IN_SCHEMA} WHERE c.relkind IN ('r', 'p')",
        indexes=f"SELECT c.relname FROM pg_catalog.pg_class c {_IN_SCHEMA} WHERE c.relkind = 'i'",
        triggers=(
            f"SELECT t.tgname FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid {_IN_SCHEMA}"
            " WHERE NOT t.tgisinternal"
        ),
        changes=("UPDATE", "DELETE", "TRUNCATE"),
        refuse=_refuse,
    ),
)
