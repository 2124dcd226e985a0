"""The addresses that are no operations: probes, the API document, metrics, hints of change.

``/healthz`` and ``/readyz`` ask for no token and say one word. ``/openapi.json`` is the same for everybody with a
token. ``/metrics`` is for a token with role owner or reader: an agent works, it does not watch the house.
``/v1/events`` is for any role. The last two speak of the whole store, so a token that is confined to projects passes
neither, and one that names operations has to name ``metrics`` or ``events``.

Public operations: :func:`add_service_addresses`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from passdown.api.desk import Desk
from passdown.api.encoding import accepts_gzip, encode
from passdown.api.events import EventStream, Hints, last_event_id
from passdown.api.exchange import exchange_of
from passdown.api.meters import MEDIA_TYPE
from passdown.api.requests import bearer_token
from passdown.kernel.errors import PassdownError

Endpoint = Callable[[Request], Awaitable[Response]]


def add_service_addresses(app: FastAPI, desk: Desk, hints: Hints, document: Callable[[], dict[str, Any]]) -> None:
    """Serve them. ``document`` gives the API document."""
    both = ["GET", "HEAD"]
    _add(app, "healthz", "/healthz", both, _healthz)
    _add(app, "readyz", "/readyz", both, _readyz(desk))
    _add(app, "openapi", "/openapi.json", both, _openapi(desk, document))
    _add(app, "metrics", "/metrics", both, _metrics(desk))
    _add(app, "events", "/v1/events", ["GET"], _events(desk, hints))


def _add(app: FastAPI, name: str, path: str, methods: list[str], endpoint: Endpoint) -> None:
    async def named(request: Request) -> Response:
        exchange_of(request.scope).operation = name
        return await endpoint(request)

    app.add_api_route(path, named, methods=methods, name=name, include_in_schema=False, response_model=None)


async def _healthz(_request: Request) -> Response:
    return _json({"status": "ok"})


def _readyz(desk: Desk) -> Endpoint:
    async def endpoint(_request: Request) -> Response:
        # Any read of the store will do; this one is small and touches a table that is always there.
        await desk.run("read", desk.tokens.any_owner)
        return _json({"status": "ready"})

    return endpoint


def _openapi(desk: Desk, document: Callable[[], dict[str, Any]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        token = bearer_token(request.headers)
        gzip = accepts_gzip(request.headers.getlist("accept-encoding"))

        def work() -> Response:
            desk.tokens.access(token)
            return encode(_json(document()), accepted=gzip)

        return await desk.run("read", work)

    return endpoint


def _metrics(desk: Desk) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        token = bearer_token(request.headers)
        gzip = accepts_gzip(request.headers.getlist("accept-encoding"))

        def work() -> Response:
            access = desk.admit_to_service(token, "metrics")
            if access.principal.role == "agent":
                raise PassdownError("forbidden", rule="role", effect="read")
            return encode(Response(desk.meters.page(), headers={"Content-Type": MEDIA_TYPE}), accepted=gzip)

        return await desk.run("read", work)

    return endpoint


def _events(desk: Desk, hints: Hints) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        token = bearer_token(request.headers)
        await desk.run("read", lambda: desk.admit_to_service(token, "events"))
        seen = last_event_id(request.headers)

        async def still_allowed() -> bool:
            try:
                await desk.run("read", lambda: desk.admit_to_service(token, "events"))
            except PassdownError as error:
                return error.code not in ("unauthenticated", "forbidden")
            return True

        hints.take_place()
        try:
            now = await hints.read()
        except BaseException:
            hints.give_back()
            raise
        return EventStream(hints, hints.listen(now, seen, still_allowed))

    return endpoint


def _json(value: dict[str, Any]) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
