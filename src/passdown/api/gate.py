"""The gate that every request passes, outermost of the application.

It gives the request a correlation id (the caller's ``X-Request-ID`` if it is plain, else a fresh one) and sends it
back, refuses a ``Host`` that is not ours (a page of another site that made its own name point here would otherwise be
answered), marks every answer as private and not to be sniffed, and turns whatever nobody handled into
``internal_error``, with one log line that holds no text of the request. When the answer ends it counts the request and
writes its line. It decides nothing else.

Public operations: :class:`Gate`, :func:`host_names`, :class:`ClientGone`.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Iterable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from passdown.api.exchange import EXCHANGE, Exchange
from passdown.api.problems import log_fault, problem_response
from passdown.kernel.errors import PassdownError

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}\Z")
_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::[0-9]{1,5})?\Z")
_ALWAYS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class ClientGone(Exception):
    """The client closed the connection before its request was whole; there is nobody to answer."""


def host_names(hosts: Iterable[str]) -> frozenset[str]:
    """The names that a ``Host`` header may hold: those of loopback and ``hosts`` (IPv6 with or without brackets)."""
    named = (host.lower() for host in hosts)
    return LOOPBACK_NAMES | {f"[{name}]" if ":" in name and not name.startswith("[") else name for name in named}


class Gate:
    """ASGI middleware; ``hosts`` as :func:`host_names` gives them, ``ended`` is told of every exchange at its end."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], ended: Callable[[Exchange], None]) -> None:
        self._app = app
        self._hosts = hosts
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(_correlation_id(scope))
        correlation_id = exchange.correlation_id
        scope[EXCHANGE] = exchange
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                exchange.status = message["status"]
                own = (b"x-request-id", correlation_id.encode("ascii"))
                message = {**message, "headers": [*message.get("headers", ()), *_ALWAYS, own]}
            else:
                exchange.bytes_out += len(message.get("body", b""))
            await send(message)

        async def refuse(error: PassdownError) -> None:
            exchange.outcome = error.code
            if not started:
                await problem_response(error, correlation_id)(scope, receive, answer)

        try:
            if not self._is_ours(scope):
                await refuse(PassdownError("host_not_allowed"))
                return
            await self._app(scope, receive, answer)
        except ClientGone:
            exchange.outcome = "gone"
        except asyncio.CancelledError:
            # The server is stopping and waited long enough; the request ends here, so its answer is still a problem.
            await refuse(PassdownError("server_stopping"))
        except Exception as fault:  # noqa: BLE001  the outermost place: whatever it is, it is answered and logged here
            log_fault(fault, correlation_id)
            await refuse(PassdownError("internal_error"))
        finally:
            self._ended(exchange)
            exchange.log()

    def _is_ours(self, scope: Scope) -> bool:
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1:
            return False
        matched = _HOST.match(named[0].decode("latin-1").lower())
        return matched is not None and matched[1] in self._hosts


def _correlation_id(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1 and _REQUEST_ID.match(given[0]):
        return str(given[0].decode("ascii"))
    return secrets.token_hex(16)
