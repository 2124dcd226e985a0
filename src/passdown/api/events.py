"""``GET /v1/events``: hints, over one long answer, that the store changed.

A hint says that some transaction changed the store since the last one, not which: whoever gets it asks again for what
it shows. The id of a hint is the store's counter of writes, so a listener that comes back with ``Last-Event-ID``
learns at once whether it missed any. Hints that nobody took yet are merged: a slow listener costs no memory.

States: quiet (no listener, nothing is read) -> watching (one poll of the counter each ``poll_seconds`` for all
listeners of this process, whichever process made the change) -> closed (the server stops, every answer ends). A
listener ends when it goes away, when its token stops to count (looked at with each heartbeat), or after
``life_seconds``.
Invariants: at most ``most`` listeners; a place is given back however the answer ends.

Public operations: :class:`Hints`, :class:`EventStream`, :func:`last_event_id`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import MAX_SAFE_INTEGER

LISTENERS: Final = 64
POLL_SECONDS: Final = 0.25
HEARTBEAT_SECONDS: Final = 15.0
LIFE_SECONDS: Final = 3600.0
_HEARTBEAT: Final = b": still here\n\n"

Read = Callable[[], Awaitable[int]]


def last_event_id(headers: Headers) -> int | None:
    """The counter value that a listener saw last, or None. Another form is ``invalid_request``."""
    given = headers.getlist("last-event-id")
    if not given:
        return None
    value = given[0]
    if len(given) == 1 and value.isascii() and value.isdigit() and len(value) <= 16 and int(value) <= MAX_SAFE_INTEGER:
        return int(value)
    raise PassdownError("invalid_request", field="Last-Event-ID", rule="repeated" if len(given) > 1 else "counter")


class Hints:
    """The listeners of one process. ``read`` reads the counter; ``failed`` is called when that did not work."""

    def __init__(
        self,
        read: Read,
        failed: Callable[[PassdownError], None],
        *,
        most: int = LISTENERS,
        poll_seconds: float = POLL_SECONDS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        life_seconds: float = LIFE_SECONDS,
    ) -> None:
        self.read = read
        self._failed = failed
        self._most = most
        self._poll_seconds = poll_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._life_seconds = life_seconds
        self._listeners: set[asyncio.Event] = set()
        self._places = 0
        self._value = -1
        self._poller: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def places_taken(self) -> int:
        """How many listeners there are."""
        return self._places

    def take_place(self) -> None:
        """Count a listener, or ``server_busy`` with rule ``listeners``; ``server_stopping`` once closed."""
        if self._closed:
            raise PassdownError("server_stopping")
        if self._places >= self._most:
            raise PassdownError("server_busy", rule="listeners", limit=self._most)
        self._places += 1

    def give_back(self) -> None:
        """The end of a listener that took a place."""
        self._places -= 1

    def close(self) -> None:
        """End every answer; no new listener is taken."""
        self._closed = True
        for moved in self._listeners:
            moved.set()

    async def listen(
        self, now: int, seen: int | None, still_allowed: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[bytes, None]:
        """The frames for one listener. ``now`` is the counter as just read, ``seen`` what the listener had seen."""
        moved = asyncio.Event()
        self._listeners.add(moved)
        self._start(now)
        until = time.monotonic() + self._life_seconds
        sent = now
        try:
            yield _frame("ready" if seen is None or seen == now else "change", now)
            while not self._closed and time.monotonic() < until:
                try:
                    async with asyncio.timeout(self._heartbeat_seconds):
                        await moved.wait()
                except TimeoutError:
                    if not await still_allowed():
                        return
                    yield _HEARTBEAT
                    continue
                moved.clear()
                if self._value != sent and not self._closed:
                    sent = self._value
                    yield _frame("change", sent)
        finally:
            self._listeners.discard(moved)
            if not self._listeners and self._poller is not None:
                self._poller.cancel()
                self._poller = None

    def _start(self, now: int) -> None:
        if self._poller is None or self._poller.done():
            self._value = now
            self._poller = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            try:
                value = await self.read()
            except PassdownError as error:
                # The listeners stay: their next question will be refused with the reason, and the store may come back.
                self._failed(error)
                continue
            if value != self._value:
                self._value = value
                for moved in self._listeners:
                    moved.set()


def _frame(event: str, value: int) -> bytes:
    return b'event: %s\nid: %d\ndata: {"writes":%d}\n\n' % (event.encode("ascii"), value, value)


class EventStream(StreamingResponse):
    """The long answer of one listener that took a place; it gives the place back when it ends, however it does."""

    def __init__(self, hints: Hints, frames: AsyncGenerator[bytes, None]) -> None:
        super().__init__(frames, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._hints = hints
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._hints.give_back()
            await self._frames.aclose()
