"""Operations, described once.

An :class:`Op` names one operation of Passdown: its wire name, its HTTP path, the model it asks for and the model it
answers with, the refusals that matter, its effect and whether the tool protocol shows it. HTTP routes are derived from
it; command-line verbs and client methods are written by hand over a :class:`Caller` and a parity test finds the missing
ones.

A :class:`Caller` makes embedded and remote use one thing to the surfaces: ``Local`` (room ``app``) calls the
handlers of this process, a remote caller sends the same models over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from passdown.kernel.errors import ERRORS

Q = TypeVar("Q")
A = TypeVar("A")

Effect = Literal["read", "append", "change", "destroy"]

COMMON_ERRORS: Final = (
    "malformed_json",
    "invalid_request",
    "body_too_large",
    "unauthenticated",
    "forbidden",
    "store_not_writable",
    "store_not_readable",
    "store_busy",
    "store_outcome_unknown",
    "schema_too_new",
    "internal_error",
)
"""Refusals that every operation can give; an ``Op`` lists only its own."""


@dataclass(frozen=True, slots=True)
class Op(Generic[Q, A]):
    """One operation. ``effect``: read, append (adds, never replaces), change (compare-and-set), destroy."""

    name: str
    path: str
    ask: type[Q]
    answer: type[A]
    errors: tuple[str, ...]
    effect: Effect
    summary: str
    mcp: Literal["default", "policy", "never"] = "never"

    def __post_init__(self) -> None:
        for code in self.errors:
            if code not in ERRORS:
                raise ValueError(f"{self.name} names an error that the table does not have: {code}")

    @property
    def all_errors(self) -> tuple[str, ...]:
        """Its own refusals, then those that every operation can give."""
        return self.errors + tuple(code for code in COMMON_ERRORS if code not in self.errors)


Role = Literal["owner", "agent", "reader"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls. ``identity`` is ``authenticated`` only behind a token; embedded use asserts its name.

    ``host`` names the host whose own reader took what is captured; without it everything captured is the caller's word.
    It is set by the surface (embedded: this machine; HTTP: the token), never by a request body.
    """

    principal_id: str
    identity: Literal["asserted", "authenticated"]
    role: Role
    host: str | None = None

    def may(self, effect: Effect) -> bool:
        """Whether the role allows the effect: a reader reads, an agent also appends and changes, an owner does all."""
        if self.role == "owner":
            return True
        if self.role == "agent":
            return effect != "destroy"
        return effect == "read"


Handler = Callable[[Principal, Any], Any]
Handlers = Mapping[str, Handler]


class Caller(Protocol):
    """Calls an operation and answers its model, or raises ``PassdownError``."""

    def __call__(self, op: Op[Q, A], ask: Q) -> A: ...
