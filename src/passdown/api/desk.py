"""What every route shares: who may ask, how much may come in, in whose threads it is done and how long that may take.

Operations that write, operations that read and reports have lanes of their own, so that a queue of one never keeps the
others waiting. Reports are built few at a time: they are work for the processor, and more of them at once would only
make each of them, and every commit beside them, slower.

Public operations: :class:`Desk`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from starlette.requests import Request

from passdown.api.lanes import Lane
from passdown.api.meters import Meters
from passdown.api.requests import BODY_SECONDS, read_body
from passdown.app.places import Places, require_within
from passdown.app.replays import Replays
from passdown.identity.rules import Access
from passdown.identity.service import TokenService
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Effect, Op

READ_THREADS: Final = 8
WRITE_THREADS: Final = 16
REPORT_THREADS: Final = 1
WAITING: Final = 512
"""Requests that may wait for a thread of their lane."""

REPORTS_WAITING: Final = 64
ANSWER_SECONDS: Final = 60.0
"""In which an answer has to be ready once its request was received whole."""

T = TypeVar("T")


@dataclass(frozen=True)
class Desk:
    """``replays`` and ``places`` None: nothing is kept for repetitions, and confined tokens reach no operation."""

    tokens: TokenService
    replays: Replays | None = None
    places: Places | None = None
    max_body: int = limits.REQUEST_BODY_BYTES
    body_seconds: float = BODY_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    meters: Meters = field(default_factory=Meters)
    readers: Lane = field(default_factory=lambda: Lane("reads", threads=READ_THREADS, waiting=WAITING))
    writers: Lane = field(default_factory=lambda: Lane("writes", threads=WRITE_THREADS, waiting=WAITING))
    reports: Lane = field(default_factory=lambda: Lane("reports", threads=REPORT_THREADS, waiting=REPORTS_WAITING))

    def admit(self, token: str, operation: str, effect: Effect) -> Access:
        """Who shows the token, if it allows the operation; else ``unauthenticated`` or ``forbidden``."""
        access = self.tokens.access(token)
        access.require(operation, effect)
        return access

    def confine(self, access: Access, op: Op[Any, Any], ask: Any) -> None:
        """Refuse a request that reaches beyond the projects of the token."""
        require_within(self.places, access.projects, op.name, ask)

    def admit_to_service(self, token: str, name: str) -> Access:
        """For an address that is no operation: it shows something of every project, so confined tokens do not pass."""
        access = self.admit(token, name, "read")
        if access.projects:
            raise PassdownError("forbidden", rule="project")
        return access

    async def receive(self, request: Request) -> bytes:
        """The body of an operation, as it came."""
        return await read_body(request.headers, request.receive, max_bytes=self.max_body, seconds=self.body_seconds)

    async def run(self, effect: Effect, work: Callable[[], T]) -> T:
        """Run ``work`` in one of the threads that its effect has."""
        lane = self.readers if effect == "read" else self.writers
        return await lane.run(work, seconds=self.answer_seconds)

    async def run_report(self, work: Callable[[], T]) -> T:
        """Run ``work`` when its turn among the reports comes."""
        return await self.reports.run(work, seconds=self.answer_seconds)
