"""The base of every wire model, and the translation of its refusals into the one error table.

Models are strict: a boolean is no integer, ``1.0`` is no integer, an unknown member is refused, nothing is coerced.
Validated values are canonical already (NFC, LF line ends, integers only), so their dump needs no second walk.

A validator may raise a custom pydantic error whose type is a code of the error table; :func:`refusal` then answers with
that code instead of ``invalid_request``. This is how ``unsupported_citation_kind`` and the like stay beside the field
that they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from passdown.kernel import limits
from passdown.kernel.errors import ERRORS, PassdownError
from passdown.kernel.strict_json import parse_json
from passdown.kernel.text import TextRefused, normalise_identifier, normalise_key, normalise_text

MAX_LISTED_ERRORS = 20
TAG = "~"
"""Begins the tag of every union, so that a place in a document can leave it out: a tag is no member."""
_PLAIN_MEMBER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


class Wire(BaseModel):
    """A JSON object with exactly the declared members."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, serialize_by_alias=True, defer_build=True, protected_namespaces=()
    )


M = TypeVar("M", bound=Wire)


def _checked(normalise: Callable[[str], str]) -> AfterValidator:
    def check(value: str) -> str:
        try:
            return normalise(value)
        except TextRefused as refused:
            raise PydanticCustomError("text", "{rule}", {"rule": refused.rule}) from None

    return AfterValidator(check)


def text(max_chars: int, *, required: bool = True) -> AfterValidator:
    """Free text: NFC, CRLF to LF, at most ``max_chars`` code points, not only white space where required."""
    return _checked(lambda value: normalise_text(value, max_chars=max_chars, required=required))


def identifier(max_chars: int) -> AfterValidator:
    """Identity text: NFC, no control characters, no spaces at the edges."""
    return _checked(lambda value: normalise_identifier(value, max_chars=max_chars))


Identifier = Annotated[str, identifier(limits.IDENTIFIER)]
Key = Annotated[str, _checked(normalise_key)]
Name = Annotated[str, text(limits.NAME)]
Description = Annotated[str, text(limits.DESCRIPTION, required=False)]
Count = Annotated[int, Field(ge=0, le=limits.MAX_SAFE_INTEGER)]
Revision = Annotated[int, Field(ge=1, le=limits.MAX_SAFE_INTEGER)]
Sha256Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Limit = Annotated[int, Field(ge=1, le=limits.LIST_MAX)]
Cursor = Annotated[str, Field(max_length=limits.CURSOR)]


def _path(location: tuple[int | str, ...]) -> str:
    """Dotted path of a member. A name that is not a plain word is the caller's text and is shown as ``?``."""
    members = [step for step in location if isinstance(step, int) or not step.startswith(TAG)]
    return ".".join(str(step) if isinstance(step, int) or _PLAIN_MEMBER.match(step) else "?" for step in members)


def _is_echo(item: ErrorDetails, others: Sequence[ErrorDetails]) -> bool:
    """A list is also called too short when one of its items failed; that says nothing new."""
    place = item["loc"]
    return item["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in others
    )


def refusal(error: ValidationError) -> PassdownError:
    """Every failed member as ``{field, rule}``, in the order of the document, at most twenty of them."""
    found: list[dict[str, str]] = []
    code = "invalid_request"
    listed = error.errors(include_url=False, include_input=False)
    for item in listed:
        if _is_echo(item, listed):
            continue
        rule = str(item.get("ctx", {}).get("rule", item["type"]))
        if item["type"] in ERRORS:
            code = item["type"]
        found.append({"field": _path(item["loc"]), "rule": rule})
    return PassdownError(code, errors=found[:MAX_LISTED_ERRORS], error_count=len(found))


def validate(model: type[M], value: Any) -> M:
    """A JSON value (as :func:`parse_json` gives it) to its model, or the typed refusal."""
    try:
        return model.model_validate_json(orjson.dumps(value))
    except ValidationError as error:
        raise refusal(error) from None
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits: well-formed JSON that no member of any model accepts.
        raise PassdownError("invalid_request", errors=[{"field": "", "rule": "integer_range"}], error_count=1) from None


def read_model(model: type[M], data: bytes, *, max_bytes: int = limits.REQUEST_BODY_BYTES) -> M:
    """Raw bytes through the strict reader to a model: repeated keys, NaN, bad UTF-8 and depth are refused first."""
    return validate(model, parse_json(data, max_bytes=max_bytes))


def build(model: type[M], **members: Any) -> M:
    """Make a model from Python values that a person or a program gave, with the same refusals as the wire."""
    try:
        return model(**members)
    except ValidationError as error:
        raise refusal(error) from None


def dump(value: Wire) -> dict[str, Any]:
    """The JSON value of a model: every member present, null where absent."""
    return value.model_dump(mode="json")
