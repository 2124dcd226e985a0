"""Opening a store on a server: is it there, is it ours, is its schema the one this version writes?

Design: a store that is up to date is opened by two queries. An upgrade runs under a lock of the server that ends with
its connection, after looking again, so that of many processes one does the work and the others find it done. Where
changes of the schema commit one by one, an upgrade that was killed is resumed by the next opening: every step looks
first. A database of another program is never written.

Public operation: :func:`open_server`.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import create_engine
from sqlalchemy.engine import Connection
from sqlalchemy.pool import NullPool

from passdown.kernel.errors import PassdownError
from passdown.storage.address import Address
from passdown.storage.server_engine import Engine, OtherEngineError, engine_named, fault_of, refusal
from passdown.storage.sql_session import FAILURES
from passdown.storage.sql_store import SqlStore, state_of

MIGRATION_WAIT_SECONDS: Final = 60.0


def open_server(address: Address, *, create: bool, migrate: bool, wait_seconds: float) -> SqlStore:
    """Open the store in the database that ``address`` names; see :func:`passdown.storage.open_store`.

    The database itself is made by whoever runs the server; ``create`` puts our tables into an empty one.
    """
    engine = engine_named(address.engine)
    store = SqlStore(engine, address, wait_seconds=wait_seconds)
    try:
        state = store.schema_state()
        if state == "absent" and not create:
            raise PassdownError("store_not_readable", rule="missing")
        if state != "current":
            if not migrate:
                raise PassdownError("store_not_readable", rule="schema_behind")
            upgrade(engine, address)
    except BaseException:
        store.close()
        raise
    return store


def upgrade(engine: Engine, address: Address, *, wait_seconds: float = MIGRATION_WAIT_SECONDS) -> None:
    """Upgrade the database to the head unless somebody else did; ``store_busy`` if they do not finish in time."""
    pool = create_engine(
        engine.dialect,
        creator=lambda: engine.connect(address, "upgrade", wait_seconds),
        poolclass=NullPool,
        hide_parameters=True,
        **engine.arguments,
    )
    try:
        with pool.connect() as holder:
            if not engine.lock_upgrades(holder, address.database, wait_seconds):
                raise PassdownError("store_busy")
            if engine.transactional_ddl:
                _upgrade_locked(holder, engine)
                holder.commit()
            else:
                with pool.connect() as connection:
                    connection.execution_options(isolation_level="AUTOCOMMIT")
                    _upgrade_locked(connection, engine)
    except (*FAILURES, OtherEngineError) as error:
        raise refusal(fault_of(engine, error), writing=True) from error
    finally:
        pool.dispose()


def _upgrade_locked(connection: Connection, engine: Engine) -> None:
    if state_of(connection, engine) == "current":
        return
    # 400 ms of imports, paid only by whoever finds the schema behind.
    from passdown.storage.migrate import upgrade_on

    upgrade_on(connection)
