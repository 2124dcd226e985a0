"""The HTTP application, put together from operations, their handlers and the tokens.

Addresses: one POST per operation; ``/healthz`` says that the process answers, ``/readyz`` that the store can be read
(both without a token); ``/openapi.json`` is the API document (any token); ``/metrics`` is for an owner's or reader's
token, ``/v1/events`` for any, neither for one that is confined to projects. There are no interactive pages, since those
load from elsewhere, and no cross-origin answers.

Public operations: :func:`create_app`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from passdown.api.desk import ANSWER_SECONDS, REPORT_THREADS, REPORTS_WAITING, Desk
from passdown.api.events import HEARTBEAT_SECONDS, LISTENERS, POLL_SECONDS, Hints
from passdown.api.gate import Gate, host_names
from passdown.api.lanes import Lane
from passdown.api.openapi import api_document
from passdown.api.problems import install_problem_handlers
from passdown.api.requests import BODY_SECONDS
from passdown.api.routes import add_operation
from passdown.api.service import add_service_addresses
from passdown.app.operations import DOCUMENT_OPERATIONS
from passdown.app.places import Places
from passdown.app.replays import Replays
from passdown.identity.service import TokenService
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Handler, Op
from passdown.kernel.version import __version__


def create_app(
    handlers: Mapping[str, Handler],
    operations: Sequence[Op[Any, Any]],
    tokens: TokenService,
    *,
    max_body: int = limits.REQUEST_BODY_BYTES,
    body_seconds: float = BODY_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
    reports_waiting: int = REPORTS_WAITING,
    listeners: int = LISTENERS,
    poll_seconds: float = POLL_SECONDS,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    replays: Replays | None = None,
    places: Places | None = None,
    writes: Callable[[], int] | None = None,
    allowed_hosts: Collection[str] = (),
    document_operations: Collection[str] = DOCUMENT_OPERATIONS,
    document_model: type[BaseModel] | None = None,
) -> FastAPI:
    """Make the application.

    ``handlers`` has one entry for each of ``operations``, by name; a missing one is a ``ValueError`` here and not a
    fault at the first request. ``replays`` keeps answers for ``Idempotency-Key``, ``places`` traces requests to
    projects for confined tokens, ``writes`` reads the counter that hints are made of; each comes from the application
    that the handlers are of, and without one its part is off (no answer is kept, confined tokens reach nothing, no
    hint comes).

    ``max_body`` is in bytes, ``body_seconds`` is how long a body may take to arrive, ``answer_seconds`` how long an
    answer may take to be made, ``reports_waiting`` how many reports may stand in line, ``listeners`` how many may wait
    for hints, ``poll_seconds`` how often the counter is read for them and ``heartbeat_seconds`` how often they hear
    that the line still stands.
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
    desk = Desk(
        tokens,
        replays=replays,
        places=places,
        max_body=max_body,
        body_seconds=body_seconds,
        answer_seconds=answer_seconds,
        reports=Lane("reports", threads=REPORT_THREADS, waiting=reports_waiting),
    )
    app.add_middleware(Gate, hosts=host_names(allowed_hosts), ended=desk.meters.count)
    install_problem_handlers(app)
    for op in operations:
        add_operation(app, op, handlers[op.name], desk, is_document=op.name in document_operations)

    @cache
    def document() -> dict[str, Any]:
        return api_document(operations, documents=frozenset(document_operations), document_model=document_model)

    app.openapi = document  # type: ignore[method-assign]
    hints = _hints(desk, writes, most=listeners, poll_seconds=poll_seconds, heartbeat_seconds=heartbeat_seconds)
    app.state.hints = hints
    app.state.desk = desk
    desk.meters.watch("listeners", "Listeners for hints of change.", lambda: hints.places_taken)
    desk.meters.watch("reports_inside", "Reports that are built or wait for their turn.", lambda: desk.reports.inside)
    add_service_addresses(app, desk, hints, document)
    return app


def _hints(desk: Desk, writes: Callable[[], int] | None, **bounds: Any) -> Hints:
    async def read() -> int:
        return 0 if writes is None else await desk.run("read", writes)

    def failed(_error: PassdownError) -> None:
        desk.meters.poll_failures.inc()

    return Hints(read, failed, **bounds)
