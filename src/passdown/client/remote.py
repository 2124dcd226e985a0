"""A :class:`~passdown.kernel.operations.Caller` over HTTP, on nothing but the standard library.

The command line starts with it, so it imports no HTTP library: ``http.client`` is loaded in a third of the time and
does all that is needed here, which is one POST at a time over a connection that is kept.

States of a connection: fresh -> idle <-> in use -> closed. Invariants: a connection is used by one call at a time; one
that was idle is looked at before it is used again, and not used if the server has closed it or said anything; after an
exchange that broke it is closed.

Public operations: :func:`connect`, :class:`Http`.
"""

from __future__ import annotations

import http.client
import select
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from secrets import token_hex
from types import TracebackType
from typing import Final, TypeVar

from passdown.client.messages import MAX_ANSWER, Request, answer_of, checked_token, place_of, request_of
from passdown.client.retries import Retries, retry_after
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Op

Q = TypeVar("Q")
A = TypeVar("A")

TIMEOUT: Final = 90.0
"""Seconds without a byte; longer than a server takes to give up an answer."""

_IDLE: Final = 8


class Http:
    """Calls a server. Safe to share between threads. Close it, or use ``with``.

    ``timeout`` is in seconds for each step of an exchange; ``pause`` sleeps between two attempts.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._place = place_of(url)
        self._token = checked_token(token)
        self._timeout = timeout
        self._retries = retries or Retries()
        self._pause = pause
        self._mutex = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False

    def __call__(self, op: Op[Q, A], ask: Q) -> A:
        """Call the operation; raises what the server refused with, ``server_not_reachable`` or ``…_understood``."""
        request = request_of(op, ask, self._token, key=token_hex(16), compressed=not self._place.is_loopback)
        attempt = 1
        while True:
            asked = None
            try:
                status, headers, body = self._exchange(request)
                asked = retry_after(headers.get("retry-after"))
                return answer_of(op, status, headers, body)
            except PassdownError as error:
                pause = self._retries.pause_after(attempt, op.name, op.effect, error, asked)
                if pause is None:
                    raise
            self._pause(pause)
            attempt += 1

    def close(self) -> None:
        """Close the idle connections, and those in use as they come back. Closing twice is allowed."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Http:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- one exchange -------------------------------------------------------------------------------------------------

    def _exchange(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        connection = self._take()
        whole = False
        try:
            self._send(connection, request)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            body = answer.read(MAX_ANSWER + 1)
            whole = answer.isclosed() and not answer.will_close
            if len(body) > MAX_ANSWER:
                raise PassdownError("server_not_understood", rule="too_large")
            if answer.length:  # the library tells of an answer that broke off only where no size is named
                raise PassdownError("server_not_reachable", rule="broken")
            return answer.status, headers, _decoded(headers.get("content-encoding", "identity"), body)
        except http.client.HTTPException as error:
            # Closing without a word is no protocol of another kind; it happens when a server stops.
            if isinstance(error, http.client.RemoteDisconnected | http.client.IncompleteRead):
                raise PassdownError("server_not_reachable", rule="broken") from None
            raise PassdownError("server_not_understood", rule="http") from None
        except TimeoutError:
            raise PassdownError("server_not_reachable", rule="timeout") from None
        except ConnectionRefusedError:
            raise PassdownError("server_not_reachable", rule="refused") from None
        except (ConnectionError, OSError) as error:
            raise PassdownError("server_not_reachable", rule=_rule(error)) from None
        finally:
            self._give_back(connection, reusable=whole)

    def _send(self, connection: http.client.HTTPConnection, request: Request) -> None:
        try:
            connection.request("POST", self._place.prefix + request.path, request.body, dict(request.headers))
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses may answer and close before it has read everything; its answer is still to be read.
            if connection.sock is None:
                raise

    def _take(self) -> http.client.HTTPConnection:
        while True:
            with self._mutex:
                if self._closed:
                    raise PassdownError("server_not_reachable", rule="closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._fresh()
            if _is_quiet(connection):
                return connection
            connection.close()

    def _fresh(self) -> http.client.HTTPConnection:
        place = self._place
        if place.scheme == "https":
            return http.client.HTTPSConnection(place.host, place.port, timeout=self._timeout)
        return http.client.HTTPConnection(place.host, place.port, timeout=self._timeout)

    def _give_back(self, connection: http.client.HTTPConnection, *, reusable: bool) -> None:
        if reusable:
            with self._mutex:
                if not self._closed and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                    return
        connection.close()


def connect(url: str, token: str) -> Http:
    """A caller for the server at ``url``; nothing is sent before the first call.

    Refused as ``invalid_request`` with ``field`` ``url``, or ``unauthenticated`` for a token that no header can carry.
    """
    return Http(url, token)


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Whether nothing waits to be read: the end of an idle connection shows as something to read."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)


def _decoded(coding: str, body: bytes) -> bytes:
    if coding == "identity":
        return body
    if coding != "gzip":
        raise PassdownError("server_not_understood", rule="encoding")
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(body, MAX_ANSWER + 1)
    except zlib.error:
        raise PassdownError("server_not_understood", rule="encoding") from None
    if len(plain) > MAX_ANSWER:
        raise PassdownError("server_not_understood", rule="too_large")
    if not inflater.eof or inflater.unused_data:
        raise PassdownError("server_not_understood", rule="encoding")
    return plain


def _rule(error: OSError) -> str:
    import socket
    import ssl

    if isinstance(error, socket.gaierror):
        return "unknown_host"
    return "tls" if isinstance(error, ssl.SSLError) else "broken"
