"""What a token is and when it counts. Pure: no clock, no store, no randomness.

States of a token: live -> expired (by time) | revoked (by the owner). Both ends are final. Invariants: the secret is
256 random bits and is kept by nobody but its holder, the store knows its SHA-256; a token counts strictly before its
expiry and never again once revoked; what may be done with it is its role, what it captures is the word of its host only
if it has one.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Final, Literal, get_args

from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal, Role
from passdown.kernel.text import TextRefused, normalise_identifier

SECRET_BYTES: Final = 32
PREFIX: Final = "pdt_"
ROLES: Final[tuple[Role, ...]] = get_args(Role)
_SHAPE: Final = re.compile(r"pdt_[A-Za-z0-9_-]{43}\Z")

WhyNot = Literal["unknown", "revoked", "expired"]


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is kept of a token. Times are microseconds UTC; ``expires_us`` and ``revoked_us`` are None for never."""

    token_id: str
    name: str
    principal: str
    role: Role
    host: str | None
    created_us: int
    expires_us: int | None
    revoked_us: int | None

    def why_not(self, now_us: int) -> WhyNot | None:
        """Why the token does not count at ``now_us``, or None if it does. Revocation is told before expiry."""
        if self.revoked_us is not None:
            return "revoked"
        if self.expires_us is not None and now_us >= self.expires_us:
            return "expired"
        return None

    def as_principal(self) -> Principal:
        """Whoever shows this token."""
        return Principal(self.principal, "authenticated", self.role, self.host)


def spell(secret: bytes) -> str:
    """The token that its holder sends: a prefix that scanners can recognise, and the secret in URL-safe base64."""
    return PREFIX + urlsafe_b64encode(secret).rstrip(b"=").decode("ascii")


def fingerprint(token: str) -> bytes | None:
    """SHA-256 of a token, or None if the text cannot be a token at all."""
    if not _SHAPE.match(token):
        return None
    return hashlib.sha256(token.encode("ascii")).digest()


def new_record(
    *,
    token_id: str,
    name: str,
    principal: str,
    role: str,
    host: str | None,
    created_us: int,
    expires_us: int | None,
) -> TokenRecord:
    """The record of a token to be, with every member checked.

    Names are identifiers of at most 256 characters. Raises ``invalid_request`` with the offending ``field`` and its
    ``rule``: a text rule, ``role`` for an unknown role, ``in_the_past`` or ``integer_range`` for an expiry.
    """
    known = next((each for each in ROLES if each == role), None)
    if known is None:
        raise _invalid("role", "role")
    if expires_us is not None:
        if isinstance(expires_us, bool) or not isinstance(expires_us, int):
            raise _invalid("expires_us", "int_type")
        if expires_us > limits.MAX_SAFE_INTEGER:
            raise _invalid("expires_us", "integer_range")
        if expires_us <= created_us:
            raise _invalid("expires_us", "in_the_past")
    return TokenRecord(
        token_id=token_id,
        name=_identifier("name", name, limits.NAME),
        principal=_identifier("principal", principal, limits.IDENTIFIER),
        role=known,
        host=None if host is None else _identifier("host", host, limits.IDENTIFIER),
        created_us=created_us,
        expires_us=expires_us,
        revoked_us=None,
    )


def _identifier(field: str, value: str, max_chars: int) -> str:
    try:
        return normalise_identifier(value, max_chars=max_chars)
    except TextRefused as refused:
        raise _invalid(field, refused.rule) from None


def _invalid(field: str, rule: str) -> PassdownError:
    return PassdownError("invalid_request", errors=[{"field": field, "rule": rule}], error_count=1)
