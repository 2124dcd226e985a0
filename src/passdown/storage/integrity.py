"""Whether a store is sound as a database: the file, the objects of the schema, the counters.

Design: what the rows mean is checked by the rooms that write them; here stands what holds for every store. Nothing is
repaired. The checks of one store share one snapshot, so that commits beside them are no contradictions.

Codes of problems: ``file_damaged`` (SQLite's own check; its first words are told), ``table_missing``,
``column_missing``, ``index_missing``, ``trigger_missing`` (rows that never change are not protected any more),
``value_kind_differs`` (text where bytes belong, and the like), ``counter_missing``, ``counter_negative``.

Public operations: :func:`check_foundation`, :func:`check_counters`, :func:`is_readable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from passdown.kernel.errors import PassdownError
from passdown.storage.ddl import SQLITE, Ddl, trigger_name
from passdown.storage.findings import SHOWN, Check, Findings
from passdown.storage.session import Session, Store
from passdown.storage.tables import COUNTERS, INDEXES, NUMBERS, TABLES, WRITES, Table

_SOUND: Final = [("ok",)]
_UNREADABLE: Final = frozenset({"table_missing", "column_missing"})


def check_foundation(store: Store, *, without: str | None = None) -> tuple[list[Check], bool]:
    """The checks ``file``, ``schema`` and ``values``, and whether what the rows say can be checked further.

    The first and the last are about SQLite; other engines answer for their files and kinds themselves. A file that
    SQLite cannot read at all is ``store_not_readable`` with rule ``damaged``. Tables and indexes whose names begin with
    ``without`` belong to nobody here and are passed over, whether they are there or not.
    """
    tables = tuple(table for table in TABLES if without is None or not table.name.startswith(without))
    is_file = store.engine == "sqlite"
    found: list[Check] = []
    if is_file:
        found.append(store.read(_check_file))
    if all(check.ok for check in found):
        found.append(_check_schema(store, tables, without))
        if is_file and _is_whole(found[-1]):
            found.append(store.read(lambda session: _check_values(session, tables)))
    return found, found[-1].ok or (found[-1].name == "schema" and _is_whole(found[-1]))


def is_readable(store: Store) -> bool:
    """Whether every table and column is there."""
    return _is_whole(_check_schema(store, TABLES, None))


def _is_whole(schema: Check) -> bool:
    return not any(problem.code in _UNREADABLE for problem in schema.problems)


def _check_file(session: Session) -> Check:
    """SQLite's own check of pages, indexes and constraints."""
    findings = Findings("file", "files")
    findings.examined = 1
    found = session.all(f"PRAGMA integrity_check({SHOWN})")
    if found != _SOUND:
        for row in found:
            findings.add("file_damaged", "", message=row[0])
    return findings.check()


def _check_schema(store: Store, wanted: Sequence[Table], without: str | None) -> Check:
    """Every table with its columns, every index, and on every immutable table the triggers that keep its rows."""
    ddl = _ddl(store)
    findings = Findings("schema", "objects")
    tables, indexes, triggers = (_names(store, sql) for sql in (ddl.tables, ddl.indexes, ddl.triggers))
    for table in wanted:
        findings.examined += 1
        if table.name not in tables:
            findings.add("table_missing", table.name)
            continue
        if not _has_columns(store, table):
            findings.add("column_missing", table.name)
        for change in ddl.changes if table.immutable else ():
            findings.examined += 1
            name = trigger_name(table.name, change)
            if name not in triggers:
                findings.add("trigger_missing", table.name, trigger=name)
    for name in INDEXES:
        if without is not None and name.startswith(without):
            continue
        findings.examined += 1
        if name not in indexes:
            findings.add("index_missing", "", index=name)
    return findings.check()


def _check_values(session: Session, tables: Sequence[Table]) -> Check:
    """SQLite stores any kind of value in any column; a server would have refused it."""
    findings = Findings("values", "columns")
    for table in tables:
        findings.examined += len(table.columns)
        wrong = " OR ".join(
            f"typeof({name}) NOT IN ('{'integer' if name in NUMBERS else 'blob'}', 'null')" for name in table.columns
        )
        sql = f"SELECT {', '.join(table.key)} FROM {table.name} WHERE {wrong}"
        findings.query(session, "value_kind_differs", table.name, table.key, sql)
    return findings.check()


def check_counters(session: Session) -> Check:
    """The counter of writes is there, and no counter ever went below zero."""
    findings = Findings("counters", "counters")
    found = {row[0] for row in session.all(f"SELECT name FROM {COUNTERS.name}")}
    findings.examined = len(found)
    if WRITES not in found:
        findings.add("counter_missing", COUNTERS.name, name=WRITES)
    findings.query(
        session,
        "counter_negative",
        COUNTERS.name,
        ("name",),
        f"SELECT name FROM {COUNTERS.name} WHERE value < 0",
    )
    return findings.check()


def _ddl(store: Store) -> Ddl:
    if store.engine == "sqlite":
        return SQLITE
    from passdown.storage.server_engine import engine_named

    return engine_named(store.engine).ddl


def _names(store: Store, sql: str) -> set[str]:
    found = (row[0] for row in store.read(lambda session: session.all(sql)))
    return {(name.decode() if isinstance(name, bytes) else str(name)).lower() for name in found}


def _has_columns(store: Store, table: Table) -> bool:
    """In a transaction of its own, since on some engines a refused statement ends the one that it is in."""
    try:
        store.read(lambda session: session.all(f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE 1 = 0"))
    except PassdownError as error:
        if error.code == "internal_error" and error.members.get("rule") == "statement":
            return False
        raise
    return True
