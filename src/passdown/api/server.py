"""The server process: an address, one ready line, an orderly end.

States: bound -> ready (the line is printed) -> stopping (by SIGINT or SIGTERM, within a second) -> ended. Invariants:
without the statement that a TLS proxy stands in front, only loopback addresses are listened on, because tokens would
travel in the clear; a port that is taken is an error before anything is printed; requests under way are finished or
answered ``server_stopping``.

Public operations: :func:`serve`; :func:`bind_listener` and :func:`make_server` are its parts.
"""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, TextIO

import uvicorn
from fastapi import FastAPI

from passdown.api.connection import HEAD_BYTES, Connection
from passdown.kernel.errors import PassdownError

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8765
_GRACE_SECONDS: Final = 0.6
_BACKLOG: Final = 512
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_RULES: Final = {
    errno.EADDRINUSE: "in_use",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EADDRNOTAVAIL: "not_here",
}


def serve(app: FastAPI, host: str = DEFAULT_HOST, port: int = DEFAULT_PORT, *, behind_tls_proxy: bool = False) -> None:
    """Serve ``app`` until SIGINT or SIGTERM; prints ``passdown: serving URL`` on stdout once it answers.

    ``port`` 0 takes a free one. ``behind_tls_proxy`` states that another server in front ends TLS; only then may the
    address be another than loopback. Raises ``address_not_available`` with ``rule``: ``not_loopback``, ``in_use``,
    ``denied``, ``not_here``, ``unknown_host``, ``port``, ``refused``.
    """
    listener = bind_listener(host, port, behind_tls_proxy=behind_tls_proxy)
    with listener:
        make_server(app, ready=sys.stdout, url=url_of(host, listener)).run(sockets=[listener])


def bind_listener(host: str, port: int, *, behind_tls_proxy: bool = False) -> socket.socket:
    """A listening TCP socket on ``host``, or ``address_not_available`` (see :func:`serve`)."""
    if not 0 <= port <= 65_535:
        raise PassdownError("address_not_available", rule="port")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise PassdownError("address_not_available", rule="unknown_host") from None
    if not behind_tls_proxy and not all(_is_loopback(str(address[4][0])) for address in found):
        raise PassdownError("address_not_available", rule="not_loopback")
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        # A server that ended a moment ago leaves its port in TIME_WAIT; a living listener still refuses us.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise PassdownError("address_not_available", rule=_RULES.get(error.errno or 0, "refused")) from None
    return listener


def make_server(app: FastAPI, *, ready: TextIO | None = None, url: str = "") -> uvicorn.Server:
    """A server for an already listening socket; with ``ready`` it writes the ready line there."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
        # Typed as whole seconds by the library, which passes it to asyncio as it is.
        timeout_graceful_shutdown=_GRACE_SECONDS,  # type: ignore[arg-type]
    )
    return _Server(config, ready, url)


def url_of(host: str, listener: socket.socket) -> str:
    """The address to print: the host as it was named and the port as it is bound."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


class _Server(uvicorn.Server):
    """Says when it is ready, and ends on a signal without raising it again, so that the process ends with code 0."""

    def __init__(self, config: uvicorn.Config, ready: TextIO | None, url: str) -> None:
        super().__init__(config)
        self._ready = ready
        self._url = url

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Long answers end first; they would otherwise use up the time that short ones have to be finished.
        hints = getattr(getattr(self.config.app, "state", None), "hints", None)
        if hints is not None:
            hints.close()
        await super().shutdown(sockets=sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self._ready is not None:
            print(f"passdown: serving {self._url}", file=self._ready, flush=True)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[signal.Signals, Any] = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, signal.SIG_DFL if handler is None else handler)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
