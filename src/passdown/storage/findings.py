"""What a check of a store finds: words for it, and the two ways of finding it.

Design: a check reads and never repairs. It gathers problems by code: how many there are, and the first few places, each
told by its table and primary key. A problem is found by a query whose rows are the places (:meth:`Findings.query`), or
in a program that reads row by row (:meth:`Findings.add`).

Public: :class:`Check`, :class:`Problem`, :class:`Findings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from passdown.kernel.limits import MAX_SAFE_INTEGER
from passdown.storage.session import Session

SHOWN: Final = 5
"""Places that are told of one problem; its count goes on."""

_PLACE_CHARS: Final = 256


@dataclass(frozen=True, slots=True)
class Problem:
    """``code`` says what is wrong, ``count`` how often, ``first`` where: ``{"table": …}`` and the key."""

    code: str
    count: int
    first: tuple[dict[str, str | int], ...]


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found; ``examined`` counts what it looked at, of the kind that ``unit`` says."""

    name: str
    examined: int
    unit: str
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class Findings:
    """Gathers the problems of one check."""

    def __init__(self, name: str, unit: str) -> None:
        self._name = name
        self._unit = unit
        self._counts: dict[str, int] = {}
        self._first: dict[str, list[dict[str, str | int]]] = {}
        self.examined = 0

    def add(self, code: str, table: str, **key: object) -> None:
        """One more place where ``code`` is wrong."""
        self._counts[code] = self._counts.get(code, 0) + 1
        shown = self._first.setdefault(code, [])
        if len(shown) < SHOWN:
            place: dict[str, str | int] = {"table": table}
            place.update((name, _told(value)) for name, value in key.items())
            shown.append(place)

    def query(self, session: Session, code: str, table: str, columns: tuple[str, ...], sql: str) -> None:
        """Each row of ``sql``, which selects ``columns``, is a place where ``code`` is wrong."""
        counted = session.one(f"SELECT COUNT(*) FROM ({sql}) found")
        count = 0 if counted is None else int(counted[0])
        if not count:
            return
        order = ", ".join(str(number) for number in range(1, len(columns) + 1))
        for row in session.all(f"{sql} ORDER BY {order} LIMIT {SHOWN}"):
            self.add(code, table, **dict(zip(columns, row, strict=True)))
        self._counts[code] += count - min(count, SHOWN)

    def check(self) -> Check:
        """What was found so far."""
        problems = tuple(Problem(code, count, tuple(self._first[code])) for code, count in self._counts.items())
        return Check(self._name, self.examined, self._unit, problems)


def _told(value: object) -> str | int:
    """A part of a key as it is shown: numbers as they are, text as text, other bytes in hexadecimal digits."""
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return value.hex()[:_PLACE_CHARS]
        return text[:_PLACE_CHARS] if text.isprintable() else value.hex()[:_PLACE_CHARS]
    return str(value)[:_PLACE_CHARS]
