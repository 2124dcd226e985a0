"""The steps that migrations are made of. Each can be repeated: it looks first and does only what is missing.

Design: used by the files in ``migrations/versions`` only, with the connection of the running Alembic operation. Types
are those that every engine has: identity text is bytes of a stated length, times and numbers are 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from passdown.storage.ddl import SQLITE, Ddl, trigger_name
from passdown.storage.server_engine import engine_named
from passdown.storage.sql_store import names


def octets(length: int) -> TypeEngine[Any]:
    """Bytes, at most ``length``; a type that can be a key on every engine."""
    return sa.LargeBinary(length).with_variant(mysql.VARBINARY(length), "mysql", "mariadb")


def content() -> TypeEngine[Any]:
    """Bytes, up to 16 MiB less one; never a key."""
    return sa.LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql", "mariadb")


def required(name: str, kind: TypeEngine[Any]) -> sa.Column[Any]:
    """A column that is never NULL."""
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def optional(name: str, kind: TypeEngine[Any]) -> sa.Column[Any]:
    """A column where NULL means that nothing was said."""
    return sa.Column(name, kind, nullable=True)


def create_table(name: str, *items: sa.schema.SchemaItem, clustered: bool = False) -> None:
    """Create a table; ``clustered`` keeps the small rows of a table inside its primary key on SQLite."""
    if name not in _names(_ddl().tables):
        op.create_table(
            name, *items, sqlite_with_rowid=not clustered, mysql_engine="InnoDB", mysql_row_format="DYNAMIC"
        )


def create_index(name: str, table: str, columns: Sequence[str]) -> None:
    """Create an index; its name is used once in the whole schema."""
    if name not in _names(_ddl().indexes):
        op.create_index(name, table, list(columns))


def forbid_changes(table: str) -> None:
    """Let the database itself refuse to change or remove rows that are immutable."""
    ddl = _ddl()
    there = _names(ddl.triggers)
    for change in ddl.changes:
        if trigger_name(table, change) not in there:
            for statement in ddl.refuse(table, change):
                op.execute(statement)


def _ddl() -> Ddl:
    dialect = op.get_bind().dialect.name
    return SQLITE if dialect == "sqlite" else engine_named(dialect).ddl


def _names(sql: str) -> set[str]:
    return names(op.get_bind(), sql)


def create_counter(name: bytes) -> None:
    """Put a counter at zero into ``pd_counters``."""
    counters = sa.table("pd_counters", sa.column("name", sa.LargeBinary), sa.column("value", sa.BigInteger))
    bind = op.get_bind()
    if bind.execute(sa.select(counters.c.value).where(counters.c.name == name)).first() is None:
        bind.execute(counters.insert().values(name=name, value=0))
