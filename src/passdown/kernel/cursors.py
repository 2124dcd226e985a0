"""Opaque list cursors: a list name and integers or bytes, packed so that a cursor of another list is refused."""

from __future__ import annotations

import base64
import binascii

from passdown.kernel import limits
from passdown.kernel.errors import PassdownError


def pack(kind: str, number: int, key: bytes = b"") -> str:
    """The cursor behind position ``(number, key)`` of the list ``kind``."""
    raw = kind.encode() + b"\0" + number.to_bytes(8, "big") + key
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpack(kind: str, cursor: str | None) -> tuple[int, bytes] | None:
    """The position in a cursor, None for no cursor; ``invalid_cursor`` for anything that this list never gave."""
    if cursor is None:
        return None
    try:
        if len(cursor) > limits.CURSOR:
            raise ValueError(cursor)
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        name, rest = raw.split(b"\0", 1)
        if name != kind.encode() or len(rest) < 8:
            raise ValueError(cursor)
    except (ValueError, binascii.Error):
        raise PassdownError("invalid_cursor", field="cursor") from None
    number, key = int.from_bytes(rest[:8], "big"), rest[8:]
    # Base 64 has several spellings of the same bytes; only the one that this list writes is its own.
    if number > limits.MAX_SAFE_INTEGER or pack(kind, number, key) != cursor:
        raise PassdownError("invalid_cursor", field="cursor")
    return number, key
