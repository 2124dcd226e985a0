"""A stand-in for a drafting provider: a real HTTP server on loopback that speaks chat completions, well or badly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Provider:
    """``content`` is what the model says; ``mode`` how the server behaves; ``asked`` what came in."""

    url: str = ""
    content: str = ""
    mode: str = "good"
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def say(self, *statements: tuple[str, list[str]], **members: Any) -> None:
        """The model proposes these statements."""
        listed = [{"text": text, "evidence": evidence} for text, evidence in statements]
        self.content = json.dumps({"statements": listed, **members})

    @property
    def offered(self) -> dict[str, Any]:
        """What the last request told of the work."""
        found: dict[str, Any] = json.loads(self.asked[-1]["messages"][1]["content"])
        return found


@contextmanager
def provider() -> Iterator[Provider]:
    """A running stand-in."""
    state = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            state.asked.append(json.loads(self.rfile.read(length)))
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            with suppress(BrokenPipeError, ConnectionResetError):
                self._answer(json.dumps({"choices": [{"message": {"content": state.content}}]}).encode())

        def _answer(self, body: bytes) -> None:
            mode = state.mode
            if mode == "drip":
                self.wfile.write(b"HTTP/1.0 200 OK\r\n")
                for _ in range(200):
                    self.wfile.write(b"X-Slow: 1\r\n")
                    time.sleep(0.05)
                return
            if mode == "silent":
                time.sleep(5)
                return
            if mode == "garbage":
                self.wfile.write(b"\x00\x01\x02 not http\r\n\r\n")
                return
            status = {"busy": 429, "broken": 500, "moved": 302}.get(mode, 200)
            body = {"huge": b"x" * 400_000, "not json": b"<html>", "other json": b"[]"}.get(mode, body)
            self.send_response(status)
            if mode == "moved":
                self.send_header("Location", f"{state.url}/elsewhere")
            self.send_header("Content-Length", str(len(body) + (100 if mode == "cut" else 0)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
