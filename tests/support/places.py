"""A place where a store lives, on any engine: how it is opened, and how it is seen past the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from support.servers import Server

from passdown.storage import Store, open_store

TABLES = {
    "pd_counters": False,
    "pd_sources": True,
    "pd_handoff_heads": False,
    "pd_handoff_revisions": True,
    "pd_handoff_evidence": True,
    "pd_tokens": False,
    "pc_handoff_report_projects": False,
    "pc_handoff_report_project_revisions": True,
    "pc_handoff_report_workstreams": False,
    "pc_handoff_report_workstream_revisions": True,
}
"""Every table, and whether its rows are immutable."""

AGAIN = {
    "sqlite": "PRAGMA wal_checkpoint(TRUNCATE)",
    "postgresql": "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$",
    "mysql": "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213",
    "oceanbase": "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213",
}
"""A statement that each engine answers with an error that the same transaction may not meet again."""


class Place:
    """One database. ``target`` is what :func:`open_store` takes; ``text`` is the same for a command line."""

    engine: str
    target: Path | str

    @property
    def text(self) -> str:
        return str(self.target)

    def open(self, *, create: bool = False, **options: Any) -> Store:
        return open_store(self.target, create=create, **options)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, or what a change answers, seen by the driver alone."""
        raise AssertionError("every kind has its own")

    def columns(self, table: str) -> list[tuple[str, bool]]:
        """The columns of a table in order, and whether each holds bytes."""
        raise AssertionError("every kind has its own")

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        return {table: sorted(self.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


class FilePlace(Place):
    engine = "sqlite"

    def __init__(self, path: Path) -> None:
        self.target = self.path = path

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()

    def columns(self, table: str) -> list[tuple[str, bool]]:
        return [(row[1], row[2] == "BLOB") for row in self.rows(f"PRAGMA table_info({table})")]


class ServerPlace(Place):
    def __init__(self, server: Server, database: str) -> None:
        self.server = server
        self.engine = server.name
        self.database = database
        self.target = server.url(database)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.server.execute(sql, database=self.database)

    def columns(self, table: str) -> list[tuple[str, bool]]:
        schema = "current_schema()" if self.engine == "postgresql" else "DATABASE()"
        found = self.rows(
            "SELECT column_name, data_type FROM information_schema.columns"
            f" WHERE table_schema = {schema} AND table_name = '{table}' ORDER BY ordinal_position"
        )
        return [(name, kind in ("bytea", "varbinary", "mediumblob")) for name, kind in found]

    def wipe(self) -> None:
        """Remove every row, past the triggers, and set the counter of writes to zero."""
        full = [
            (table, immutable)
            for table, immutable in TABLES.items()
            if table == "pd_counters" or self.rows(f"SELECT 1 FROM {table} LIMIT 1")
        ]
        self.server.execute(*self.server.wipe_sql(full), database=self.database)
        zero = "decode('777269746573', 'hex')" if self.engine == "postgresql" else "x'777269746573'"
        self.rows(f"INSERT INTO pd_counters (name, value) VALUES ({zero}, 0)")
