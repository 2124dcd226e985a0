"""A place where a store lives, on any engine: how it is opened, and how it is seen past the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from passdown.storage import Store, open_store
from support.servers import Server

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
    "pd_replays": False,
    "pd_token_limits": False,
    "pd_acknowledgements": True,
    "pd_test_runs": True,
}
"""Every table, and whether its rows are immutable."""

ADDED = {"0002": ["pd_replays", "pd_token_limits"], "0003": ["pd_acknowledgements", "pd_test_runs"]}
"""The tables that each version of the schema after the first brought."""

LATER = [table for tables in ADDED.values() for table in tables]
"""What a store of the first schema lacks."""

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

    @property
    def url(self) -> str:
        """The place as a URL, which every engine has."""
        return f"sqlite:///{self.target}" if isinstance(self.target, Path) else self.target

    def open(self, *, create: bool = False, **options: Any) -> Store:
        return open_store(self.target, create=create, **options)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, or what a change answers, seen by the driver alone."""
        raise AssertionError("every kind has its own")

    def columns(self, table: str) -> list[tuple[str, bool]]:
        """The columns of a table in order, and whether each holds bytes."""
        raise AssertionError("every kind has its own")

    def keys(self) -> set[tuple[str, str, tuple[str, ...]]]:
        """Every index: the table, ``primary``, ``unique`` or ``plain``, and the columns in order."""
        raise AssertionError("every kind has its own")

    def nullable(self) -> set[tuple[str, str]]:
        """The columns that may be NULL."""
        raise AssertionError("every kind has its own")

    def tables(self) -> set[str]:
        raise AssertionError("every kind has its own")

    def literal(self, value: int | bytes) -> str:
        """A value as it is written in SQL."""
        if isinstance(value, int):
            return str(value)
        return f"decode('{value.hex()}', 'hex')" if self.engine == "postgresql" else f"x'{value.hex()}'"

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

    def keys(self) -> set[tuple[str, str, tuple[str, ...]]]:
        found = set()
        for table in TABLES:
            columns = self.rows(f"PRAGMA table_info({table})")
            primary = sorted((row[5], row[1]) for row in columns if row[5])
            found.add((table, "primary", tuple(name for _, name in primary)))
            for _, name, is_unique, origin, _ in self.rows(f"PRAGMA index_list({table})"):
                if origin != "pk":
                    parts = tuple(row[2] for row in self.rows(f"PRAGMA index_info({name})"))
                    found.add((table, "unique" if is_unique else "plain", parts))
        return found

    def nullable(self) -> set[tuple[str, str]]:
        return {(table, row[1]) for table in TABLES for row in self.rows(f"PRAGMA table_info({table})") if not row[3]}

    def tables(self) -> set[str]:
        return {row[0] for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}


class ServerPlace(Place):
    def __init__(self, server: Server, database: str) -> None:
        self.server = server
        self.engine = server.name
        self.database = database
        self.target = server.url(database)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.server.execute(sql, database=self.database)

    def columns(self, table: str) -> list[tuple[str, bool]]:
        found = self.rows(
            "SELECT column_name, data_type FROM information_schema.columns"
            f" WHERE table_schema = {self.schema} AND table_name = '{table}' ORDER BY ordinal_position"
        )
        return [(name, kind in ("bytea", "varbinary", "mediumblob")) for name, kind in found]

    @property
    def schema(self) -> str:
        return "current_schema()" if self.engine == "postgresql" else "DATABASE()"

    def keys(self) -> set[tuple[str, str, tuple[str, ...]]]:
        if self.engine == "postgresql":
            sql = (
                "SELECT t.relname, i.relname, x.indisprimary, x.indisunique, a.attname FROM pg_index x"
                " JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid"
                " CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k (number, place)"
                " JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number"
                " WHERE t.relnamespace = 'public'::regnamespace AND t.relname LIKE 'p_\\_%' ORDER BY 1, 2, k.place"
            )
        else:
            sql = (
                "SELECT table_name, index_name, index_name = 'PRIMARY', non_unique = 0, column_name"
                " FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name LIKE 'p_\\_%'"
                " ORDER BY 1, 2, seq_in_index"
            )
        grouped: dict[tuple[str, str, str], list[str]] = {}
        for table, name, primary, unique, column in self.rows(sql):
            kind = "primary" if primary else "unique" if unique else "plain"
            grouped.setdefault((table, name, kind), []).append(column)
        return {(table, kind, tuple(columns)) for (table, _, kind), columns in grouped.items()}

    def nullable(self) -> set[tuple[str, str]]:
        return set(
            self.rows(
                "SELECT table_name, column_name FROM information_schema.columns"
                f" WHERE table_schema = {self.schema} AND is_nullable = 'YES'"
            )
        )

    def tables(self) -> set[str]:
        sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = {self.schema}"
        return {row[0] for row in self.rows(sql)}

    def wipe(self) -> None:
        """Remove every row, past the triggers, and set the counter of writes to zero."""
        asked = self.rows("SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in TABLES))[0]
        full = [item for item, has_rows in zip(TABLES.items(), asked, strict=True) if has_rows]
        start = f"INSERT INTO pd_counters (name, value) VALUES ({self.literal(b'writes')}, 0)"
        self.server.execute(*self.server.wipe_sql(full), start, database=self.database)
