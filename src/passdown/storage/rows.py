"""Reading whole tables in bounded memory, and one digest over rows that is the same on every engine.

Design: a table is read in batches along its primary key, each batch beginning behind the last row of the one before.
"Behind" is asked as equality on a prefix of the key and a comparison on the next column, from the longest prefix to the
shortest: each such question is one range of the index on every engine, where a comparison of tuples is not.

The digest is SHA-256 over, for each table that has rows and in the order of :data:`passdown.storage.tables.TABLES`:
``t`` and the name, the columns, then the values row by row in the order of the primary key. Names and bytes are
written as ``b``, length, ``:`` and the bytes; integers as ``i``, decimal digits and ``;``; NULL as ``n``. An empty
table adds nothing, so a version that only adds tables gives an old store its old digest.

Public operations: :func:`batches`, :func:`rows`, :class:`RowDigest`, :func:`summary`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from passdown.kernel.errors import PassdownError
from passdown.storage.session import Param, Row, Session
from passdown.storage.tables import TABLES, Table

Progress = Callable[[str, int], None]
"""Called after each batch with the table and how many rows of it are done."""


def batches(session: Session, table: Table, columns: Sequence[str] | None = None) -> Iterator[list[Row]]:
    """The rows of a table in the order of its primary key, at most ``table.batch`` at a time.

    ``columns`` (else all) must contain the key.
    """
    chosen = tuple(columns or table.columns)
    places = [chosen.index(name) for name in table.key]
    after: tuple[Any, ...] | None = None
    while True:
        found = _behind(session, table, chosen, after)
        if found:
            yield found
        if len(found) < table.batch:
            return
        after = tuple(found[-1][place] for place in places)


def rows(session: Session, table: Table, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The same rows one by one."""
    for batch in batches(session, table, columns):
        yield from batch


def _behind(session: Session, table: Table, columns: Sequence[str], after: tuple[Any, ...] | None) -> list[Row]:
    select = f"SELECT {', '.join(columns)} FROM {table.name}"
    order = f"ORDER BY {', '.join(table.key)} LIMIT :wanted"
    if after is None:
        return session.all(f"{select} {order}", wanted=table.batch)
    found: list[Row] = []
    for prefix in range(len(table.key) - 1, -1, -1):
        conditions = [f"{name} = :k{place}" for place, name in enumerate(table.key[:prefix])]
        conditions.append(f"{table.key[prefix]} > :k{prefix}")
        params: dict[str, Param] = {f"k{place}": after[place] for place in range(prefix + 1)}
        params["wanted"] = table.batch - len(found)
        found += session.all(f"{select} WHERE {' AND '.join(conditions)} {order}", **params)
        if len(found) >= table.batch:
            break
    return found


@dataclass(frozen=True, slots=True)
class Summary:
    """How many rows each table has, and the digest over all of them (``sha256:`` and hexadecimal digits)."""

    rows: dict[str, int]
    digest: str

    @property
    def total(self) -> int:
        """Rows of all tables."""
        return sum(self.rows.values())


class RowDigest:
    """Gathers a :class:`Summary`; see the module for what is digested."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._rows: dict[str, int] = {table.name: 0 for table in TABLES}

    def add(self, table: Table, batch: Sequence[Row]) -> int:
        """Take the next rows of ``table``; answers how many it has so far.

        A value that no column of ours can hold is ``store_not_readable`` with rule ``damaged``.
        """
        parts: list[bytes] = []
        if batch and not self._rows[table.name]:
            parts.append(b"t")
            for name in (table.name, *table.columns):
                _write(parts, name.encode())
        for row in batch:
            for value in row:
                _write(parts, value)
        self._hash.update(b"".join(parts))
        self._rows[table.name] += len(batch)
        return self._rows[table.name]

    def summary(self) -> Summary:
        """What was added so far."""
        return Summary(dict(self._rows), f"sha256:{self._hash.hexdigest()}")


def _write(parts: list[bytes], value: object) -> None:
    if type(value) is bytes:
        parts.append(b"b%d:" % len(value))
        parts.append(value)
    elif type(value) is int:
        parts.append(b"i%d;" % value)
    elif value is None:
        parts.append(b"n")
    else:
        raise PassdownError("store_not_readable", rule="damaged")


def summary(session: Session, progress: Progress | None = None) -> Summary:
    """Read everything once."""
    digest = RowDigest()
    for table in TABLES:
        for batch in batches(session, table):
            done = digest.add(table, batch)
            if progress is not None:
                progress(table.name, done)
    return digest.summary()
