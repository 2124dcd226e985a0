"""What a token is and when it counts. Pure: no clock, no store, no randomness.

States of a token: live -> expired (by time) | revoked (by the owner). Both ends are final. Invariants: the secret is
256 random bits and is kept by nobody but its holder, the store knows its SHA-256; a token counts strictly before its
expiry and never again once revoked; what may be done with it is its role, less whatever it is confined to (projects,
operations; none named means no confinement of that kind); what it captures is the word of its host only if it has one.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Effect, Principal, Role
from passdown.kernel.text import TextRefused, normalise_identifier

SECRET_BYTES: Final = 32
PROJECTS: Final = 100
OPERATIONS: Final = 100
PROJECT_ID: Final = 64
PREFIX: Final = "pdt_"
ROLES: Final[tuple[Role, ...]] = get_args(Role)
_OPERATION: Final = re.compile(r"[a-z][a-z_]{0,63}\Z")
_SHAPE: Final = re.compile(r"pdt_[A-Za-z0-9_-]{43}\Z")

WhyNot = Literal["unknown", "revoked", "expired"]


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is kept of a token. Times are microseconds UTC; ``expires_us`` and ``revoked_us`` are None for never.

    ``projects`` (ids) and ``operations`` (names) are sorted; empty means all that the role allows.
    """

    token_id: str
    name: str
    principal: str
    role: Role
    host: str | None
    created_us: int
    expires_us: int | None
    revoked_us: int | None
    projects: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()

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

    def as_access(self) -> Access:
        """Whoever shows this token, with what it is confined to."""
        return Access(self.as_principal(), frozenset(self.projects), frozenset(self.operations))


@dataclass(frozen=True, slots=True)
class Access:
    """Who calls, and what the token is confined to; an empty set confines nothing."""

    principal: Principal
    projects: frozenset[str] = frozenset()
    operations: frozenset[str] = frozenset()

    def require(self, operation: str, effect: Effect) -> None:
        """Refuse what the role or the named operations do not allow: ``forbidden``, rule ``role`` or ``operation``."""
        if not self.principal.may(effect):
            raise PassdownError("forbidden", rule="role", effect=effect)
        if self.operations and operation not in self.operations:
            raise PassdownError("forbidden", rule="operation")


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
    projects: Sequence[str] = (),
    operations: Sequence[str] = (),
) -> TokenRecord:
    """The record of a token to be, with every member checked.

    Names are identifiers of at most 256 characters; at most 100 projects and 100 operations. Raises
    ``invalid_request`` with the offending ``field`` and its ``rule``: a text rule, ``role`` for an unknown role,
    ``operation`` for what is no name of one, ``in_the_past`` or ``integer_range`` for an expiry.
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
        projects=_set("projects", [_identifier("projects", each, PROJECT_ID) for each in projects], PROJECTS),
        operations=_set("operations", [_operation(each) for each in operations], OPERATIONS),
    )


def _set(field: str, values: list[str], most: int) -> tuple[str, ...]:
    distinct = sorted(set(values))
    if len(distinct) > most:
        raise _invalid(field, "too_long")
    return tuple(distinct)


def _operation(value: str) -> str:
    if not _OPERATION.match(value):
        raise _invalid("operations", "operation")
    return value


def _identifier(field: str, value: str, max_chars: int) -> str:
    try:
        return normalise_identifier(value, max_chars=max_chars)
    except TextRefused as refused:
        raise _invalid(field, refused.rule) from None


def _invalid(field: str, rule: str) -> PassdownError:
    return PassdownError("invalid_request", errors=[{"field": field, "rule": rule}], error_count=1)
