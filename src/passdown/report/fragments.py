"""What reports have in common, made once: results of pure functions of rows that never change.

Most of a report was in the one before it: the same revisions with the same evidence. What is made of them (the parsed
content, the facts of the evidence, the canonical bytes of a workstream's handoff) is kept here.

A kept result is found by *everything* it was made from, by value: the stored bytes of a content, the rows of the
evidence as this very report read them. So nothing here can be out of date. Whether a source is there is read anew for
each report, and a source that is gone is another argument, which has no kept result. Heads and the catalog are never an
argument.

States: entries from the longest unused to the last used. Invariants: at most ``entries`` of them, which weigh at most
``size`` together; one that alone weighs more is made anew each time; nobody changes a result that was handed out. Safe
to share between threads: two that miss at once both make the result, and one of the two equal ones is kept.

Public operations: :class:`Fragments`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TypeVar, TypeVarTuple, cast

V = TypeVar("V")
Ts = TypeVarTuple("Ts")

ENTRIES: Final = 8_192
"""Three for each revision: some 2,700 revisions."""
SIZE: Final = 64 * 1024 * 1024
"""Bytes of memory, as the callers estimate them."""


class Fragments:
    """Results of pure functions. ``entries`` 0 keeps none, which changes no report, only what it costs."""

    def __init__(self, entries: int = ENTRIES, size: int = SIZE) -> None:
        self._entries = entries
        self._size = size
        self._kept: OrderedDict[tuple[Any, ...], tuple[Any, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def of(self, make: Callable[[*Ts], V], *arguments: *Ts, weigh: Callable[[V], int]) -> V:
        """``make(*arguments)``. The arguments are hashable; ``weigh`` estimates the bytes of a new result."""
        key = (make, *arguments)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return cast(V, found[0])
        made = make(*arguments)
        weight = weigh(made)
        if weight <= self._size:
            self._keep(key, made, weight)
        return made

    def _keep(self, key: tuple[Any, ...], made: Any, weight: int) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (made, weight)
            self._weight += weight
            while len(self._kept) > self._entries or self._weight > self._size:
                _, (_, freed) = self._kept.popitem(last=False)
                self._weight -= freed

    @property
    def kept(self) -> tuple[int, int]:
        """How many results are kept, and what they weigh."""
        with self._lock:
            return len(self._kept), self._weight
