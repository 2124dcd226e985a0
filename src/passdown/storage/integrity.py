"""Whether a store is sound as a database: the file, the objects of the schema, the counters.

Design: what the rows mean is checked by the rooms that write them; here stands what holds for every store. Nothing is
repaired. The checks of one store share one snapshot, so that commits beside them are no contradictions.

Codes of problems: ``file_damaged`` (SQLite's own check; its first words are told), ``table_missing``,
``column_missing``, ``index_missing``, ``trigger_missing`` (rows that never change are not protected any more),
``counter_missing``, ``counter_negative``.

Public operations: :func:`check_file`, :func:`check_schema`, :func:`check_counters`, :func:`missing_tables`.
"""

from __future__ import annotations

from typing import Final

from passdown.kernel.errors import PassdownError
from passdown.storage.ddl import SQLITE, Ddl, trigger_name
from passdown.storage.findings import SHOWN, Check, Findings
from passdown.storage.session import Session, Store
from passdown.storage.tables import COUNTERS, INDEXES, TABLES, WRITES

_SOUND: Final = [("ok",)]


def check_file(store: Store) -> Check:
    """On SQLite, its own check of pages, indexes and constraints; other engines answer for their files themselves."""
    findings = Findings("file", "files")
    if store.engine == "sqlite":
        findings.examined = 1
        found = store.read(lambda session: session.all(f"PRAGMA integrity_check({SHOWN})"))
        if found != _SOUND:
            for row in found:
                findings.add("file_damaged", "", message=row[0])
    return findings.check()


def check_schema(store: Store) -> Check:
    """Every table with its columns, every index, and on every immutable table the triggers that keep its rows."""
    ddl = _ddl(store)
    findings = Findings("schema", "objects")
    tables, indexes, triggers = (
        store.read(lambda session, sql=sql: _names(session, sql))  # type: ignore[misc]
        for sql in (ddl.tables, ddl.indexes, ddl.triggers)
    )
    for table in TABLES:
        findings.examined += 1
        if table.name not in tables:
            findings.add("table_missing", table.name)
            continue
        if not _has_columns(store, table.name, table.columns):
            findings.add("column_missing", table.name)
        for change in ddl.changes if table.immutable else ():
            findings.examined += 1
            name = trigger_name(table.name, change)
            if name not in triggers:
                findings.add("trigger_missing", table.name, trigger=name)
    for name in INDEXES:
        findings.examined += 1
        if name not in indexes:
            findings.add("index_missing", "", index=name)
    return findings.check()


def check_counters(session: Session) -> Check:
    """The counter of writes is there, and no counter ever went below zero."""
    findings = Findings("counters", "counters")
    found = dict(session.all(f"SELECT name, value FROM {COUNTERS.name}"))
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


def missing_tables(store: Store) -> list[str]:
    """The tables that the store should have and has not."""
    there = store.read(lambda session: _names(session, _ddl(store).tables))
    return [table.name for table in TABLES if table.name not in there]


def _ddl(store: Store) -> Ddl:
    if store.engine == "sqlite":
        return SQLITE
    from passdown.storage.server_engine import engine_named

    return engine_named(store.engine).ddl


def _names(session: Session, sql: str) -> set[str]:
    found = (row[0] for row in session.all(sql))
    return {(name.decode() if isinstance(name, bytes) else str(name)).lower() for name in found}


def _has_columns(store: Store, table: str, columns: tuple[str, ...]) -> bool:
    """In a transaction of its own, since on some engines a refused statement ends the one that it is in."""
    try:
        store.read(lambda session: session.all(f"SELECT {', '.join(columns)} FROM {table} WHERE 1 = 0"))
    except PassdownError as error:
        if error.code == "internal_error" and error.members.get("rule") == "statement":
            return False
        raise
    return True
