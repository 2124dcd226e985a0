"""The one reader of JSON that comes from outside.

A document is accepted only if every conforming reader would see the same value in it. RFC 8259 leaves readers free in
some places; this one refuses there: keys that are repeated, or that become equal under NFC; escapes that form no
Unicode character; numbers that no double can hold; a byte order mark; anything behind the value. What is accepted is
returned exactly: strings as they were sent (NFC is applied by the models and by the canonical form), integers beyond
64 bits, floats as floats, for the models to refuse by name.

Two paths, one meaning. The quick one reads with orjson and keeps the result only if it is certain that orjson lost
nothing; every doubt goes to the careful one, which alone refuses and alone decides. orjson can lose three things: the
first of two equal keys, the exact value of a large integer (it becomes a float), and it knows no NFC.

A refusal is `body_too_large` with `limit` and `actual`, or `malformed_json` with `rule` and, where the reader knows it,
`offset`, the number of bytes before the place:

========================  ==========================================================================
rule                      meaning
========================  ==========================================================================
`empty`                   nothing but white space
`byte_order_mark`         the document begins with a byte order mark
`utf8`                    the bytes are not UTF-8
`syntax`                  not the grammar of JSON
`trailing_data`           something follows the value
`duplicate_key`           a key stands twice in one object, however it is escaped
`key_collision`           two keys of one object become equal under NFC
`surrogate`               an escape stands for half a character
`not_finite`              NaN, Infinity, or a number beyond the range of a double
`integer_length`          an integer is written with more than 400 digits
`depth`                   more than `max_depth` containers inside one another
========================  ==========================================================================

Public operation: :func:`parse_json`.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, Final, NoReturn, TypeAlias
from unicodedata import is_normalized

import orjson

from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import MAX_DEPTH, REQUEST_BODY_BYTES
from passdown.kernel.text import nfc as to_nfc

ParsedJson: TypeAlias = "bool | int | float | str | list[ParsedJson] | dict[str, ParsedJson] | None"
"""A parsed document. Floats are in it so that a model can name the member that must not be one."""

INTEGER_DIGITS: Final = 400
"""Most digits of an integer. Reading one exactly takes time that grows faster than its length; a float does not."""

# orjson reads as integers what 64 bits hold and turns the others into floats, so a float inside these bounds was one.
_SURELY_FLOAT: Final = float(2**63)

_WHITE_SPACE: Final = re.compile(r"[ \t\r\n]*")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def parse_json(data: bytes, *, max_bytes: int = REQUEST_BODY_BYTES, max_depth: int = MAX_DEPTH) -> ParsedJson:
    """The value of the one JSON document in `data`.

    `max_bytes` is the longest document that is read; `max_depth` the number of containers that may stand inside one
    another (a scalar needs 0, `[]` needs 1). Raises `body_too_large` or `malformed_json`; see the rules above.
    """
    if len(data) > max_bytes:
        raise PassdownError("body_too_large", limit=max_bytes, actual=len(data))
    if data.startswith(_BYTE_ORDER_MARK):
        _refuse("byte_order_mark", 0)
    try:
        return _read_quickly(data, max_depth)
    except _Doubt:
        return _read_with_care(data, max_depth)


def _refuse(rule: str, offset: int | None = None) -> NoReturn:
    # `from None` keeps the document, which a decoder's own error carries, out of tracebacks and logs.
    if offset is None:
        raise PassdownError("malformed_json", rule=rule) from None
    raise PassdownError("malformed_json", rule=rule, offset=offset) from None


# --- the quick path ---------------------------------------------------------------------------------------------------


class _Doubt(Exception):
    """The quick path is not certain of its value."""


def _read_quickly(data: bytes, max_depth: int) -> ParsedJson:
    """The value, if it is certainly what the careful path returns; else raises `_Doubt`."""
    try:
        value: ParsedJson = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise _Doubt from None
    keys: set[str] = set()
    # The root is looked at as the only element of an array that does not count.
    if not _is_exact([value], min(max_depth, MAX_DEPTH) + 1, keys):
        raise _Doubt
    # Two keys that are NFC are equal under NFC only if they are equal, and every part of a text in NFC is in NFC.
    names = "\n".join(keys)
    if not names.isascii() and not is_normalized("NFC", names):
        raise _Doubt
    # Each member has one colon, and each colon inside a text stands for itself unless it is written as an escape. So
    # without such escapes the document has as many colons as its value written again, plus those of lost members.
    if b"\\u003" in data or data.count(b":") != orjson.dumps(value).count(b":"):
        raise _Doubt
    return value


def _is_exact(container: Any, room: int, keys: set[str]) -> bool:
    """Whether no integer in `container` became a float and at most `room - 1` containers in it stand in one another.

    Gathers the keys.
    """
    if room <= 0:
        return False
    items = container
    if type(container) is dict:
        keys.update(container)
        items = container.values()
    for item in items:
        kind = type(item)
        if kind is str:
            continue
        if kind is dict or kind is list:
            if not _is_exact(item, room - 1, keys):
                return False
        elif kind is float and not -_SURELY_FLOAT < item < _SURELY_FLOAT:
            return False
    return True


# --- the careful path -------------------------------------------------------------------------------------------------


def _read_with_care(data: bytes, max_depth: int) -> ParsedJson:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        _refuse("utf8", error.start)
    begin = _end_of_white_space(text, 0)
    if begin == len(text):
        _refuse("empty", len(data))
    try:
        value: ParsedJson
        value, end = _DECODER.raw_decode(text, begin)
        # As on the quick path, the root is looked at as the only element of an array that does not count.
        _check([value], max_depth + 1)
    except json.JSONDecodeError as error:
        _refuse("syntax", _bytes_before(text, error.pos))
    except RecursionError:
        _refuse("depth")
    rest = _end_of_white_space(text, end)
    if rest != len(text):
        _refuse("trailing_data", _bytes_before(text, rest))
    return value


def _end_of_white_space(text: str, begin: int) -> int:
    found = _WHITE_SPACE.match(text, begin)
    return found.end() if found else begin


def _bytes_before(text: str, position: int) -> int:
    return len(text[:position].encode())


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(pairs) < 2:
        return members
    if len(members) != len(pairs):
        _refuse("duplicate_key")
    names = "\n".join(members)
    if (
        not names.isascii()
        and not is_normalized("NFC", names)
        and len({to_nfc(name) for name in members}) != len(members)
    ):
        _refuse("key_collision")
    return members


def _integer(token: str) -> int:
    if len(token.removeprefix("-")) > INTEGER_DIGITS:
        _refuse("integer_length")
    return int(token)


def _float(token: str) -> float:
    number = float(token)
    if isinf(number):
        _refuse("not_finite")
    return number


def _constant(_token: str) -> NoReturn:
    _refuse("not_finite")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _check(container: Any, room: int) -> None:
    """Refuses half characters, and more than `room - 1` containers inside one another in `container`."""
    if room <= 0:
        _refuse("depth")
    items = container
    if type(container) is dict:
        _check_text("".join(container))
        items = container.values()
    for item in items:
        kind = type(item)
        if kind is str:
            if not item.isascii():
                _check_text(item)
        elif kind is dict or kind is list:
            _check(item, room - 1)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse("surrogate")
