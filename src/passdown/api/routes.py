"""Routes, derived from the description of each operation.

One request runs: token -> role -> media type -> bytes -> strict reader -> handler -> bytes. The framework parses and
validates nothing, so that a body is read once and by one set of rules. Handlers are synchronous and run in threads;
operations that write and operations that read have threads of their own, so that a queue of writers never keeps a
reader waiting. A body that is announced as small is received first, so that the whole request is one visit to a thread;
any other is received only for a caller who may send it.

Public operations: :class:`Desk` (what all routes share), :func:`add_operation`, :class:`Document`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from passdown.api.requests import BODY_SECONDS, announced_length, bearer_token, read_body, require_json
from passdown.identity.service import TokenService
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Effect, Handler, Op, Principal
from passdown.kernel.wire import read_model

READ_THREADS: Final = 8
WRITE_THREADS: Final = 16
SMALL_BODY: Final = 64 * 1024
"""What a caller who is not known yet may send, in bytes: no more than the head of a request may hold."""
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")

T = TypeVar("T")


@runtime_checkable
class Document(Protocol):
    """An answer that is bytes already; its media type and digests travel in headers."""

    @property
    def body(self) -> bytes: ...
    @property
    def media_type(self) -> str: ...
    @property
    def selection_digest(self) -> str: ...
    @property
    def report_digest(self) -> str: ...
    @property
    def file_name(self) -> str: ...


def _threads(count: int, name: str) -> Callable[[], ThreadPoolExecutor]:
    return lambda: ThreadPoolExecutor(count, thread_name_prefix=f"passdown-{name}")


@dataclass(frozen=True)
class Desk:
    """What every route shares: who checks tokens, how much may come in and how long it may take, in whose threads."""

    tokens: TokenService
    max_body: int = limits.REQUEST_BODY_BYTES
    body_seconds: float = BODY_SECONDS
    readers: ThreadPoolExecutor = field(default_factory=_threads(READ_THREADS, "read"))
    writers: ThreadPoolExecutor = field(default_factory=_threads(WRITE_THREADS, "write"))

    def admit(self, token: str, effect: Effect) -> Principal:
        """Who shows the token, if its role allows the effect; else ``unauthenticated`` or ``forbidden``."""
        who = self.tokens.authenticate(token)
        if not who.may(effect):
            raise PassdownError("forbidden", rule="role", effect=effect)
        return who

    async def receive(self, request: Request) -> bytes:
        """The body of an operation, as it came."""
        return await read_body(request.headers, request.receive, max_bytes=self.max_body, seconds=self.body_seconds)

    async def run(self, effect: Effect, work: Callable[[], T]) -> T:
        """Run ``work`` in one of the threads that its effect has."""
        threads = self.readers if effect == "read" else self.writers
        return await asyncio.get_running_loop().run_in_executor(threads, work)


def add_operation(app: FastAPI, op: Op[Any, Any], handler: Handler, desk: Desk, *, is_document: bool) -> None:
    """Serve ``op`` at its path, for POST only. ``is_document``: the handler answers a :class:`Document`."""
    respond = _document_response if is_document else _model_response

    async def endpoint(request: Request) -> Response:
        token = bearer_token(request.headers)

        def admit() -> Principal:
            who = desk.admit(token, op.effect)
            require_json(request.headers)
            return who

        def work(who: Principal, body: bytes) -> Response:
            ask = read_model(op.ask, body, max_bytes=desk.max_body)
            return respond(op, ask, handler(who, ask))

        announced = announced_length(request.headers)
        if announced is not None and announced <= min(SMALL_BODY, desk.max_body):
            body = await desk.receive(request)
            return await desk.run(op.effect, lambda: work(admit(), body))
        who = await desk.run("read", admit)
        body = await desk.receive(request)
        return await desk.run(op.effect, lambda: work(who, body))

    app.add_api_route(
        op.path, endpoint, methods=["POST"], name=op.name, operation_id=op.name, summary=op.summary, response_model=None
    )


def _model_response(op: Op[Any, Any], _ask: Any, answer: Any) -> Response:
    if not isinstance(answer, op.answer) or not isinstance(answer, BaseModel):
        raise TypeError(f"{op.name} answered {type(answer).__name__}")
    return Response(answer.model_dump_json().encode("utf-8"), media_type="application/json")


def _document_response(op: Op[Any, Any], ask: Any, answer: Any) -> Response:
    if not isinstance(answer, Document):
        raise TypeError(f"{op.name} answered {type(answer).__name__}")
    headers = {
        "Passdown-Selection-Digest": answer.selection_digest,
        "Passdown-Report-Digest": answer.report_digest,
    }
    if getattr(ask, "download", False):
        if not _FILE_NAME.match(answer.file_name):
            raise ValueError(f"{op.name} gave a file name that a header cannot hold")
        headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
        headers["Content-Security-Policy"] = "sandbox"
    return Response(answer.body, media_type=answer.media_type, headers=headers)
