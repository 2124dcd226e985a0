"""How a migration asks an engine what is there, and how rows are made immutable.

Design: plain SQL over the catalog of each engine, because reflection is blind on some of them. Names are compared in
lower case; all of ours are. A table's rows are made immutable by triggers, one for each kind of change, named
``TABLE_no_update`` and so on. The server engines' descriptions stand in their own files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Ddl:
    """``tables``, ``indexes`` and ``triggers`` are queries for the names that there are in the database.

    ``refuse(table, change)`` are the statements that make the database refuse one of ``changes``.
    """

    tables: str
    indexes: str
    triggers: str
    changes: Sequence[str]
    refuse: Callable[[str, str], Sequence[str]]


def trigger_name(table: str, change: str) -> str:
    """The name of the trigger that refuses ``change`` (``UPDATE``, ``DELETE`` …) of rows of ``table``."""
    return f"{table}_no_{change.lower()}"


def _refuse(table: str, change: str) -> Sequence[str]:
    return (
        f"CREATE TRIGGER IF NOT EXISTS {trigger_name(table, change)} BEFORE {change} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are immutable'); END",
    )


SQLITE: Final = Ddl(
    tables="SELECT name FROM sqlite_master WHERE type = 'table'",
    indexes="SELECT name FROM sqlite_master WHERE type = 'index'",
    triggers="SELECT name FROM sqlite_master WHERE type = 'trigger'",
    changes=("UPDATE", "DELETE"),
    refuse=_refuse,
)
