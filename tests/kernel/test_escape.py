"""The escaper against real readers: an HTML parser, a terminal emulator, a YAML parser; Markdown has its own file."""

from __future__ import annotations

import json
import unicodedata

import pyte
import pytest
import yaml
from escape_support import HOSTILE, PROFILE, RENDERER, TEXTS, Page, every_hostile_text
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes, wcswidth, wcwidth

from passdown.kernel.escape import (
    ascii_json,
    display_width,
    fit,
    html,
    terminal,
    visible,
    yaml_scalar,
)

# --- what is shown ---------------------------------------------------------------------------------------------------

VISIBLE_CONTROLS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"


def test_every_control_format_and_separator_character_is_shown_by_its_number() -> None:
    # Oracle: the general categories. The exceptions have a shape of their own.
    for point in range(0x110000):
        char = chr(point)
        if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            continue
        kept = char in "\t\n" + VISIBLE_CONTROLS
        assert visible(f"a{char}b") == (f"a{char}b" if kept else f"a\\u{{{point:x}}}b")


@pytest.mark.parametrize(
    "char",
    [
        *"\u034f\u115f\u1160\u3164\uffa0\u17b4\ufe00\ufe0f\u180b\ufdd0\uffff\ufff0",
        "\U0001d159",
        "\U000e0100",
        "\U0010fffe",
    ],
)
def test_fillers_selectors_and_noncharacters_are_shown_by_their_number(char: str) -> None:
    assert visible(f"a{char}b") == f"a\\u{{{ord(char):x}}}b"


@pytest.mark.parametrize(
    "name", ["nfd", "hangul", "rtl", "wide", "homoglyph", "astral", "prompt-zh", "surrogate-escape"]
)
def test_ordinary_text_of_any_script_is_left_alone(name: str) -> None:
    assert visible(HOSTILE[name]) == HOSTILE[name]


def test_private_use_and_unassigned_characters_stay() -> None:
    assert visible("\ue000\U000f0000\u0378\U0003fffd") == "\ue000\U000f0000\u0378\U0003fffd"


def test_crlf_is_a_newline_and_a_lone_cr_is_shown() -> None:
    assert visible("a\r\nb\rc\r\r\n\td") == "a\nb\\u{d}c\\u{d}\n\td"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("csi \x9b31m", "csi \\u{9b}31m"),
        ("before\x00after", "before\\u{0}after"),
        ("user \u202etxt.exe\u202c end", "user \\u{202e}txt.exe\\u{202c} end"),
        ("pa\u200bss\u200cw\u200dord\ufeff", "pa\\u{200b}ss\\u{200c}w\\u{200d}ord\\u{feff}"),
        ("a\u2028b\u2029c\x85d", "a\\u{2028}b\\u{2029}c\\u{85}d"),
        ("\ud83d", "\\u{d83d}"),
    ],
)
def test_hidden_characters_of_known_tricks_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\U0001f468\U0001f3fd\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f468\U0001f3fb",
        "1\ufe0f\u20e3 #\ufe0f\u20e3",
        "\u2764\ufe0f \u2764\ufe0e \u26a0\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian
        "\u0647\u200d",  # Arabic, an initial form alone
        "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",  # Devanagari
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
        "\u0d28\u0d4d\u200d",  # Malayalam
        "\u1820\u180b\u1828\u180e\u1820",  # Mongolian
    ],
)
def test_joiners_and_selectors_stay_where_they_are_spelling(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\U0001f469\u200dx", "\U0001f469\\u{200d}x"),
        ("\U0001f469\u200d", "\U0001f469\\u{200d}"),
        ("x\u200d\U0001f469", "x\\u{200d}\U0001f469"),
        ("\u200d\U0001f469", "\\u{200d}\U0001f469"),
        ("\U0001f600\ufe0f\ufe0f\ufe00", "\U0001f600\ufe0f\\u{fe0f}\\u{fe00}"),
        ("\U0001f600\U000e0141", "\U0001f600\\u{e0141}"),
        ("1\ufe0f", "1\\u{fe0f}"),
        ("\u0645\u200c\u200c\u200d", "\u0645\u200c\\u{200c}\\u{200d}"),
        ("\u0661\u200c", "\u0661\\u{200c}"),
        ("\u0645\u200b", "\u0645\\u{200b}"),
        ("\u845b\U000e0100", "\u845b\\u{e0100}"),
        ("\U0001f3f4\U000e0068\U000e0069\U000e007f", "\U0001f3f4\\u{e0068}\\u{e0069}\\u{e007f}"),
        ("\u05d0\u200d\u05d1", "\u05d0\\u{200d}\u05d1"),
        ("\u0e01\u200d\u0e02", "\u0e01\\u{200d}\u0e02"),
    ],
)
def test_joiners_selectors_and_tags_that_carry_hidden_data_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(TEXTS)
@settings(PROFILE)
def test_shown_text_is_shown_unchanged_and_can_be_encoded(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert "\r" not in shown
    assert shown.encode("utf-8").decode("utf-8") == shown


# --- HTML ------------------------------------------------------------------------------------------------------------


def check_html(text: str) -> None:
    page = Page(f"<p title=\"{html(text)}\">{html(text)}</p><p title='{html(text)}'></p>")
    assert page.text == visible(text)
    attribute = (("title", visible(text)),)
    assert page.tags == [("start", "p", attribute), ("end", "p", ()), ("start", "p", attribute), ("end", "p", ())]


@every_hostile_text
def test_hostile_text_in_html_is_character_data(text: str) -> None:
    check_html(text)


@given(TEXTS)
@settings(PROFILE)
def test_any_text_in_html_is_character_data(text: str) -> None:
    check_html(text)


# --- terminal --------------------------------------------------------------------------------------------------------


def check_terminal(text: str) -> None:
    shown = terminal(text)
    assert all(unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") for char in shown)
    screen = pyte.Screen(len(shown) * 2 + 20, 3)
    told: list[str] = []
    screen.write_process_input = told.append
    modes, charsets = set(screen.mode), (screen.g0_charset, screen.g1_charset, screen.charset)
    pyte.Stream(screen).feed(f"label {shown}")
    assert (screen.title, screen.icon_name, screen.margins, told) == ("", "", None, [])
    assert screen.mode == modes
    assert (screen.g0_charset, screen.g1_charset, screen.charset) == charsets
    assert screen.cursor.y == 0
    plain = screen.default_char
    for cell in screen.buffer[0].values():
        assert cell._replace(data=plain.data) == plain
    assert not screen.display[1].strip() + screen.display[2].strip()
    # The emulator stops at characters without width that are no combining marks; the rest it must show as it is.
    if all(wcwidth(char) > 0 for char in shown):
        assert screen.cursor.x == len("label ") + sum(wcwidth(char) for char in shown)
        assert screen.display[0].rstrip() == f"label {shown}".rstrip()


@every_hostile_text
def test_hostile_text_in_a_terminal_shows_itself_and_changes_nothing(text: str) -> None:
    check_terminal(text)


@given(TEXTS)
@settings(PROFILE)
def test_any_text_in_a_terminal_shows_itself_and_changes_nothing(text: str) -> None:
    check_terminal(text)


def test_the_terminal_really_obeys_what_is_not_escaped() -> None:
    # Keeps the check above honest.
    screen = pyte.Screen(80, 3)
    pyte.Stream(screen).feed(HOSTILE["ansi"])
    assert screen.title == "title"
    assert screen.buffer[0][0].fg == "red"


def test_newlines_reach_the_terminal_only_where_asked_for() -> None:
    assert terminal("a\r\nb\tc\rd") == "a b c\\u{d}d"
    assert terminal("a\r\nb\tc\rd", keep_newlines=True) == "a\nb    c\\u{d}d"


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "\u5168\u89d2 \uff21\uff33",
        "re\u0301sume\u0301",
        "\ud55c\uad6d \u1112\u1161\u11ab",
        "\U0001f600!",
        "\u2764\ufe0f\u26a0\ufe0f\u26a0",
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "1\ufe0f\u20e3",
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
        "\u0645\u0631\u062d\u0628\u0627",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    ],
)
def test_width_is_that_of_an_independent_table(text: str) -> None:
    assert display_width(text) == wcswidth(text)


def test_width_of_single_characters_is_that_of_an_independent_table() -> None:
    # Blocks whose widths no Unicode version changed: Latin to Hebrew, kana, ideographs, Hangul, forms, faces.
    for first, last in ((0x20, 0x7E), (0xA1, 0xAC), (0xAE, 0x5FF), (0x3041, 0x3096), (0x4E00, 0x4FFF)):
        for point in range(first, last + 1):
            char = chr(point)
            if point != 0x34F and unicodedata.category(char) != "Cn":
                assert display_width(char) == wcwidth(char), hex(point)
    for first, last in ((0xAC00, 0xAC50), (0xFF01, 0xFF60), (0xFF61, 0xFF9F), (0x1F600, 0x1F64F), (0x20000, 0x20050)):
        assert all(display_width(chr(point)) == wcwidth(chr(point)) for point in range(first, last + 1))


def test_hidden_characters_count_as_what_is_shown_for_them() -> None:
    assert display_width("a\u202e\n") == len("a\\u{202e} ")


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd\u2026"),
        ("abcdef", 1, "\u2026"),
        ("abcdef", 0, ""),
        ("abcdef", -3, ""),
        ("", 0, ""),
        ("ab cdef", 4, "ab\u2026"),
        ("\u5168\u89d2\u6587", 6, "\u5168\u89d2\u6587"),
        ("\u5168\u89d2\u6587", 5, "\u5168\u89d2\u2026"),
        ("\u5168\u89d2\u6587", 4, "\u5168\u2026"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301\u2026"),
        ("\U0001f469\u200d\U0001f467xyz", 3, "\U0001f469\u200d\U0001f467\u2026"),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 3, "\U0001f1e9\U0001f1ea\u2026"),
        ("a\nb", 3, "a b"),
    ],
)
def test_text_is_cut_between_whole_characters(text: str, width: int, expected: str) -> None:
    assert fit(text, width) == expected


def test_a_padded_column_has_exactly_its_width() -> None:
    assert fit("ab", 4, pad=True) == "ab  "
    assert fit("\u5168\u89d2\u6587", 4, pad=True) == "\u5168\u2026 "
    assert fit("ab", -1, pad=True) == ""


@given(TEXTS, st.integers(-2, 30))
@settings(PROFILE)
def test_fitted_text_never_exceeds_its_width_and_begins_as_the_text_does(text: str, width: int) -> None:
    cut, whole = fit(text, width), terminal(text)
    assert display_width(cut) <= max(width, 0)
    assert cut == whole or whole.startswith(cut.removesuffix("\u2026"))
    assert display_width(fit(text, width, pad=True)) == max(width, 0)


@given(st.lists(st.sampled_from(["a", "\u5168", "e\u0301", "\U0001f44d\U0001f3fd", "1\ufe0f\u20e3", "\ud55c", " "])))
@settings(PROFILE)
def test_a_cut_falls_on_a_boundary_of_an_independent_segmentation(parts: list[str]) -> None:
    text = "".join(parts)
    boundaries = {""}
    for grapheme in iter_graphemes(text):
        boundaries.add(max(boundaries, key=len) + grapheme)
    for width in range(1, 12):
        cut = fit(text, width)
        assert cut == text or any(boundary.rstrip() == cut.removesuffix("\u2026") for boundary in boundaries)


# --- JSON in a fence, YAML in front matter ---------------------------------------------------------------------------


def check_fence(text: str) -> None:
    value = {"member": text, f"key {text}": [1, None, True]}
    line = ascii_json(value)
    assert json.loads(line) == value
    assert line.isascii()
    assert line.isprintable()
    assert not set(line) & set("<>&`")
    for opening, closing in (("```json", "```"), ("~~~~", "~~~~")):
        page = Page(RENDERER.render(f"{opening}\n{line}\n{closing}\n\n- after"))
        assert [tag for kind, tag, _ in page.tags if kind == "start"] == ["pre", "code", "ul", "li"]
        assert page.text.split("\n")[0] == line


@every_hostile_text
def test_hostile_text_in_a_fence_stays_inside_one_ascii_line(text: str) -> None:
    check_fence(text)


@given(TEXTS)
@settings(PROFILE)
def test_any_text_in_a_fence_stays_inside_one_ascii_line(text: str) -> None:
    check_fence(text)


def test_equal_values_give_equal_lines_and_no_value_outside_json_passes() -> None:
    assert ascii_json({"b": 1, "a": "\xe9"}) == ascii_json({"a": "\xe9", "b": 1}) == '{"a":"\\u00e9","b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        ascii_json(float("nan"))
    with pytest.raises(TypeError):
        ascii_json({"a": object()})


def check_front_matter(value: str) -> None:
    scalar = yaml_scalar(value)
    document = f"---\nschema: x\nproject_key: {scalar}\ntrust: untrusted_history\n---\n"
    assert list(yaml.safe_load_all(document)) == [
        {"schema": "x", "project_key": value, "trust": "untrusted_history"},
        None,
    ]
    assert "\n" not in scalar
    assert visible(scalar) == scalar
    assert scalar == value or scalar.startswith('"')


@every_hostile_text
def test_hostile_text_in_front_matter_is_one_string(text: str) -> None:
    check_front_matter(text)


@given(TEXTS)
@settings(PROFILE)
def test_any_text_in_front_matter_is_one_string(value: str) -> None:
    check_front_matter(value)


@pytest.mark.parametrize(
    "word", ["powercontext", "zh-CN", "prj_01K", "powercontext.handoff-report.v1", "A", "trust.", "note"]
)
def test_a_plain_word_stands_without_quotes(word: str) -> None:
    assert yaml_scalar(word) == word
    assert yaml.safe_load(yaml_scalar(word)) == word


@pytest.mark.parametrize(
    "word",
    [
        *("y", "N", "yes", "No", "ON", "off", "True", "false", "NULL", "~", "", "1", "1.5", "0x1F", "1e3", ".inf"),
        *(
            "2026-01-01",
            "sha256:ab",
            "a b",
            " a",
            "a ",
            "a\n",
            "-",
            "---",
            "<<",
            "=",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "a#b",
        ),
    ],
)
def test_other_strings_are_json_strings(word: str) -> None:
    assert json.loads(yaml_scalar(word)) == word
    assert yaml_scalar(word).startswith('"')
    assert yaml.safe_load(yaml_scalar(word)) == word


def test_visible_characters_beyond_the_first_plane_are_json_and_yaml_alike() -> None:
    # A pair of surrogate escapes would be two broken characters in YAML.
    word = "\u652f\u4ed8 \U0001f680 \u202e"
    assert yaml_scalar(word) == '"\u652f\u4ed8 \U0001f680 \\u202e"'
    assert json.loads(yaml_scalar(word)) == yaml.safe_load(yaml_scalar(word)) == word
