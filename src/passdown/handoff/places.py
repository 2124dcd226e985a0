"""Where in a request something was refused: a part that is checked by itself knows only its own members.

A place is a dotted path of member names and indexes, never text of the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from passdown.kernel.errors import PassdownError

_OF_INPUT: Final = (2, 3, 4)
"""Exit codes of refusals that the request brought about; a store that is busy has no place in it."""


@contextmanager
def within(place: str) -> Iterator[None]:
    """Put ``place`` before the fields of a refusal that passes; one that names no field gets ``place`` as its field."""
    try:
        yield
    except PassdownError as error:
        if error.spec.exit_code not in _OF_INPUT:
            raise
        errors = error.members.get("errors")
        if errors is not None:
            errors = [item | {"field": f"{place}.{item['field']}" if item["field"] else place} for item in errors]
            raise PassdownError(error.code, **error.members | {"errors": errors}) from error
        # A field that begins with ``$`` is a place inside free JSON, counted from its own root.
        field = str(error.members.get("field", ""))
        inner = field if field.startswith("$") or not field else f".{field}"
        raise PassdownError(error.code, **error.members | {"field": place + inner}) from error
