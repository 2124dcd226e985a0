"""Refusals as HTTP answers: RFC 9457 problem details, one shape for every error of every address.

A ``PassdownError`` is answered with its row of the error table. What the framework refuses itself (no such address,
wrong method) is translated into the same table. Anything else is a fault of ours; :mod:`passdown.api.gate` answers
that.

Public operations: :func:`problem_response`, :func:`install_problem_handlers`, :func:`log_fault`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from passdown.api.exchange import exchange_of, line
from passdown.kernel.errors import PassdownError

PROBLEM: Final = "application/problem+json"

_LEAVES_BODY_UNREAD: Final = frozenset({"body_too_large", "request_timeout"})
_BUSY: Final = frozenset({"store_busy", "handoff_report_busy", "server_stopping", "server_busy", "answer_timeout"})
_log = logging.getLogger("passdown.api")


def problem_response(error: PassdownError, correlation_id: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer for a refusal, with the headers that its status asks for."""
    extra = dict(headers or {})
    if error.spec.status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    if error.code in _BUSY:
        extra["Retry-After"] = "1"
    if error.code in _LEAVES_BODY_UNREAD:
        # The rest of the body may still be on its way; it must not be taken for the next request.
        extra["Connection"] = "close"
    return Response(
        orjson.dumps(error.problem(correlation_id)), status_code=error.spec.status, media_type=PROBLEM, headers=extra
    )


def log_fault(fault: BaseException, correlation_id: str) -> None:
    """One line for a fault of ours: its type and where it was raised, without its message, which may be private."""
    where: list[str] = []
    step = fault.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        where.append(f"{step.tb_frame.f_globals.get('__name__', '?')}.{code.co_name}:{step.tb_lineno}")
        step = step.tb_next
    members = {"type": type(fault).__name__, "correlation_id": correlation_id, "raised_in": " > ".join(where[-6:])}
    _log.error("%s", line("fault", **members))


def install_problem_handlers(app: FastAPI) -> None:
    """Answer every refusal that is raised below the gate as a problem."""
    app.add_exception_handler(PassdownError, _refused)
    app.add_exception_handler(HTTPException, _refused_by_framework)


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, PassdownError):
        raise error
    exchange = exchange_of(request.scope)
    exchange.outcome = error.code
    if error.spec.status >= 500 and error.code not in _BUSY:
        log_fault(error.__cause__ or error, exchange.correlation_id)
    return problem_response(error, exchange.correlation_id)


async def _refused_by_framework(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    exchange = exchange_of(request.scope)
    headers: dict[str, str] = {}
    if error.status_code == 404:
        refusal = PassdownError("not_found")
    elif error.status_code == 405:
        refusal = PassdownError("method_not_allowed")
        headers["Allow"] = ", ".join(sorted((error.headers or {}).get("Allow", "").replace(" ", "").split(",")))
    else:
        refusal = PassdownError("internal_error")
        log_fault(error, exchange.correlation_id)
    exchange.outcome = refusal.code
    return problem_response(refusal, exchange.correlation_id, headers)
