"""The strict reader against the standard library's reader, with every strictness added here by the test itself."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from passdown.kernel import strict_json
from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import REQUEST_BODY_BYTES
from passdown.kernel.strict_json import parse_json


def refusal(data: bytes, **limits: int) -> dict[str, Any]:
    with pytest.raises(PassdownError) as caught:
        parse_json(data, **limits)
    assert caught.value.code == "malformed_json"
    return caught.value.members


# --- an independent reader --------------------------------------------------------------------------------------------


class Refused(Exception):
    pass


def refuse(*_: Any) -> Any:
    raise Refused


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({unicodedata.normalize("NFC", key) for key, _ in pairs}) != len(pairs):
        raise Refused
    return dict(pairs)


def finite(token: str) -> float:
    if not math.isfinite(float(token)):
        raise Refused
    return float(token)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def reference(data: bytes) -> Any:
    """What `data` means to the standard library, or Refused."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=members, parse_constant=refuse, parse_float=finite)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        raise Refused from error
    if text.startswith("\ufeff") or depth(value) > 64:
        raise Refused
    return value


def agrees(data: bytes) -> None:
    try:
        expected = reference(data)
    except Refused:
        refusal(data)
    else:
        # repr tells 1 from 1.0 and True, and -0.0 from 0.0
        assert repr(parse_json(data)) == repr(expected)


# Documents as a sender may write them: escapes or not, white space, repeated and colliding keys, colons everywhere.
TEXTS = [
    '""', '"a"', '"\\u0061"', '"b"', '":"', '"\\u003a"', '"\\u003A:"', '"\\\\u003a"', '"é"', '"e\\u0301"', '"e\u0301"',
    '"\\ud83d\\ude00"', '"\\ud83d"', '"😀"', '"\\"a\\":"', '"\\u0000"', '"12:30:00"', '"\u212b"', '"\\u00c5"',
]  # fmt: skip
NUMBERS = ["0", "-0", "-0.0", "1.0", "1e2", "1e999", "-1e400", "1e-999", "18446744073709551616", "9" * 309, "9" * 19]
scalars = st.sampled_from([*TEXTS, *NUMBERS, "null", "true", "false"])
spaces = st.sampled_from(["", "", "", " ", "\n\t\r "])


def arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(spaces, st.lists(inner, max_size=4)).map(lambda pair: "[" + pair[0] + ",".join(pair[1]) + "]")


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(st.sampled_from(TEXTS), spaces, spaces, inner).map(lambda m: f"{m[0]}{m[1]}:{m[2]}{m[3]}")
    return st.lists(member, max_size=4).map(lambda parts: "{" + " ,".join(parts) + "}")


documents = st.recursive(scalars, lambda inner: arrays(inner) | objects(inner), max_leaves=12)


@settings(max_examples=600, deadline=None)
@given(documents)
@example('{"a":"\\u003a","b":1,"b":2}')
@example('{"a":1,"\\u0061":1}')
@example("[18446744073709551616, 1.0]")
def test_well_formed_documents_mean_what_they_mean_to_another_reader(document: str) -> None:
    """Fault: the quick path keeps the last of two keys, rounds an integer, or refuses what is fine."""
    agrees(document.encode())


@settings(max_examples=400, deadline=None)
@given(documents, st.data())
def test_damaged_documents_are_accepted_exactly_if_another_reader_accepts_them(
    document: str, data: st.DataObject
) -> None:
    """Fault: a byte more, less or changed lets another grammar through."""
    raw = bytearray(document.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw)))
        new = data.draw(st.sampled_from([*b'{}[],:"\\0e.-+ \t\x00\x0b\x1f\x7f/N', 0xC3, 0xED, 0xFF, 0xA0]))
        raw[at : at + data.draw(st.integers(0, 1))] = bytes([new])
    agrees(bytes(raw))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=12))
def test_any_bytes_are_read_or_refused_by_type(data: bytes) -> None:
    """Fault: an exception that is no refusal."""
    agrees(data)


# --- what is returned -------------------------------------------------------------------------------------------------


def test_values_are_returned_exactly_as_they_were_sent() -> None:
    """Fault: NFC applied too early, an integer rounded, a float made an integer, or members out of order."""
    value = parse_json('{"z":"e\u0301","a":[123456789012345678901234567890,1.0,-0.0,true,null],"é":"\\u0000"}'.encode())
    assert repr(value) == repr(
        {"z": "e\u0301", "a": [123456789012345678901234567890, 1.0, -0.0, True, None], "é": "\x00"}
    )


def test_white_space_around_the_document_is_allowed() -> None:
    """Fault: a final newline, which every editor writes, is taken for trailing data."""
    assert parse_json(b" \r\n\t[1]\n") == [1]
    assert parse_json(b" \r\n\t[1.5]\n") == [1.5]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "rule", "offset"),
    [
        (b"", "empty", 0),
        (b" \n\t ", "empty", 4),
        (b"\xef\xbb\xbf{}", "byte_order_mark", 0),
        (b"\xef\xbb\xbf", "byte_order_mark", 0),
        ('{"a":1}'.encode("utf-16-le"), "syntax", 1),
        ('{"a":1}'.encode("utf-16"), "utf8", 0),
        (b'["ab\xff"]', "utf8", 4),
        (b'["\xed\xa0\x80"]', "utf8", 2),
        (b'["\xc0\x80"]', "utf8", 2),
        (b'["\xc3', "utf8", 2),
        (b'["abc', "syntax", 1),
        ('["é", x]'.encode(), "syntax", 7),
        (b"[1,]", "syntax", None),
        (b'{"a":1,}', "syntax", None),
        (b"{a:1}", "syntax", 1),
        (b"{'a':1}", "syntax", 1),
        (b"[01]", "syntax", 2),
        (b"[+1]", "syntax", 1),
        (b"[.5]", "syntax", 1),
        (b"[0x10]", "syntax", 2),
        (b'["\t"]', "syntax", 2),
        (b'["\\x41"]', "syntax", 2),
        (b'["\\u00g0"]', "syntax", None),
        (b"[1] /* c */", "trailing_data", 4),
        ('["é"] {}'.encode(), "trailing_data", 7),
        (b"[1]\x00", "trailing_data", 3),
        (b"1 2", "trailing_data", 2),
        (b"NaN", "not_finite", None),
        (b"[Infinity]", "not_finite", None),
        (b'{"a":-Infinity}', "not_finite", None),
        (b"[1e999]", "not_finite", None),
        (b"[-1e309]", "not_finite", None),
        (b'{"a":1,"a":1}', "duplicate_key", None),
        (b'{"a":1,"\\u0061":2}', "duplicate_key", None),
        (b'[{"b":{"a":1,"c":2,"a":3}}]', "duplicate_key", None),
        (b'{"":1,"":2}', "duplicate_key", None),
        (b'{"a":"\\u003a","b":1,"b":2}', "duplicate_key", None),
        (b'{"a":":::","a":{":":":"}}', "duplicate_key", None),
        (b'{"a":1.5,"a":1}', "duplicate_key", None),
        ('{"\u00e9":1,"e\u0301":2}'.encode(), "key_collision", None),
        (b'{"\\u212b":1,"A\\u030a":2}', "key_collision", None),
        (b'["\\ud800"]', "surrogate", None),
        (b'["\\udc00"]', "surrogate", None),
        (b'["\\ude00\\ud83d"]', "surrogate", None),
        (b'["\\ud83dx\\ude00"]', "surrogate", None),
        (b'{"\\ud800":1}', "surrogate", None),
    ],
)  # fmt: skip
def test_each_fault_is_refused_with_its_rule_and_its_place(data: bytes, rule: str, offset: int | None) -> None:
    """Fault: a document that two readers understand differently is accepted, or the place is counted in characters."""
    found = refusal(data)
    assert found["rule"] == rule
    if offset is not None:
        assert found["offset"] == offset


def test_the_end_of_an_escaped_pair_is_a_character_and_not_half_of_one() -> None:
    """Fault: correct surrogate pairs refused with the lone ones."""
    assert parse_json(b'["\\ud83d\\ude00", 0.5]') == ["😀", 0.5]


def test_a_refusal_holds_no_text_of_the_document() -> None:
    """Fault: a pasted secret is repeated in an error or kept in its visible causes."""
    for data in (b'{"hunter2":1,"hunter2":2}', b'["hunter2"', b'["hunter2\\ud800"]', b'{"hunter2":1} hunter2'):
        with pytest.raises(PassdownError) as caught:
            parse_json(data)
        assert "hunter2" not in str(caught.value) + json.dumps(caught.value.problem())
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", ["", "18446744073709551616"], ids=["quick", "careful"])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"k":', "}")], ids=["arrays", "objects"])
def test_sixty_four_containers_are_read_and_sixty_five_are_refused(opening: str, closing: str, core: str) -> None:
    """Fault: depth counted one off, or differently on the two paths."""

    def document(levels: int) -> bytes:
        return (opening * (levels - 1) + "[" + core + "]" + closing * (levels - 1)).encode()

    assert depth(parse_json(document(64))) == 64
    assert refusal(document(65)) == {"rule": "depth"}


def test_another_depth_may_be_asked_for() -> None:
    """Fault: the parameter is ignored on one of the paths."""
    assert parse_json(b"[[]]", max_depth=2) == [[]]
    assert refusal(b"[[]]", max_depth=1)["rule"] == "depth"
    assert refusal(b"[[18446744073709551616]]", max_depth=1)["rule"] == "depth"
    assert parse_json(b"1", max_depth=0) == 1
    assert refusal(b"[]", max_depth=0)["rule"] == "depth"
    assert depth(parse_json(b"[" * 100 + b"]" * 100, max_depth=100)) == 100
    assert refusal(b"[" * 101 + b"]" * 101, max_depth=100)["rule"] == "depth"


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
def test_a_megabyte_of_opening_brackets_is_too_deep(opening: bytes) -> None:
    """Fault: RecursionError, or a crash of the interpreter."""
    assert refusal(opening * (1_000_000 // len(opening)))["rule"] == "depth"


def test_a_deep_value_behind_a_repeated_key_is_still_refused() -> None:
    """Fault: the first of two members, which orjson drops, is deeper than the second reader can go."""
    assert refusal(b'{"a":' + b"[" * 1000 + b"]" * 1000 + b',"a":1}')["rule"] in {"depth", "duplicate_key"}


@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_of_400_digits_is_read_exactly_and_one_of_401_is_refused(sign: str) -> None:
    """Fault: an integer rounded, or one whose reading costs the square of its length."""
    assert parse_json(f"[{sign}{'9' * 400}]".encode()) == [int(sign + "1") * (10**400 - 1)]
    assert refusal(f"[{sign}{'9' * 401}]".encode()) == {"rule": "integer_length"}


def test_an_integer_of_a_million_digits_is_refused_at_once() -> None:
    """Fault: an untyped ValueError from Python's own limit, or minutes of arithmetic."""
    assert refusal(b"1" * 5000)["rule"] == "integer_length"
    assert refusal(b"-" + b"1" * 1_000_000)["rule"] == "integer_length"


@pytest.mark.parametrize("edge", [2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64, 2**64 + 1, 2**70 + 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_integers_around_every_machine_size_stay_exact_integers(edge: int, sign: int) -> None:
    """Fault: an integer that 64 bits do not hold comes back as a rounded float."""
    (number,) = parse_json(f"[{sign * edge}]".encode())
    assert type(number) is int
    assert number == sign * edge


@pytest.mark.parametrize("token", ["0.1", "-0.0", "1e2", "9223372036854775807.0", "1e19", "-1e300", "0." + "1" * 1000])
def test_floats_stay_floats_of_the_nearest_double(token: str) -> None:
    """Fault: a float that is a whole number becomes an integer, and a model takes it."""
    (number,) = parse_json(f"[{token}]".encode())
    assert type(number) is float
    assert number.hex() == float(token).hex()


def test_a_document_of_the_limit_is_read_and_one_byte_more_is_too_large() -> None:
    """Fault: the limit is one off, or the document is parsed before it is measured."""
    at_limit = b'["' + b"a" * (REQUEST_BODY_BYTES - 4) + b'"]'
    assert len(at_limit) == 12 * 1024 * 1024
    assert parse_json(at_limit) == ["a" * (REQUEST_BODY_BYTES - 4)]
    with pytest.raises(PassdownError) as caught:
        parse_json(at_limit + b"\xff")
    assert caught.value.code == "body_too_large"
    assert caught.value.members == {"limit": REQUEST_BODY_BYTES, "actual": REQUEST_BODY_BYTES + 1}
    assert parse_json(b"[1]", max_bytes=3) == [1]
    with pytest.raises(PassdownError) as caught:
        parse_json(b"[1]", max_bytes=2)
    assert caught.value.members == {"limit": 2, "actual": 3}


# --- the two paths ----------------------------------------------------------------------------------------------------


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the documents that went to the careful path."""
    seen: list[int] = []
    read: Callable[[bytes, int], Any] = strict_json._read_with_care
    monkeypatch.setattr(strict_json, "_read_with_care", lambda data, room: seen.append(len(data)) or read(data, room))
    return seen


def test_ordinary_documents_take_the_quick_path(careful: list[int]) -> None:
    """Fault: a colon in a text or a composed key sends every report to the slow reader."""
    document = '{"at":"2026-08-03T04:00:00Z","é":["\\"a\\":","🚀","e\u0301"], "n" : -1}'
    assert parse_json(document.encode()) == json.loads(document)
    assert careful == []


def test_twelve_mebibytes_of_spaces_are_refused_as_empty(careful: list[int]) -> None:
    """Fault: white space skipped one character at a time."""
    assert refusal(b" " * REQUEST_BODY_BYTES) == {"rule": "empty", "offset": REQUEST_BODY_BYTES}
    assert careful == [REQUEST_BODY_BYTES]


def test_the_table_of_rules_names_every_rule_that_is_raised() -> None:
    """Fault: a rule that the documentation does not know, or one that is documented and never raised."""
    source = strict_json.__loader__.get_source(strict_json.__name__)  # type: ignore[union-attr]
    raised = set(re.findall(r'_refuse\("(\w+)"', source))
    documented = set(re.findall(r"^`(\w+)` {2,}", strict_json.__doc__ or "", re.MULTILINE))
    assert raised == documented
