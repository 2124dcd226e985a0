"""The HTTP/1.1 connection, where the server's own answers become ours.

The server library parses; what it would answer by itself, as plain text, is answered here as problem details: bytes
that are no HTTP (``malformed_http``), a head beyond the limit (``headers_too_large``), a head that does not arrive in
time (``request_timeout``). After such an answer the connection only swallows what is still coming, for a moment, and
closes: closing at once would reset the connection, and the client would lose the answer.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from http import HTTPStatus
from typing import Any, Final

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

from passdown.api.problems import PROBLEM
from passdown.kernel.errors import PassdownError

HEAD_BYTES: Final = 64 * 1024
HEAD_SECONDS: Final = 15
LINGER_SECONDS: Final = 1.0


class Connection(H11Protocol):
    """One client connection. The times are class attributes, so that a server may choose others."""

    head_seconds: float = HEAD_SECONDS
    linger_seconds: float = LINGER_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_head_timer()
        elif self._head_timer is None and not self._refused:
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def shutdown(self) -> None:
        if self._refused:
            self.transport.close()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Called by the base class while it handles the parser's refusal; ``msg`` is the library's sentence."""
        refusal = sys.exc_info()[1]
        if isinstance(refusal, h11.RemoteProtocolError) and refusal.error_status_hint == 431:
            self._refuse(PassdownError("headers_too_large", limit=HEAD_BYTES))
        else:
            self._refuse(PassdownError("malformed_http"))

    def _should_upgrade(self) -> bool:
        return False  # No other protocol is spoken here; the request is answered as plain HTTP.

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing() and not self._refused and self.conn.their_state is h11.IDLE:
            self._refuse(PassdownError("request_timeout", limit=self.head_seconds))

    def _refuse(self, error: PassdownError) -> None:
        self._refused = True
        self._stop_head_timer()
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            # The request was under way and its body is broken: whoever reads it learns that the client is gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        correlation_id = secrets.token_hex(16)
        body = orjson.dumps(error.problem(correlation_id))
        head = h11.Response(
            status_code=error.spec.status,
            reason=HTTPStatus(error.spec.status).phrase.encode("ascii"),
            headers=[
                *self.server_state.default_headers,
                (b"content-type", PROBLEM.encode()),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                (b"x-content-type-options", b"nosniff"),
                (b"x-request-id", correlation_id.encode()),
                (b"connection", b"close"),
            ],
        )
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.write_eof()
        # The body may have paused reading; what is swallowed must be read.
        self.flow.resume_reading()
        self.loop.call_later(self.linger_seconds, self.transport.close)
