"""Canonical JSON against published vectors and against `rfc8785`, with NFC applied here by the test itself."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import unicodedata
import uuid
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from passdown.kernel import canonical
from passdown.kernel.canonical import (
    canonical_bytes,
    canonical_bytes_of_validated,
    digest,
    digest_bytes,
    jcs_bytes,
)
from passdown.kernel.errors import PassdownError
from passdown.kernel.strict_json import parse_json

DATA = Path(__file__).parent.parent / "data" / "digests"
JCS_VECTORS = json.loads((DATA / "jcs_vectors.json").read_text("utf-8"))["vectors"]
SELECTION_VECTORS = json.loads((DATA / "selection_digests.json").read_text("utf-8"))["vectors"]
SAFE = 2**53 - 1


def named(vector: dict[str, Any]) -> str:
    return str(vector["name"])


def nfc(value: Any) -> Any:
    """NFC of every string and key; raises KeyError if two keys of one object become equal."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list | tuple):
        return [nfc(item) for item in value]
    if isinstance(value, dict):
        result = {nfc(key): nfc(item) for key, item in value.items()}
        if len(result) != len(value):
            raise KeyError
        return result
    return value


def refusal(value: Any, write: Callable[[Any], bytes] = canonical_bytes) -> tuple[str, str]:
    with pytest.raises(PassdownError) as caught:
        write(value)
    assert caught.value.code == "not_canonical"
    assert set(caught.value.members) == {"field", "rule"}
    return caught.value.members["rule"], caught.value.members["field"]


def nested(depth: int, wrap: Callable[[Any], Any] = lambda inner: [inner], core: Any = None) -> Any:
    value = core
    for _ in range(depth):
        value = wrap(value)
    return value


# Letters that compose, marks that reorder, jamo, singletons, exclusions, and both sides of the UTF-16 order.
TRICKY = 'aeqA\u0301\u0323\u0338\u1112\u1161\u11ab\u2126\u212b\u0344\u0958\ufb1d\u00e9<\\"\n\x00\x7f\u2028\ud7ff\ue000\uffee\U00010000\U0001d15e\U0001f600'  # noqa: E501
texts = st.text(alphabet=TRICKY, max_size=4) | st.text(max_size=6)
scalars = st.none() | st.booleans() | st.integers(-SAFE, SAFE) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=25,
)


# --- vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", JCS_VECTORS, ids=named)
def test_every_jcs_vector_is_reproduced_without_nfc(vector: dict[str, Any]) -> None:
    """Fault: wrong key order, escapes or number form of plain RFC 8785."""
    data = jcs_bytes(json.loads(vector["input"]))
    assert data.hex() == vector["canonical_hex"]
    assert digest_bytes(data) == "sha256:" + vector["sha256"]


@pytest.mark.parametrize("vector", [v for v in JCS_VECTORS if named(v) != "nfd-not-normalised-by-jcs"], ids=named)
def test_every_vector_that_nfc_leaves_readable_is_reproduced_with_nfc(vector: dict[str, Any]) -> None:
    """Fault: the NFC step changes more than NFC. One key is a composition exclusion, so the oracle decides there."""
    value = json.loads(vector["input"])
    data = canonical_bytes(value)
    assert data == rfc8785.dumps(nfc(value))
    assert digest(value) == "sha256:" + hashlib.sha256(data).hexdigest()
    if unicodedata.is_normalized("NFC", vector["canonical_text"]):
        assert data.hex() == vector["canonical_hex"]


def test_the_vector_whose_keys_become_equal_under_nfc_is_refused() -> None:
    """Fault: one of two members is silently lost."""
    vector = next(v for v in JCS_VECTORS if named(v) == "nfd-not-normalised-by-jcs")
    assert refusal(json.loads(vector["input"])) == ("key_collision", "${1}")


def utc(text: str | None) -> str | None:
    if text is None:
        return None
    moment = datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


@pytest.mark.parametrize("vector", SELECTION_VECTORS, ids=named)
def test_every_selection_vector_has_its_bytes_and_its_digest(vector: dict[str, Any]) -> None:
    """Fault: an envelope digest that another implementation cannot reproduce. Declared timestamps only are changed."""
    envelope = vector["envelope"]
    for event in envelope["activity_selection"]:
        event["occurred_at"], event["observed_at"] = utc(event["occurred_at"]), utc(event["observed_at"])
    if (period := envelope["normalized_period"]) is not None:
        period["start"], period["end"] = utc(period["start"]), utc(period["end"])
    assert canonical_bytes(envelope).hex() == vector["canonical_utf8_hex"]
    assert digest(envelope) == vector["selection_digest"]


# --- properties -------------------------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(values)
@example({"\ue000": 1, "\U0001f600": 2, "\ud7ff": 3})
@example({"e\u0301": 1, "q\u0323\u0301": ["\u212b"]})
@example(["\\", "\u0301", "n\n\u0301", "<", "\u0338"])
@example({"\u1112\u1161\u11ab": "\u1112\u1161\u11ab", "\ud55c": 0})
def test_canonical_bytes_are_those_of_an_independent_implementation_on_the_nfc_value(value: Any) -> None:
    """Fault: any difference of order, escape or normalisation between the quick path and the standard."""
    try:
        expected = rfc8785.dumps(nfc(value))
    except KeyError:
        assert refusal(value)[0] == "key_collision"
    else:
        assert canonical_bytes(value) == expected


@settings(max_examples=150, deadline=None)
@given(values)
def test_jcs_bytes_are_those_of_an_independent_implementation_on_the_value_itself(value: Any) -> None:
    """Fault: NFC is applied below the step that owns it, or UTF-16 order is missed."""
    assert jcs_bytes(value) == rfc8785.dumps(value)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(alphabet='a\x00"\u00e9\ud7ff\ue000\uffee\U00010000\U0010ffff', max_size=3), st.just(0)))
def test_keys_beyond_and_below_the_surrogates_are_ordered_by_utf16(value: dict[str, int]) -> None:
    """Fault: code point order, which puts U+E000 to U+FFFF before characters that UTF-16 writes as surrogate pairs."""
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    assert list(json.loads(canonical_bytes(value))) == keys


@settings(max_examples=100, deadline=None)
@given(values)
def test_reading_canonical_bytes_and_writing_them_again_changes_nothing(value: Any) -> None:
    """Fault: a form that is not a fixpoint, or that the strict reader does not read back."""
    try:
        data = canonical_bytes(value)
    except PassdownError:
        return
    assert canonical_bytes(parse_json(data)) == data


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner),
        max_leaves=20,
    )
)
def test_a_validated_value_has_the_same_bytes_as_one_that_was_walked(value: Any) -> None:
    """Fault: the short cut for our own models writes other bytes."""
    validated = nfc(value)
    assert canonical_bytes_of_validated(validated) == canonical_bytes(validated) == rfc8785.dumps(validated)


@settings(max_examples=100, deadline=None)
@given(values)
def test_the_given_value_is_never_changed(value: Any) -> None:
    """Fault: NFC written into the caller's own lists and dicts."""
    before = copy.deepcopy(value)
    with contextlib.suppress(PassdownError):
        canonical_bytes(value)
    assert orjson.dumps(value) == orjson.dumps(before)


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrap", "step"),
    [
        (lambda inner: [inner], "[0]"),
        (lambda inner: (inner,), "[0]"),
        (lambda inner: {"k": inner}, "{0}"),
        (lambda inner: {"\U0001f600": inner}, "{0}"),
        (lambda inner: ["e\u0301", inner], "[1]"),
    ],
    ids=["arrays", "tuples", "objects", "astral keys", "decomposed"],
)
def test_sixty_four_containers_are_written_and_sixty_five_are_refused(wrap: Callable[[Any], Any], step: str) -> None:
    """Fault: depth counted one off, or on one of the two paths only."""
    at_limit = nested(64, wrap)
    assert canonical_bytes(at_limit) == rfc8785.dumps(nfc(at_limit))
    assert refusal(nested(65, wrap)) == ("depth", "$" + step * 64)
    assert refusal(nested(65, wrap), jcs_bytes) == ("depth", "$" + step * 64)


def test_an_empty_container_counts_as_a_level_and_a_scalar_does_not() -> None:
    """Fault: `[]` inside 64 arrays passes because it has no elements."""
    assert canonical_bytes(nested(63, core=[])) == b"[" * 64 + b"]" * 64
    assert refusal(nested(64, core={})) == ("depth", "$" + "[0]" * 64)
    assert canonical_bytes(nested(64, core=1)) == b"[" * 64 + b"1" + b"]" * 64


def test_very_deep_and_cyclic_values_are_refused_as_too_deep() -> None:
    """Fault: RecursionError, or a walk that never ends."""
    assert refusal(nested(100_000))[0] == "depth"
    cycle: list[Any] = []
    cycle += [cycle, cycle]
    assert refusal(cycle) == ("depth", "$" + "[0]" * 64)
    loop: dict[str, Any] = {}
    loop["a"], loop["b"] = 1, loop
    assert refusal(loop) == ("depth", "$" + "{1}" * 64)


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_are_written_up_to_the_safe_limit_and_refused_one_past_it(sign: int) -> None:
    """Fault: a number that other readers round."""
    assert canonical_bytes([sign * SAFE]) == f"[{sign * SAFE}]".encode()
    for beyond in (SAFE + 1, 2**63, 2**64, 10**400):
        assert refusal(["e\u0301", sign * beyond]) == ("integer_range", "$[1]")
        assert refusal({"a": sign * beyond}, canonical_bytes_of_validated) == ("integer_range", "${0}")


# --- refusals ---------------------------------------------------------------------------------------------------------


class Word(str):
    pass


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    ONE = 1


class Plain(enum.Enum):
    ONE = "one"


class Pair(NamedTuple):
    first: int
    second: int


@dataclasses.dataclass
class Record:
    member: int


REFUSED: list[tuple[str, Any, str, str]] = [
    ("float", 1.0, "float", "$"),
    ("float that is an integer, inside", {"a": [0, 2.0]}, "float", "${0}[1]"),
    ("negative zero", [-0.0], "float", "$[0]"),
    ("nan", [float("nan")], "float", "$[0]"),
    ("infinity", {"a": 1, "b": float("-inf")}, "float", "${1}"),
    ("lone high surrogate", ["a\ud83d"], "surrogate", "$[0]"),
    ("lone low surrogate", {"a": "\ude00"}, "surrogate", "${0}"),
    ("lone surrogate in a key", {"a": 1, "\ud83d": 2}, "surrogate", "${1}"),
    ("swapped surrogates", ["\ude00\ud83d"], "surrogate", "$[0]"),
    ("integer key", [{1: 2}], "key_type", "$[0]{0}"),
    ("null key", {None: 2}, "key_type", "${0}"),
    ("boolean key", {True: 2}, "key_type", "${0}"),
    ("key of a subclass", {Word("a"): 2}, "key_type", "${0}"),
    ("key of an enumeration", {Colour.RED: 2}, "key_type", "${0}"),
    ("subclass of str", [Word("a")], "value_type", "$[0]"),
    ("string enumeration", [Colour.RED], "value_type", "$[0]"),
    ("integer enumeration", [Level.ONE], "value_type", "$[0]"),
    ("plain enumeration", [Plain.ONE], "value_type", "$[0]"),
    ("named tuple", [Pair(1, 2)], "value_type", "$[0]"),
    ("subclass of dict", [OrderedDict(a=1)], "value_type", "$[0]"),
    ("dataclass", Record(1), "value_type", "$"),
    ("date and time", [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)], "value_type", "$[0]"),
    ("date", [datetime.date(2026, 1, 1)], "value_type", "$[0]"),
    ("uuid", {"a": uuid.UUID(int=1)}, "value_type", "${0}"),
    ("decimal", [decimal.Decimal(1)], "value_type", "$[0]"),
    ("bytes", [b"a"], "value_type", "$[0]"),
    ("set", [{1}], "value_type", "$[0]"),
    ("raw fragment", [orjson.Fragment(b"1.0")], "value_type", "$[0]"),
    ("keys equal under NFC", [{"\u212b": 1, "b": 2, "A\u030a": 3}], "key_collision", "$[0]{2}"),
]


@pytest.mark.parametrize(("value", "rule", "field"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_has_no_canonical_form_is_refused_with_its_rule_and_place(value: Any, rule: str, field: str) -> None:
    """Fault: a coercion (orjson writes floats, enumerations, UUIDs, dates and fragments if nobody looks)."""
    assert refusal(value) == (rule, field)
    assert refusal([value, "e\u0301"])[0] == rule
    assert refusal({"\U0001f600": value})[0] == rule
    if rule != "key_collision":
        assert refusal(value, jcs_bytes) == (rule, field)


@pytest.mark.parametrize("value", [Word("a"), Record(1), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)])
def test_the_short_cut_for_validated_values_converts_nothing_either(value: Any) -> None:
    """Fault: a subclass, a record or a time that slipped into a model is written in whatever form orjson has for it."""
    assert refusal([value], canonical_bytes_of_validated) == ("value_type", "$[0]")


def test_the_first_refusal_in_document_order_is_told() -> None:
    """Fault: a place that depends on which path found it."""
    assert refusal({"\u212b": 1, "A\u030a": 1.5, "\ud800": 2}) == ("key_collision", "${1}")
    assert refusal([1, {"b": [True, 1.5], "a": "\ud800"}, 2**60]) == ("float", "$[1]{0}[1]")


def test_a_refusal_holds_no_text_of_the_value() -> None:
    """Fault: a secret that was used as a key is repeated in an error."""
    with pytest.raises(PassdownError) as caught:
        canonical_bytes({"token_hunter2": {"hunter2": [1.5, "hunter2"]}})
    assert "hunter2" not in str(caught.value) + json.dumps(caught.value.problem())


# --- small facts ------------------------------------------------------------------------------------------------------


def test_booleans_and_integers_stay_apart_and_tuples_are_arrays() -> None:
    """Fault: True written as 1, or a tuple refused on one path and written on the other."""
    assert canonical_bytes((True, 1, False, 0, None, ("e\u0301",))) == '[true,1,false,0,null,["é"]]'.encode()


def test_marks_do_not_reach_across_an_escape_or_the_end_of_a_string() -> None:
    """Fault: NFC applied to the written text, where the letter of an escape would take the mark that follows it."""
    value = ["a\n\u0301", "e", "\u0301"]
    assert canonical_bytes(value) == b'["a\\n\xcc\x81","e","\xcc\x81"]'


def test_a_key_that_only_gets_its_place_through_nfc_is_sorted_by_its_nfc_form() -> None:
    """Fault: sorting before normalising: decomposed e with acute stands before f, composed after it."""
    assert canonical_bytes({"e\u0301": 1, "f": 2}) == '{"f":2,"é":1}'.encode()


def test_digests_are_sha256_of_the_canonical_bytes() -> None:
    """Fault: a digest over other bytes. The expected values are from `sha256sum`."""
    assert digest_bytes(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest({"b": 1, "a": "e\u0301"}) == (
        "sha256:aa58fba8483623bed37c1b02edfccbdd9a53123837c20bfa4cb4049993a2872e"
    )


def test_emoji_in_values_alone_do_not_need_the_slow_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: one emoji makes a large report many times slower. Only keys beyond U+FFFF need RFC 8785's own writer."""
    calls: list[Any] = []
    monkeypatch.setattr(canonical.rfc8785, "dumps", lambda value: calls.append(value) or b"slow")
    assert canonical_bytes({"é": ["🚀", "e\u0301"]}) == '{"é":["🚀","é"]}'.encode()
    assert calls == []
    assert canonical_bytes({"🚀": 1}) == b"slow"


def test_a_long_run_of_marks_out_of_order_is_put_in_order_without_quadratic_work() -> None:
    # Two classes that alternate: sorting by insertion, as the Unicode database of Python does, would take hours here.
    text = "a" + "\u0301\u0323" * 500_000
    right = "\u1ea1" + "\u0323" * 499_999 + "\u0301" * 500_000
    assert canonical_bytes([text]) == f'["{right}"]'.encode()
