"""Canonical JSON and the digests over it.

One value, one sequence of bytes. The canonical form of a value is RFC 8785 applied to the value after every string and
every key was put into Unicode Normalization Form C. Only what every JSON reader understands alike has such a form:
null, booleans, integers up to 2^53-1 in magnitude, strings of Unicode scalar values, arrays, and objects whose keys are
strings that stay different under NFC, at most 64 containers inside one another. Floats have none. Everything else is
refused as `not_canonical`, nothing is coerced: a subclass of `str` or `int` (an enumeration, say) is not a string or an
integer here. Tuples are arrays.

Invariants:

- `canonical_bytes(v)` is what `rfc8785.dumps` gives for the NFC form of `v`, and parsing those bytes and canonicalising
  again gives the same bytes.
- Two paths lead there. The quick one writes with orjson and keeps the result only if one walk over the value shows that
  nothing had to be changed or refused; every doubt goes to the careful one, which alone refuses and alone decides.
- orjson sorts keys by code point, RFC 8785 by UTF-16 code unit. The orders differ only between a key that holds a
  character beyond U+FFFF and another; a value with such a key is written by `rfc8785`.
- A refusal carries `field` (the place, without any text of the value) and `rule`: `float`, `integer_range`, `depth`,
  `surrogate`, `key_type`, `value_type`, `key_collision`.

Depth counts containers: a scalar has depth 0, `[]` has 1, `[[]]` has 2. The place is written as steps from the root
`$`: `[3]` is the element with index 3 of an array, `{3}` the member that comes at index 3 in the order given.

NFC is that of the Unicode version of the running Python. Strings of characters that this version knows have the same
NFC in every later one.

Public operations: :func:`canonical_bytes`, :func:`canonical_bytes_of_validated`, :func:`jcs_bytes`, :func:`digest`,
:func:`digest_bytes`, :func:`digest_pieces`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias, cast
from unicodedata import is_normalized

import orjson
import rfc8785

from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import MAX_DEPTH, MAX_SAFE_INTEGER
from passdown.kernel.text import nfc as to_nfc

JsonValue: TypeAlias = "bool | int | str | list[JsonValue] | dict[str, JsonValue] | None"
"""A value that can have a canonical form: no floats."""

# With these orjson refuses, instead of converting, most of what has no canonical form: integers beyond 2^53-1,
# subclasses, keys that are not strings, lone surrogates. It still writes floats, enumerations, UUIDs and fragments, and
# nests deeper than 64: the walk beside it looks for those.
_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)

# Stands between texts that are tested for NFC together: nothing composes or reorders across it, and every part of a
# text in NFC is in NFC.
_SEPARATOR: Final = "\n"


def canonical_bytes(value: object) -> bytes:
    """The canonical form of `value`: NFC, then RFC 8785, in UTF-8, without a final newline.

    Raises `not_canonical` with `field` and `rule` for the first place, in document order, that has no canonical form.
    `value` itself is never changed.
    """
    return _written_as_it_is(value, nfc=True) or _written_with_care(value, nfc=True)


def jcs_bytes(value: object) -> bytes:
    """RFC 8785 alone, without NFC: keys and strings are written as they are, and keys differ if their code points do.

    For comparing with other implementations of RFC 8785; digests of the product use :func:`canonical_bytes`. Refuses
    the same values, except that no two keys can collide.
    """
    return _written_as_it_is(value, nfc=False) or _written_with_care(value, nfc=False)


def canonical_bytes_of_validated(value: JsonValue) -> bytes:
    """The canonical form of a value that is already known to have one and to be in NFC; no walk is made.

    The caller guarantees: no float anywhere; at most 64 containers inside one another; every string is NFC; every key
    is ASCII; only `None`, `bool`, `int`, `str`, `list`, `tuple` and `dict` themselves. The dump of a model whose fields
    are strict, whose text fields apply NFC and whose keys are field names is such a value. If floats, depth, NFC or
    keys are not as promised, the bytes are not canonical; the rest falls back to :func:`canonical_bytes`.
    """
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except orjson.JSONEncodeError:
        return canonical_bytes(value)


def digest(value: object) -> str:
    """`sha256:` and 64 lower-case hexadecimal digits over :func:`canonical_bytes` of `value`; refuses what it does."""
    return digest_bytes(canonical_bytes(value))


def digest_bytes(data: bytes) -> str:
    """`sha256:` and 64 lower-case hexadecimal digits over `data`."""
    return digest_pieces((data,))


def digest_pieces(pieces: Iterable[bytes]) -> str:
    """The digest of what the pieces are together; nothing is copied for it."""
    sum_ = hashlib.sha256()
    for piece in pieces:
        sum_.update(piece)
    return "sha256:" + sum_.hexdigest()


# --- the quick path ---------------------------------------------------------------------------------------------------


def _written_as_it_is(value: Any, *, nfc: bool) -> bytes | None:
    """The bytes, if they are certain to be right without changing or refusing anything; else None.

    orjson comes before the walk: it ends on cyclic values and leaves only real strings as keys.
    """
    try:
        data = orjson.dumps(value, option=_OPTIONS)
    except orjson.JSONEncodeError:
        return None
    keys: set[str] = set()
    # The root is looked at as the only element of an array that does not count.
    if not _is_plain((value,), -1, keys, nfc):
        return None
    names = _SEPARATOR.join(keys)
    if names.isascii():
        return data
    if nfc and not is_normalized("NFC", names):
        return None
    return rfc8785.dumps(value) if _has_astral(names) else data


def _is_plain(container: Any, depth: int, keys: set[str], nfc: bool) -> bool:
    """Whether nothing inside `container`, which has `depth` containers around it, has to be changed or refused.

    Leaves to orjson what it refuses, and gathers the keys. One branch per kind, the frequent ones first, without a call
    per scalar: this loop is most of the cost of canonicalising.
    """
    if depth >= MAX_DEPTH:
        return False
    items: Iterable[Any] = container
    if type(container) is dict:
        keys.update(container)
        items = container.values()
    for item in items:
        kind = type(item)
        if kind is str:
            if nfc and not item.isascii() and not is_normalized("NFC", item):
                return False
        elif kind is dict or kind is list or kind is tuple:
            if not _is_plain(item, depth + 1, keys, nfc):
                return False
        elif not (item is None or kind is int or kind is bool):
            return False
    return True


def _has_astral(text: str) -> bool:
    """Whether `text` holds a character beyond U+FFFF, which is two code units in UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) != 2 * len(text)


# --- the careful path -------------------------------------------------------------------------------------------------


class _Refusal(Exception):
    """What broke, and the steps to it from the inside out; becomes a PassdownError at the root."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.steps: list[str] = []


def _written_with_care(value: object, *, nfc: bool) -> bytes:
    try:
        right = _put_right(value, 0, nfc)
    except _Refusal as refusal:
        raise PassdownError("not_canonical", field="$" + "".join(reversed(refusal.steps)), rule=refusal.rule) from None
    # Nothing is left that the quick path doubts; should it ever doubt more, the bytes stay the same.
    return _written_as_it_is(right, nfc=nfc) or rfc8785.dumps(cast(Any, right))


def _put_right(value: object, depth: int, nfc: bool) -> object:
    """`value`, which has `depth` containers around it, with every text in NFC if `nfc`.

    Containers in which nothing changes are returned as they are; the others are copied.
    """
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return _text_put_right(value, nfc)
    if type(value) is int:
        if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            raise _Refusal("integer_range")
        return value
    if type(value) is dict:
        return _object_put_right(value, _one_deeper(depth), nfc)
    if type(value) is list or type(value) is tuple:
        return _array_put_right(value, _one_deeper(depth), nfc)
    raise _Refusal("float" if type(value) is float else "value_type")


def _one_deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise _Refusal("depth")
    return depth + 1


def _array_put_right(items: Sequence[object], depth: int, nfc: bool) -> Sequence[object]:
    copy: list[object] | None = None
    index = 0
    try:
        for index, item in enumerate(items):
            new = _put_right(item, depth, nfc)
            if new is not item:
                if copy is None:
                    copy = list(items)
                copy[index] = new
    except _Refusal as refusal:
        refusal.steps.append(f"[{index}]")
        raise
    return items if copy is None else copy


def _object_put_right(members: dict[object, object], depth: int, nfc: bool) -> dict[object, object]:
    copy: dict[object, object] | None = None
    index = 0
    try:
        for index, (key, item) in enumerate(members.items()):
            if type(key) is not str:
                raise _Refusal("key_type")
            name = key if key.isascii() else _text_put_right(key, nfc)
            # From the first change on, every member is written to a copy; those before it are there already.
            if copy is None and name is not key:
                copy = dict(islice(members.items(), index))
            if copy is not None and name in copy:
                raise _Refusal("key_collision")
            # Most members are plain text: they are worth a test here, which spares two calls.
            new = item if type(item) is str and item.isascii() else _put_right(item, depth, nfc)
            if copy is None and new is not item:
                copy = dict(islice(members.items(), index))
            if copy is not None:
                copy[name] = new
    except _Refusal as refusal:
        refusal.steps.append(f"{{{index}}}")
        raise
    return members if copy is None else copy


def _text_put_right(text: str, nfc: bool) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refusal("surrogate") from None
    return to_nfc(text) if nfc else text
