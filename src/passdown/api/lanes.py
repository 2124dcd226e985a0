"""Lanes: threads for one kind of work, with a bound on what waits for them and on how long anybody waits.

States of a piece of work: waiting -> running -> done. A piece that finds the lane full is refused at once
(``server_busy``); one whose time ends while it waits never runs (``server_busy`` too, so nothing was done); one whose
time ends while it runs goes on by itself, and the caller is told that the outcome is not known (``answer_timeout``).

Public operations: :class:`Lane`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from passdown.kernel.errors import PassdownError

T = TypeVar("T")


class Lane:
    """``threads`` pieces of work at once, at most ``waiting`` behind them; ``name`` is the ``rule`` of a refusal."""

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self.name = name
        self.limit = threads + waiting
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"passdown-{name}")
        self._lock = threading.Lock()
        self._inside = 0

    @property
    def inside(self) -> int:
        """How many pieces of work wait or run now."""
        return self._inside

    async def run(self, work: Callable[[], T], *, seconds: float) -> T:
        """What ``work`` returns or raises, in a thread of the lane, within ``seconds``."""
        with self._lock:
            if self._inside >= self.limit:
                raise PassdownError("server_busy", rule=self.name, limit=self.limit)
            self._inside += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._leave)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if future.done() and not future.cancelled():
                return future.result()
            if future.cancel():
                raise PassdownError("server_busy", rule=self.name, limit=self.limit) from None
            raise PassdownError("answer_timeout", limit=seconds) from None

    def _leave(self, _future: Future[T]) -> None:
        with self._lock:
            self._inside -= 1
