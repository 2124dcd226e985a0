"""Which schema a store has, and bringing it up to that of this version, as an operation of its own.

Design: the revision is read by plain SQL before anything is opened for writing; the work itself is that of every
opening (see :mod:`passdown.storage.opening`), under the same lock and after looking again.

Public operations: :func:`schema_revision`, :func:`upgrade_store`.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from passdown.kernel.errors import PassdownError
from passdown.storage.address import Address, locate
from passdown.storage.faults import refusal
from passdown.storage.opening import WAIT_SECONDS, open_store
from passdown.storage.sqlite_connect import connect_reader, schema_state
from passdown.storage.version import REVISION_QUERY, SCHEMA_HEAD


@dataclass(frozen=True, slots=True)
class Upgraded:
    """``before`` is None where a store was begun and not finished."""

    before: str | None
    after: str

    @property
    def changed(self) -> bool:
        """Whether the schema was behind."""
        return self.before != self.after


def upgrade_store(target: Path | str) -> Upgraded:
    """Bring the store up to this version; nothing is done where it is.

    Raises what :func:`passdown.storage.open_store` raises: ``store_not_readable`` with rule ``missing`` where there is
    no store, ``store_busy`` while another process upgrades for too long, ``schema_too_new``.
    """
    before = schema_revision(target)
    open_store(target, create=False).close()
    return Upgraded(before, SCHEMA_HEAD)


def schema_revision(target: Path | str) -> str | None:
    """The revision that the store says it has; None where it says nothing yet. Refuses what opening refuses."""
    place = locate(target) if isinstance(target, str) else target
    if isinstance(place, Path):
        return _revision_of_file(Path(os.path.realpath(place)))
    return _revision_on_server(place)


def _revision_of_file(path: Path) -> str | None:
    if not path.exists():
        raise PassdownError("store_not_readable", rule="missing")
    try:
        connection, _ = connect_reader(path)
        with closing(connection):
            if schema_state(connection) == "absent":
                return None
            return _only(connection.execute(REVISION_QUERY).fetchall())
    except sqlite3.Error as error:
        raise refusal(error, writing=False) from error


def _revision_on_server(address: Address) -> str | None:
    from sqlalchemy import text

    from passdown.storage.server_engine import engine_named, fault_of
    from passdown.storage.server_engine import refusal as server_refusal
    from passdown.storage.sql_session import FAILURES
    from passdown.storage.sql_store import SqlStore, pooled

    engine = engine_named(address.engine)
    store = SqlStore(engine, address, wait_seconds=WAIT_SECONDS)
    try:
        if store.schema_state() == "absent":
            return None
    finally:
        store.close()
    pool = pooled(engine, address, "read", WAIT_SECONDS, 1)
    try:
        with pool.connect() as connection:
            return _only([tuple(row) for row in connection.execute(text(REVISION_QUERY))])
    except FAILURES as error:
        raise server_refusal(fault_of(engine, error), writing=False) from error
    finally:
        pool.dispose()


def _only(rows: list[tuple[object, ...]]) -> str | None:
    return str(rows[0][0]) if rows else None
