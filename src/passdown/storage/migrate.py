"""Bring a store up to the schema of this version.

It imports Alembic and SQLAlchemy, so nothing imports it before it is needed.

Design: on SQLite the whole upgrade, whatever its steps, is one transaction, so a reader sees the old schema or the new
one and a crash leaves the old one. Each step can nevertheless be repeated (see :mod:`passdown.storage.steps`), because
other engines commit every change of the schema by itself. The caller holds the turn to write.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from passdown.storage.faults import refusal
from passdown.storage.sqlite_connect import connect_writer

SCRIPTS = "passdown.storage:migrations"


def upgrade(path: Path) -> None:
    """Upgrade the SQLite file at ``path`` to the head, in one transaction.

    Raises ``store_busy``, ``store_not_writable`` or ``store_not_readable``; the file is then as it was.
    """
    engine = create_engine("sqlite://", creator=lambda: connect_writer(path), poolclass=NullPool)
    event.listen(engine, "begin", _begin_immediate)
    try:
        with engine.begin() as connection:
            upgrade_on(connection)
    except DBAPIError as error:
        raise refusal(error.orig or error, writing=True) from error
    except sqlite3.Error as error:
        raise refusal(error, writing=True) from error
    finally:
        engine.dispose()


def upgrade_on(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations up to ``revision`` on a connection whose transaction belongs to the caller."""
    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
