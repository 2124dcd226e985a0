"""Routes, derived from the description of each operation.

One request runs: token -> role -> media type -> bytes -> strict reader -> handler -> bytes. The framework parses and
validates nothing, so that a body is read once and by one set of rules. Handlers are synchronous and run in threads;
operations that write, operations that read and the checking of tokens wait in lines of their own, so that a queue of
writers never keeps a reader or a refusal waiting.

Public operations: :class:`Desk` (what all routes share), :func:`add_operation`, :class:`Document`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from passdown.api.requests import BODY_SECONDS, bearer_token, read_body, require_json
from passdown.identity.service import TokenService
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Effect, Handler, Op, Principal
from passdown.kernel.wire import read_model

TOKEN_THREADS: Final = 4
READ_THREADS: Final = 8
WRITE_THREADS: Final = 16
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


@dataclass(frozen=True)
class Desk:
    """What every route shares: who checks tokens, how much may come in and how long it may take."""

    tokens: TokenService
    max_body: int = limits.REQUEST_BODY_BYTES
    body_seconds: float = BODY_SECONDS
    token_line: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(TOKEN_THREADS))
    read_line: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(READ_THREADS))
    write_line: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(WRITE_THREADS))

    async def admit(self, request: Request, effect: Effect) -> Principal:
        """Who asks, if the role allows the effect; else ``unauthenticated`` or ``forbidden``."""
        token = bearer_token(request.headers)
        who = await anyio.to_thread.run_sync(self.tokens.authenticate, token, limiter=self.token_line)
        if not who.may(effect):
            raise PassdownError("forbidden", rule="role", effect=effect)
        return who

    async def read(self, request: Request) -> bytes:
        """The body of an operation, as it came."""
        require_json(request.headers)
        return await read_body(request.headers, request.receive, max_bytes=self.max_body, seconds=self.body_seconds)

    async def run(self, effect: Effect, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread of the line that its effect belongs to."""
        line = self.read_line if effect == "read" else self.write_line
        return await anyio.to_thread.run_sync(work, limiter=line)


def add_operation(app: FastAPI, op: Op[Any, Any], handler: Handler, desk: Desk, *, is_document: bool) -> None:
    """Serve ``op`` at its path, for POST only. ``is_document``: the handler answers a :class:`Document`."""
    respond = _document_response if is_document else _model_response

    async def endpoint(request: Request) -> Response:
        who = await desk.admit(request, op.effect)
        body = await desk.read(request)

        def work() -> Response:
            ask = read_model(op.ask, body, max_bytes=desk.max_body)
            return respond(op, ask, handler(who, ask))

        return await desk.run(op.effect, work)

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
