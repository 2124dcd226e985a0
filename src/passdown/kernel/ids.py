"""Ids that this program makes: a prefix that names the kind, and 26 characters that sort by the time of making.

The 26 characters are a ULID: 48 bits of milliseconds and 80 random bits in Crockford's base 32, upper case. An id is
opaque: nothing is read back from it, and it is no secret.

Invariants of :class:`RandomIds`: within one source every id is greater than the one before, also from several threads,
within one millisecond, and while the clock goes back; a forked process continues with ids of its own.

Public: :data:`PREFIXES`, :class:`IdSource`, :class:`RandomIds`, :class:`SequentialIds`.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from passdown.kernel.clock import Clock

PREFIXES: Final = frozenset(
    ("prj_", "scp_", "hnd_", "src_", "ws_", "evt_", "req_", "att_", "eff_", "res_", "grt_", "tok_")
)

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH: Final = 26
_RANDOM_BITS: Final = 80
_STRIDE_BITS: Final = 40
_LAST_MS: Final = 2**48 - 1


class IdSource(Protocol):
    """What makes ids."""

    def new(self, prefix: str) -> str:
        """A new id that begins with ``prefix``, one of :data:`PREFIXES`; another is a ``ValueError``."""
        ...


class RandomIds:
    """Ids from ``clock`` and from ``entropy`` (a function from a count to that many bytes; the system's by default)."""

    def __init__(self, clock: Clock, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._clock = clock
        self._entropy = entropy
        self._lock = threading.Lock()
        self._ms = -1
        self._tail = 0

    def new(self, prefix: str) -> str:
        """A new id, greater than every earlier one of this source with that prefix."""
        _check(prefix)
        with self._lock:
            now_ms = min(max(self._clock.now_us() // 1_000, 0), _LAST_MS)
            if now_ms > self._ms:
                self._ms, self._tail = now_ms, self._random(_RANDOM_BITS)
            else:
                # A random stride, not the next number: after a fork both processes go on from the same state.
                self._tail += 1 + self._random(_STRIDE_BITS)
                if self._tail >> _RANDOM_BITS:
                    self._ms, self._tail = self._ms + 1, self._random(_RANDOM_BITS)
            return prefix + _base32(self._ms << _RANDOM_BITS | self._tail)

    def _random(self, bits: int) -> int:
        return int.from_bytes(self._entropy(bits // 8), "big")


class SequentialIds:
    """Ids that count up from 1 for each prefix: the same calls give the same ids."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        """The next id of ``prefix``."""
        _check(prefix)
        with self._lock:
            self._made[prefix] += 1
            return prefix + _base32(self._made[prefix])


def _check(prefix: str) -> None:
    if prefix not in PREFIXES:
        raise ValueError("unknown id prefix")


def _base32(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(5 * (_LENGTH - 1), -1, -5))
