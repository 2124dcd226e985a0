"""A request from what a program has at hand: the model itself, or its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Op
from passdown.kernel.wire import Wire, dump, validate

Q = TypeVar("Q", bound=Wire)


def ask_of(op: Op[Q, Any], ask: Q | None, members: Mapping[str, Any]) -> Q:
    """The request model; members are validated as the wire would, with the same refusals.

    Giving both, or a model of another operation, is ``invalid_request`` with ``field`` ``ask``.
    """
    if ask is None:
        return validate(op.ask, _plain(members))
    if members or not isinstance(ask, op.ask):
        raise PassdownError("invalid_request", field="ask", rule="model_or_members" if members else "model_type")
    return ask


def _plain(value: Any) -> Any:
    """The JSON value of a mixture of models, mappings and sequences."""
    if isinstance(value, Wire):
        return dump(value)
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(inner) for inner in value]
    return value
