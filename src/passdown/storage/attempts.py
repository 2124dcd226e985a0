"""Trying again, a bounded number of times and with jitter.

Design: an attempt that met an error which the same statements may not meet again rolls itself back and raises
:class:`AgainError`. Nothing else is repeated. When the attempts or the time are used up, the caller gets the refusal
that the last attempt brought along, ``store_busy`` unless it says otherwise.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from passdown.kernel.errors import PassdownError
from passdown.storage.session import T

ATTEMPTS: Final = 6
_FIRST_PAUSE_SECONDS: Final = 0.004


class AgainError(Exception):
    """The attempt met a retryable error, told by ``__cause__``, and was rolled back."""

    def __init__(self, refusal: PassdownError | None = None) -> None:
        super().__init__()
        self.refusal = refusal or PassdownError("store_busy")


def attempts(once: Callable[[], T], deadline: float) -> T:
    """Call ``once`` until it answers, at most :data:`ATTEMPTS` times and until ``deadline`` (``time.monotonic``)."""
    pause = _FIRST_PAUSE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return once()
        except AgainError as again:
            if attempt == ATTEMPTS or time.monotonic() >= deadline:
                raise again.refusal from again.__cause__
        time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries, guards nothing
        pause *= 2
    raise AssertionError("the last attempt returns or raises")
