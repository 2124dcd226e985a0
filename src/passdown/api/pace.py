"""Reports beside commits: the pace at which one lane of work begins while another one is in use.

A report that a process of its own builds still passes through the server: its bytes are received and sent on by the
same interpreter that commits run in. Readers who ask over and over would take that from the commits without an end.

States: free (nothing was written since the last report began) and beside (something was, or is being written).
Invariants: a free lane never waits; beside commits two reports begin at least ``apart`` seconds from each other, and
what takes that long by itself is never made to wait. The pause comes before a piece of work and never behind one, so no
finished answer is kept back.

Public operations: :class:`Pace`; :func:`pause` is its rule.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from passdown.api.lanes import Lane

APART_SECONDS: Final = 0.04
"""At most 25 reports a second beside commits: some tenth of what the server's interpreter can do."""

T = TypeVar("T")


def pause(since_begun: float, *, beside: bool, apart: float) -> float:
    """Seconds to wait before the next piece begins, ``since_begun`` seconds after the last one did."""
    return max(0.0, apart - since_begun) if beside else 0.0


class Pace:
    """Paces what runs in one lane of a single thread by what happens in the lane ``others``."""

    def __init__(
        self, others: Lane, *, apart: float = APART_SECONDS, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._others = others
        self._apart = apart
        self._sleep = sleep
        self._lock = threading.Lock()
        self._begun = float("-inf")
        self._seen = 0

    def run(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises, begun when it may."""
        with self._lock:
            beside = self._others.inside > 0 or self._others.done != self._seen
            wait = pause(time.monotonic() - self._begun, beside=beside, apart=self._apart)
        if wait:
            self._sleep(wait)
        with self._lock:
            self._begun, self._seen = time.monotonic(), self._others.done
        return work()
