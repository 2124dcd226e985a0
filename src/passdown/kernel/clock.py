"""Time as a dependency: integers of microseconds since 1970-01-01T00:00:00Z.

Whoever needs the time is given a :class:`Clock`, so that tests and reproducible reports choose it. A clock may go back;
nothing may rely on it to order facts.

Public: :class:`Clock`, :class:`SystemClock`, :class:`FixedClock`.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What tells the time."""

    def now_us(self) -> int:
        """Microseconds UTC since the epoch."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now_us(self) -> int:
        """Microseconds UTC since the epoch, rounded down."""
        return time.time_ns() // 1_000


class FixedClock:
    """A clock that stands at ``us`` until it is moved, forward or back."""

    def __init__(self, us: int) -> None:
        self._us = us

    def now_us(self) -> int:
        """The microsecond at which the clock stands."""
        return self._us

    def move(self, delta_us: int) -> None:
        """Move the clock by ``delta_us`` microseconds."""
        self._us += delta_us
