"""The drafting provider behind an address: any endpoint that speaks OpenAI's chat completions.

Off unless ``PASSDOWN_DRAFTING_URL`` is set (the base, such as ``http://127.0.0.1:8080/v1``);
``PASSDOWN_DRAFTING_MODEL`` names the model, ``PASSDOWN_DRAFTING_KEY`` is sent as a bearer token. Plain HTTP goes to
loopback only, TLS is checked against the machine's own authorities, redirects are not followed. An answer has 20
seconds and 256 KiB in all. Neither the key nor a word of either side is in any error.

Public operation: :func:`provider_of`.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from passdown.handoff.drafting import ANSWER_BYTES, DraftingFailed, Provider
from passdown.kernel.errors import PassdownError

SECONDS: Final = 20.0


def provider_of(environment: Mapping[str, str], *, seconds: float = SECONDS) -> Provider | None:
    """The provider that the environment names, or None; ``invalid_request`` for an address that may not be used."""
    url = environment.get("PASSDOWN_DRAFTING_URL", "").strip()
    if not url:
        return None
    place = _place(url)
    model = environment.get("PASSDOWN_DRAFTING_MODEL", "") or "default"
    key = environment.get("PASSDOWN_DRAFTING_KEY", "")

    def ask(messages: Sequence[Mapping[str, str]]) -> str:
        body = json.dumps({"model": model, "messages": list(messages), "temperature": 0, "stream": False})
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return _content(_post(place, body.encode(), headers, time.monotonic() + seconds))

    return ask


def _place(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused("not_an_address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise _refused("not_an_address")
    if "@" in parts.netloc:
        raise _refused("credentials")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise _refused("not_loopback")
    return parts


def _refused(rule: str) -> PassdownError:
    return PassdownError("invalid_request", field="PASSDOWN_DRAFTING_URL", rule=rule)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _post(place: SplitResult, body: bytes, headers: Mapping[str, str], deadline: float) -> bytes:
    connection = _connect(place, deadline)
    # The library's own time limit begins anew with each byte; this one ends a provider that sends them one by one.
    end = threading.Timer(max(0.001, deadline - time.monotonic()), _cut, [connection])
    end.daemon = True
    end.start()
    try:
        connection.request("POST", f"{place.path.rstrip('/')}/chat/completions", body, dict(headers))
        answer = connection.getresponse()
        if answer.status != 200:
            raise DraftingFailed("http_status")
        received = answer.read(ANSWER_BYTES + 1)
        if time.monotonic() >= deadline:
            raise DraftingFailed("timeout")
        if len(received) > ANSWER_BYTES:
            raise DraftingFailed("too_large")
        if answer.length:  # less came than was announced
            raise DraftingFailed("unreachable")
        return received
    except (OSError, http.client.HTTPException, ValueError):
        raise DraftingFailed("timeout" if time.monotonic() >= deadline else "unreachable") from None
    finally:
        end.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _connect(place: SplitResult, deadline: float) -> http.client.HTTPConnection:
    left = max(0.001, deadline - time.monotonic())
    host = place.hostname or ""
    if place.scheme == "http":
        return http.client.HTTPConnection(host, place.port, timeout=left)
    return http.client.HTTPSConnection(host, place.port, timeout=left, context=ssl.create_default_context())


def _content(data: bytes) -> str:
    """The text of the first choice."""
    try:
        value: Any = json.loads(data)
        text = value["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise DraftingFailed("malformed") from None
    if not isinstance(text, str):
        raise DraftingFailed("malformed")
    return text
