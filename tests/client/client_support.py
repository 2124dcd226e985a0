"""Servers for the tests of the client: a real one in a process of its own, and one that misbehaves on purpose."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import orjson

from passdown.kernel.errors import PassdownError

SERVED = Path(__file__).with_name("served.py")


class Server:
    """A served store; ``url`` and ``token`` are what a client needs."""

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        self.folder = folder
        command = [sys.executable, str(SERVED), str(folder), host]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.token = self.process.stdout.readline().strip()
        self.url = self.process.stdout.readline().strip().rpartition(" ")[2]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)


class Scripted:
    """Answers each connection with the next of ``turns`` (bytes to send, or None to close without a word).

    A turn may answer several requests of one connection: it is a list of bytes then. What came is in ``requests``. A
    single answer says that it is the last one: a client that kept the connection might use it before it saw the end.
    """

    def __init__(self, turns: Sequence[bytes | list[bytes] | None]) -> None:
        self._turns = list(turns)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(20)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for turn in self._turns:
            connection, _ = self._socket.accept()
            connection.settimeout(20)
            with connection:
                for answer in turn if isinstance(turn, list) else [turn]:
                    request = read_request(connection)
                    if request is None:
                        break
                    self.requests.append(request)
                    if answer is not None:
                        connection.sendall(answer if isinstance(turn, list) else _last(answer))

    def headers(self, number: int) -> dict[str, str]:
        head = self.requests[number].partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in head)}

    def body(self, number: int) -> bytes:
        return self.requests[number].partition(b"\r\n\r\n")[2]

    def stop(self) -> None:
        self._thread.join(30)
        self._socket.close()
        assert not self._thread.is_alive()


def _last(answer: bytes) -> bytes:
    if not answer.startswith(b"HTTP/"):
        return answer
    return answer.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)


def read_request(connection: socket.socket) -> bytes | None:
    """One whole request or answer, or None if the other side closed before it was whole."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65_536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        chunk = connection.recv(65_536)
        if not chunk:
            return None
        body += chunk
    return head + b"\r\n\r\n" + body


def http(status: int, body: bytes, media_type: str = "application/json", **headers: str) -> bytes:
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {media_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def problem(code: str, **members: object) -> bytes:
    """The answer of a server that refuses, with a second to wait where it is only busy."""
    error = PassdownError(code, **members)
    extra = {"Retry_After": "1"} if code.endswith("busy") else {}
    return http(error.spec.status, orjson.dumps(error.problem("abc")), "application/problem+json", **extra)
