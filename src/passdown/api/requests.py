"""Reading one request: who sends it, in which form, and its bytes. Every way of being wrong is a typed refusal.

Nothing here parses: the strict reader of the kernel gets the bytes as they came.

Public operations: :func:`bearer_token`, :func:`idempotency_key`, :func:`require_json`, :func:`announced_length`,
:func:`read_body`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Receive

from passdown.api.gate import ClientGone
from passdown.app.replays import checked_key
from passdown.kernel.errors import PassdownError

BODY_SECONDS: Final = 60
"""In which a request body has to arrive whole."""

_DISCARD_SECONDS: Final = 2
_UTF_8: Final = frozenset({"utf-8", "utf8"})


def bearer_token(headers: Headers) -> str:
    """The token of the only ``Authorization`` header.

    Raises ``unauthenticated`` with ``rule``: ``missing``, ``repeated``, ``scheme``.
    """
    given = headers.getlist("authorization")
    if len(given) != 1:
        raise PassdownError("unauthenticated", rule="repeated" if given else "missing")
    scheme, _, token = given[0].partition(" ")
    if scheme.lower() != "bearer":
        raise PassdownError("unauthenticated", rule="scheme")
    return token.strip()


def idempotency_key(headers: Headers) -> str | None:
    """The value of the only ``Idempotency-Key`` header as UTF-8 text, or None without one.

    Raises ``invalid_request`` with ``field`` ``Idempotency-Key`` and a ``rule``: ``repeated``, ``utf_8``, or a text
    rule of identifiers.
    """
    given = headers.getlist("idempotency-key")
    if not given:
        return None
    if len(given) > 1:
        raise PassdownError("invalid_request", field="Idempotency-Key", rule="repeated")
    try:
        return checked_key(given[0].encode("latin-1").decode("utf-8"))
    except UnicodeDecodeError:
        raise PassdownError("invalid_request", field="Idempotency-Key", rule="utf_8") from None


def require_json(headers: Headers) -> None:
    """Refuse a body that is not declared as JSON in UTF-8 without compression.

    The media type is demanded although only one is understood: a page of another site can send a form or plain text
    here without asking, but not this type. Rules: ``content_type``, ``charset``, ``content_encoding``.
    """
    media_type, *parameters = headers.get("content-type", "").lower().split(";")
    if media_type.strip() != "application/json" or len(headers.getlist("content-type")) != 1:
        raise PassdownError("unsupported_media_type", rule="content_type")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in _UTF_8:
            raise PassdownError("unsupported_media_type", rule="charset")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise PassdownError("unsupported_media_type", rule="content_encoding")


async def read_body(headers: Headers, receive: Receive, *, max_bytes: int, seconds: float = BODY_SECONDS) -> bytes:
    """The whole body, at most ``max_bytes`` of it.

    A longer one is ``body_too_large`` with ``limit`` and, where known, ``actual``: at once if its length was announced,
    else as soon as the limit is passed; what follows is thrown away, not kept. Slower than ``seconds`` is
    ``request_timeout``. Raises :class:`ClientGone` if the client went away.
    """
    announced = announced_length(headers)
    if announced is not None and announced > max_bytes:
        if "expect" not in headers:
            await _discard(receive, max_bytes)
        raise PassdownError("body_too_large", limit=max_bytes, actual=announced)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                chunk, more = await _next_chunk(receive)
                size += len(chunk)
                if size > max_bytes:
                    break
                chunks.append(chunk)
    except TimeoutError:
        raise PassdownError("request_timeout", limit=seconds) from None
    if size > max_bytes:
        chunks.clear()
        rest = await _discard(receive, 2 * max_bytes - size) if more else 0
        if rest is None:
            raise PassdownError("body_too_large", limit=max_bytes)
        raise PassdownError("body_too_large", limit=max_bytes, actual=size + rest)
    return b"".join(chunks)


def announced_length(headers: Headers) -> int | None:
    """The value of ``Content-Length``, or None if the body comes in chunks or there is none."""
    value = headers.get("content-length", "")
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 20 else None


async def _next_chunk(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


async def _discard(receive: Receive, most: int) -> int | None:
    """Throw away the rest of a body: how many bytes it had, or None if that was more than ``most`` or took too long.

    Many clients read no answer before they have sent everything; closing on them would look like a broken network.
    """
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            more = True
            while more and size <= most:
                chunk, more = await _next_chunk(receive)
                size += len(chunk)
            return None if more else size
    return None
