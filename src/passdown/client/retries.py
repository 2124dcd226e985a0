"""When a request is sent again, and after how long. Pure but for the dice.

Every operation may be repeated: a read changes nothing, a write either identifies itself or carries an
``Idempotency-Key``, so its repetition is answered as the first time. Sent again is what got no answer at all, and what
was refused for the moment only; a refusal that says what is wrong is final.

Public operations: :class:`Retries`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from passdown.app.repeating import KEYED, NATURAL
from passdown.client.messages import is_temporary
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Effect

LONGEST_PAUSE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Retries:
    """At most ``attempts`` times in all; the pauses double from ``first_pause`` seconds, each with full jitter."""

    attempts: int = 4
    first_pause: float = 0.1
    dice: Callable[[], float] = random.random

    def pause_after(
        self, attempt: int, operation: str, effect: Effect, error: PassdownError, asked: float | None
    ) -> float | None:
        """Seconds to wait before attempt ``attempt + 1``, or None to give up. ``asked``: the ``Retry-After`` seen.

        A server that asks for a pause gets at least that one, up to five seconds.
        """
        if attempt >= self.attempts or not is_temporary(error) or not _may_repeat(operation, effect):
            return None
        pause: float = self.first_pause * 2 ** (attempt - 1) * self.dice()
        if asked is not None and error.code != "server_not_reachable":
            pause += asked
        return min(pause, LONGEST_PAUSE)


def _may_repeat(operation: str, effect: Effect) -> bool:
    return effect == "read" or operation in KEYED or operation in NATURAL


def retry_after(value: str | None) -> float | None:
    """The seconds of a ``Retry-After`` header; a date, or what cannot be read, counts as none."""
    return float(value) if value is not None and value.isascii() and value.isdigit() and len(value) <= 4 else None
