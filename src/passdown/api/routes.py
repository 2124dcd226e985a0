"""Routes, derived from the description of each operation.

One request runs: token -> role and named operations -> media type -> bytes -> strict reader -> projects -> kept answer
-> handler -> bytes. The framework parses and validates nothing, so that a body is read once and by one set of rules.
Handlers are synchronous and run in threads. A body that is announced as small is received first, so that the whole
request is one visit to a thread; any other is received only for a caller who may send it.

Public operations: :func:`add_operation`, :class:`Document`.
"""

from __future__ import annotations

import re
from typing import Any, Final, Protocol, runtime_checkable

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from passdown.api.desk import Desk
from passdown.api.encoding import accepts_gzip, encode
from passdown.api.exchange import Exchange, exchange_of
from passdown.api.requests import announced_length, bearer_token, idempotency_key, require_json
from passdown.app.repeating import KEYED
from passdown.identity.rules import Access
from passdown.kernel.operations import Handler, Op
from passdown.kernel.wire import read_model

SMALL_BODY: Final = 64 * 1024
"""What a caller who is not known yet may send, in bytes: no more than the head of a request may hold."""

FILE_NAME: Final = "Passdown-File-Name"
"""The name under which a document is best kept; sent with every document, whether it is to be downloaded or not."""

REPLAYED: Final = "Idempotency-Replayed"
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")


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


def add_operation(app: FastAPI, op: Op[Any, Any], handler: Handler, desk: Desk, *, is_document: bool) -> None:
    """Serve ``op`` at its path, for POST only. ``is_document``: the handler answers a :class:`Document`."""
    endpoint = _document_endpoint(op, handler, desk) if is_document else _model_endpoint(op, handler, desk)
    app.add_api_route(
        op.path, endpoint, methods=["POST"], name=op.name, operation_id=op.name, summary=op.summary, response_model=None
    )


def _model_endpoint(op: Op[Any, Any], handler: Handler, desk: Desk) -> Any:
    takes_key = op.name in KEYED

    async def endpoint(request: Request) -> Response:
        exchange_of(request.scope).operation = op.name
        token = bearer_token(request.headers)
        gzip = accepts_gzip(request.headers.getlist("accept-encoding"))

        def admit() -> Access:
            access = desk.admit(token, op.name, op.effect)
            require_json(request.headers)
            return access

        def work(access: Access, body: bytes) -> Response:
            key = idempotency_key(request.headers) if takes_key else None
            ask = read_model(op.ask, body, max_bytes=desk.max_body)
            desk.confine(access, op, ask)
            if key is None or desk.replays is None:
                answer, replayed = _bytes(op, handler(access.principal, ask)), False
            else:
                answer, replayed = desk.replays.once(
                    access.principal, op.name, key, body, lambda: _bytes(op, handler(access.principal, ask))
                )
            headers = {REPLAYED: "true"} if replayed else None
            return encode(Response(answer, media_type="application/json", headers=headers), accepted=gzip)

        announced = announced_length(request.headers)
        if announced is not None and announced <= min(SMALL_BODY, desk.max_body):
            body = await desk.receive(request)
            return await desk.run(op.effect, lambda: work(admit(), body))
        access = await desk.run("read", admit)
        body = await desk.receive(request)
        return await desk.run(op.effect, lambda: work(access, body))

    return endpoint


def _document_endpoint(op: Op[Any, Any], handler: Handler, desk: Desk) -> Any:
    async def endpoint(request: Request) -> Response:
        exchange = exchange_of(request.scope)
        exchange.operation = op.name
        token = bearer_token(request.headers)
        gzip = accepts_gzip(request.headers.getlist("accept-encoding"))

        def admit() -> Access:
            access = desk.admit(token, op.name, op.effect)
            require_json(request.headers)
            return access

        def read(access: Access, body: bytes) -> tuple[Access, Any]:
            ask = read_model(op.ask, body, max_bytes=desk.max_body)
            desk.confine(access, op, ask)
            return access, ask

        # Judged before it stands in line: a request that will be refused takes no place among the reports.
        announced = announced_length(request.headers)
        if announced is not None and announced <= min(SMALL_BODY, desk.max_body):
            body = await desk.receive(request)
            access, ask = await desk.run("read", lambda: read(admit(), body))
        else:
            access = await desk.run("read", admit)
            body = await desk.receive(request)
            access, ask = await desk.run("read", lambda: read(access, body))
        _note_projection(exchange, ask)

        def build() -> Response:
            return encode(_document_response(op, ask, handler(access.principal, ask)), accepted=gzip)

        return await desk.run_report(build)

    return endpoint


def _note_projection(exchange: Exchange, ask: Any) -> None:
    exchange.format = getattr(ask, "format", "none")
    exchange.locale = getattr(ask, "locale", None) or "project"


def _bytes(op: Op[Any, Any], answer: Any) -> bytes:
    if not isinstance(answer, op.answer) or not isinstance(answer, BaseModel):
        raise TypeError(f"{op.name} answered {type(answer).__name__}")
    return answer.model_dump_json().encode("utf-8")


def _document_response(op: Op[Any, Any], ask: Any, answer: Any) -> Response:
    if not isinstance(answer, Document):
        raise TypeError(f"{op.name} answered {type(answer).__name__}")
    if not _FILE_NAME.match(answer.file_name):
        raise ValueError(f"{op.name} gave a file name that a header cannot hold")
    headers = {
        "Passdown-Selection-Digest": answer.selection_digest,
        "Passdown-Report-Digest": answer.report_digest,
        FILE_NAME: answer.file_name,
    }
    if getattr(ask, "download", False):
        headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
        headers["Content-Security-Policy"] = "sandbox"
    return Response(answer.body, media_type=answer.media_type, headers=headers)
