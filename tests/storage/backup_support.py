"""Stores full of rows of every shape, and a digest over them made without the product."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from passdown.storage import Store
from passdown.storage.tables import TABLES
from support.places import LATER, FilePlace, Place

MANY = {"pd_counters": 1_005, "pd_sources": 70, "pd_handoff_evidence": 2_100, "pd_handoff_revisions": 33}
"""Rows of the tables that are read in more than one batch: past the end of one, or of two."""

FEW = 3
NUMBERS = (0, 1, 2**15 - 1)
PREFIXES = (b"a", b"a\0", b"A", b"a ", b"\xff", "ä".encode(), b"\\'\"%_:x")


def key_of(place: Place, table: str) -> tuple[str, ...]:
    """The primary key, as the database itself tells it."""
    keys = place.keys()
    return next(columns for name, kind, columns in keys if (name, kind) == (table, "primary"))


def fill(place: Place, store: Store, seed: int = 7) -> None:
    """Rows in every table, with NULL, empty and odd bytes, and keys that differ only by their end."""
    chance = random.Random(seed)
    empty = place.nullable()
    for table in TABLES:
        columns = place.columns(table.name)
        key = key_of(place, table.name)

        def row(
            number: int,
            columns: list[tuple[str, bool]] = columns,
            key: tuple[str, ...] = key,
            name: str = table.name,
        ) -> dict[str, Any]:
            values: dict[str, Any] = {}
            for column, is_bytes in columns:
                if column in key:
                    # Many rows share the first column of their key, so that a batch ends inside such a run.
                    part = number // 40 if len(key) > 1 and column == key[0] else number
                    values[column] = PREFIXES[part % len(PREFIXES)] + b"%d" % part if is_bytes else part % 2**15
                elif (name, column) in empty and chance.random() < 0.4:
                    values[column] = None
                elif is_bytes:
                    values[column] = b"%d" % number + chance.randbytes(chance.choice((0, 1, 20)))
                    if column in ("token_sha256", "sha256", "content_digest", "body_sha256"):
                        values[column] = hashlib.sha256(b"%d" % number).digest()
                    if column == "role":
                        values[column] = b"agent"
                else:
                    values[column] = chance.choice(NUMBERS)
            return values

        numbers = range(MANY.get(table.name, FEW))
        insert = f"INSERT INTO {table.name} ({', '.join(name for name, _ in columns)}) VALUES "
        insert += "(" + ", ".join(f":{name}" for name, _ in columns) + ")"

        def work(session: Any, insert: str = insert, numbers: range = numbers, row: Any = row) -> None:
            for number in numbers:
                session.run(insert, **row(number))

        store.write(work)


def add_large(store: Store, size: int) -> None:
    """Sources with bodies of ``size`` bytes, one more than are inserted together."""
    sql = (
        "INSERT INTO pd_sources (scope_id, source_key, source_type, source_id, materialization, assurance, media_type,"
        " label, size, sha256, body, after_revision, recorded_us, recorded_by, recorded_identity)"
        " VALUES (:scope, :key, :b, :b, 1, 1, :b, :b, 1, :key, :body, 0, 0, :b, 1)"
    )
    for _ in range(17):
        body = os.urandom(size)
        key = hashlib.sha256(body).digest()
        store.write(lambda s, body=body, key=key: s.run(sql, scope=b"large", key=key, b=b"b", body=body))  # type: ignore[misc]


def digest_of(path: Path) -> str:
    """The digest as the documentation of it reads, from SQLite itself."""
    place = FilePlace(path)
    found = hashlib.sha256()

    def put(value: Any) -> None:
        if value is None:
            found.update(b"n")
        elif isinstance(value, int):
            found.update(f"i{value};".encode())
        else:
            found.update(f"b{len(value)}:".encode() + value)

    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            order = ", ".join(key_of(place, table.name))
            rows = connection.execute(f"SELECT * FROM {table.name} ORDER BY {order}").fetchall()
            if rows:
                found.update(b"t")
                put(table.name.encode())
                for column, _ in place.columns(table.name):
                    put(column.encode())
            for row in rows:
                for value in row:
                    put(value)
    return f"sha256:{found.hexdigest()}"


def counted(place: Place) -> dict[str, int]:
    return {table.name: place.rows(f"SELECT COUNT(*) FROM {table.name}")[0][0] for table in TABLES}


def is_empty(place: Place) -> bool:
    """Nothing is stored but the counter of writes, which stands at zero."""
    rows = {name: found for name, found in place.everything().items() if found}
    return [(key, [tuple(row) for row in found]) for key, found in rows.items()] == [("pd_counters", [(b"writes", 0)])]


def make_older(place: Place) -> None:
    """Take an up-to-date store back to the first schema, with what it holds."""
    for table in LATER:
        place.rows(f"DROP TABLE {table}")
    place.rows("UPDATE alembic_version SET version_num = '0001'")
