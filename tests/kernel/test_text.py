"""Text, identifiers and keys at the door. Oracle: `unicodedata` and values written out by hand."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passdown.kernel.text import TextRefused, nfc, normalise_identifier, normalise_key, normalise_text

CASES = {
    case["id"]: case["text"]
    for case in json.loads((Path(__file__).parents[1] / "data" / "hostile_text.json").read_text("utf-8"))["cases"]
}
MARKS = st.text(st.sampled_from("a\u0301\u0315\u0323\u0344\u0f71\u0f72\u0f73\u0f75\u0f81\u1f82\u1112\u1161\u11ab"))


def refusal(call: Callable[[], str]) -> str:
    with pytest.raises(TextRefused) as refused:
        call()
    return refused.value.rule


@pytest.mark.parametrize("name", sorted(set(CASES) - {"blank"}))
def test_every_hostile_text_is_kept_but_for_its_form(name: str) -> None:
    # Would catch a filter that drops or replaces characters instead of leaving them to the surfaces.
    text = CASES[name]
    assert normalise_text(text, max_chars=10_000) == unicodedata.normalize("NFC", text.replace("\r\n", "\n"))


def test_crlf_becomes_lf_and_a_lone_cr_is_data() -> None:
    assert normalise_text("a\r\nb\rc\r\r\nd", max_chars=99) == "a\nb\rc\nd"


def test_decomposed_text_is_composed() -> None:
    assert normalise_text(CASES["nfd"], max_chars=6) == "r\xe9sum\xe9"
    assert normalise_text(CASES["hangul"], max_chars=2) == "\ud55c\uad6d"


def test_the_limit_counts_code_points_after_composition() -> None:
    # Would catch counting before NFC, in UTF-16 units or in bytes.
    assert normalise_text("e\u0301" * 5, max_chars=5) == "\xe9" * 5
    assert normalise_text("\U0001d4b3" * 5, max_chars=5) == "\U0001d4b3" * 5
    with pytest.raises(TextRefused) as refused:
        normalise_text("\U0001d4b3" * 6, max_chars=5)
    assert (refused.value.rule, refused.value.limit) == ("too_long", 5)
    # U+0958 becomes two code points in NFC.
    assert refusal(lambda: normalise_text("\u0958" * 3, max_chars=5)) == "too_long"


def test_nothing_composes_to_less_than_a_quarter_of_its_length() -> None:
    # The early refusal of far too long text rests on this fact about Unicode.
    assert max(len(unicodedata.normalize("NFD", chr(point))) for point in range(0x110000)) == 4
    longest = unicodedata.normalize("NFD", "\u1f82") * 5
    assert len(longest) == 20
    assert normalise_text(longest, max_chars=5) == "\u1f82" * 5
    assert refusal(lambda: normalise_text(longest + "a", max_chars=5)) == "too_long"


@pytest.mark.parametrize("text", ["", " ", CASES["blank"], "\r\n\n", "\u3000\u2028\xa0\u0085"])
def test_blank_text_is_refused_only_where_text_is_required(text: str) -> None:
    assert refusal(lambda: normalise_text(text, max_chars=99)) == "empty"
    assert normalise_text(text, max_chars=99, required=False) == text.replace("\r\n", "\n")


def test_a_character_that_will_be_shown_is_not_blank() -> None:
    for text in ("\u200b", "\x00", "\x1f", "\ufeff"):
        assert normalise_text(text, max_chars=1) == text


@pytest.mark.parametrize("surrogate", ["\ud800", "\udbff", "\udc00", "\udfff"])
def test_a_lone_surrogate_is_refused_everywhere(surrogate: str) -> None:
    assert refusal(lambda: normalise_text(f"a{surrogate}", max_chars=9)) == "surrogate"
    assert refusal(lambda: normalise_text(surrogate, max_chars=9, required=False)) == "surrogate"
    assert refusal(lambda: normalise_identifier(surrogate, max_chars=9)) == "surrogate"
    assert refusal(lambda: normalise_key(surrogate)) == "surrogate"


def test_a_refusal_never_repeats_the_text() -> None:
    with pytest.raises(TextRefused) as refused:
        normalise_identifier("secret\x00", max_chars=9)
    assert "secret" not in str(refused.value)


@given(st.text(max_size=40) | MARKS)
@settings(deadline=None)
def test_normalised_text_normalises_to_itself(text: str) -> None:
    once = normalise_text(text, max_chars=400, required=False)
    assert normalise_text(once, max_chars=400, required=False) == once
    assert "\r\n" not in once
    assert unicodedata.is_normalized("NFC", once)


@given(st.text(max_size=40) | MARKS)
@settings(deadline=None, max_examples=400)
def test_nfc_is_that_of_unicode(text: str) -> None:
    # Would catch a wrong order or a lost part in the runs that are sorted by hand.
    assert nfc(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("char", [chr(point) for point in (0x344, 0xF73, 0xF75, 0xF81, 0x1D160, 0x2126, 0xAC01)])
def test_nfc_of_characters_that_come_apart_is_that_of_unicode(char: str) -> None:
    for around in ("{}", "a\u0323{}\u0315\u0301", "\u0315{}\u0f71{}"):
        text = around.replace("{}", char)
        assert nfc(text) == unicodedata.normalize("NFC", text)


def test_a_very_long_run_of_marks_is_put_in_order() -> None:
    # Insertion sort, as in the library, needs many minutes for each of these.
    count = 300_000
    assert nfc("a" + "\u0f73" * count) == "a" + "\u0f71" * count + "\u0f72" * count
    assert nfc("a" + "\u0315\u0323" * count) == "\u1ea1" + "\u0323" * (count - 1) + "\u0315" * count


@pytest.mark.parametrize(
    "value",
    ["A", "a", "scope/1", "a b", "r\xe9sum\xe9", "\U0001f600", "a\u200bb", "\u202e", "=cmd|x", "x" * 256],
)
def test_identifiers_are_kept_to_the_letter(value: str) -> None:
    assert normalise_identifier(value, max_chars=256) == value


def test_identifiers_that_differ_by_case_accent_or_emoji_stay_different() -> None:
    values = ["Alpha", "alpha", "resume", "r\xe9sum\xe9", "\U0001f600", "\U0001f601", "paypal", "\u0440aypal"]
    assert len({normalise_identifier(value, max_chars=256) for value in values}) == len(values)


@pytest.mark.parametrize("space", list("\t \xa0\u1680\u2000\u2009\u202f\u205f\u3000"))
def test_edge_spaces_of_an_identifier_are_refused_not_trimmed(space: str) -> None:
    expected = "control_character" if space == "\t" else "edge_space"
    assert refusal(lambda: normalise_identifier(f"scope{space}", max_chars=99)) == expected
    assert refusal(lambda: normalise_identifier(f"{space}scope", max_chars=99)) == expected
    assert refusal(lambda: normalise_identifier(space, max_chars=99)) == expected


@pytest.mark.parametrize("char", list("\x00\x07\n\r\x1b\x1f\x7f\x80\x85\x9f\u2028\u2029"))
def test_control_characters_and_line_breaks_in_an_identifier_are_refused(char: str) -> None:
    assert refusal(lambda: normalise_identifier(f"a{char}b", max_chars=99)) == "control_character"


def test_identifier_length_is_one_to_the_limit() -> None:
    assert refusal(lambda: normalise_identifier("", max_chars=3)) == "empty"
    assert normalise_identifier("abc", max_chars=3) == "abc"
    assert refusal(lambda: normalise_identifier("abcd", max_chars=3)) == "too_long"


@pytest.mark.parametrize(
    "key",
    [
        "a",
        "PC-142",
        "parser_error.v2",
        "-",
        "\u652f\u4ed8",
        "\u0440\u0430\u0443",
        "\u0928\u092e\u0938\u094d\u0924\u0947",
        "\u0663",
        "9",
        "e\u0301",
        "k" * 64,
    ],
)
def test_keys_are_letters_digits_and_three_signs_of_any_script(key: str) -> None:
    assert normalise_key(key) == unicodedata.normalize("NFC", key)


def test_keys_keep_their_case() -> None:
    assert normalise_key("Core") != normalise_key("core")


@pytest.mark.parametrize(
    "key",
    [
        "a b",
        "a/b",
        "a:b",
        "a\n",
        "\xbd",
        "\u2167",
        "\xb2",
        "a\u200bb",
        "\u3164",
        "\u0301a",
        "a\u034f",
        "\U0001f600",
        "(a)",
    ],
)
def test_other_characters_in_a_key_are_refused(key: str) -> None:
    # A Roman numeral (Nl), a superscript and a fraction (No) are not decimal digits; fillers and joiners are unseen.
    assert refusal(lambda: normalise_key(key)) == "key_character"


def test_key_length_is_one_to_sixty_four() -> None:
    assert refusal(lambda: normalise_key("")) == "empty"
    assert refusal(lambda: normalise_key("k" * 65)) == "too_long"
    assert normalise_key("e\u0301" * 64) == "\xe9" * 64
