"""The HTTP application, put together from operations, their handlers and the tokens.

Addresses: one POST per operation; ``/healthz`` says that the process answers, ``/readyz`` that the store can be read
(both without a token); ``/openapi.json`` is the API document (any token). There are no interactive pages, since those
load from elsewhere, and no cross-origin answers.

Public operations: :func:`create_app`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final

import orjson
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from passdown import __version__
from passdown.api.gate import Gate, host_names
from passdown.api.openapi import api_document
from passdown.api.problems import install_problem_handlers
from passdown.api.requests import BODY_SECONDS, bearer_token
from passdown.api.routes import Desk, add_operation
from passdown.identity.service import TokenService
from passdown.kernel import limits
from passdown.kernel.operations import Handler, Op

DOCUMENT_OPERATIONS: Final = frozenset({"get_handoff_report"})
"""Operations that answer bytes with a media type of their own instead of a JSON model."""


def create_app(
    handlers: Mapping[str, Handler],
    operations: Sequence[Op[Any, Any]],
    tokens: TokenService,
    *,
    max_body: int = limits.REQUEST_BODY_BYTES,
    body_seconds: float = BODY_SECONDS,
    allowed_hosts: Collection[str] = (),
    document_operations: Collection[str] = DOCUMENT_OPERATIONS,
    document_model: type[BaseModel] | None = None,
) -> FastAPI:
    """Make the application.

    ``handlers`` has one entry for each of ``operations``, by name; a missing one is a ``ValueError`` here and not a
    fault at the first request. ``max_body`` is in bytes, ``body_seconds`` is how long a body may take to arrive.
    ``allowed_hosts`` are names beside those of loopback that a ``Host`` header may hold: the address bound to, and the
    public names of a proxy in front. ``document_model`` describes the JSON form of a report for the API document.
    """
    missing = [op.name for op in operations if op.name not in handlers]
    if missing:
        raise ValueError(f"operations without a handler: {', '.join(missing)}")
    app = FastAPI(
        title="Passdown",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.add_middleware(Gate, hosts=host_names(allowed_hosts))
    install_problem_handlers(app)
    desk = Desk(tokens, max_body=max_body, body_seconds=body_seconds)
    for op in operations:
        add_operation(app, op, handlers[op.name], desk, is_document=op.name in document_operations)

    @cache
    def document() -> dict[str, Any]:
        return api_document(operations, documents=frozenset(document_operations), document_model=document_model)

    app.openapi = document  # type: ignore[method-assign]
    _add_service_addresses(app, desk)
    return app


def _add_service_addresses(app: FastAPI, desk: Desk) -> None:
    async def healthz(_request: Request) -> Response:
        return _json({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        # Any read of the store will do; this one is small and touches a table that is always there.
        await desk.run("read", desk.tokens.any_owner)
        return _json({"status": "ready"})

    async def openapi(request: Request) -> Response:
        token = bearer_token(request.headers)
        await desk.run("read", lambda: desk.admit(token, "read"))
        return _json(app.openapi())

    for path, endpoint in (("/healthz", healthz), ("/readyz", readyz), ("/openapi.json", openapi)):
        app.add_api_route(
            path, endpoint, methods=["GET", "HEAD"], name=path.strip("/"), include_in_schema=False, response_model=None
        )


def _json(value: dict[str, Any]) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
