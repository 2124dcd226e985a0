"""A proxy in front of a database server that loses connections at a named moment.

It passes bytes in both directions. Once armed, it looks for ``COMMIT`` in what a client sends, loses the connection
there, either before the server has seen it or after the server has answered it, and disarms itself.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Literal

Moment = Literal["before", "after"]


class Proxy:
    """Listens on ``port`` of 127.0.0.1 and passes on to a port there (int) or to a socket file (str)."""

    def __init__(self, target: int | str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.armed: Moment | None = None
        self.lost = 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._pass, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _pass(self, client: socket.socket) -> None:
        family = socket.AF_INET if isinstance(self._target, int) else socket.AF_UNIX
        with client, socket.socket(family) as server, contextlib.suppress(OSError):
            server.connect(("127.0.0.1", self._target) if isinstance(self._target, int) else self._target)
            while True:
                readable, _, _ = select.select([client, server], [], [])
                if client in readable:
                    data = client.recv(65_536)
                    if not data:
                        return
                    if self.armed and b"COMMIT" in data:
                        self.lost += 1
                        moment, self.armed = self.armed, None
                        if moment == "after":
                            server.sendall(data)
                            server.recv(65_536)
                        return
                    server.sendall(data)
                if server in readable:
                    data = server.recv(65_536)
                    if not data:
                        return
                    client.sendall(data)
