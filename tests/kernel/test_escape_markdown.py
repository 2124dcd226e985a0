"""Escaped text in Markdown against a real renderer.

What a reader shows is compared with the shown form of the text; what the text did to its surroundings is compared with
the same document around a harmless word.
"""

from __future__ import annotations

from escape_support import HOSTILE, PROFILE, RENDERER, TEXTS, Page, every_hostile_text
from hypothesis import given, settings
from hypothesis import strategies as st

from passdown.kernel.escape import markdown_block, markdown_inline, visible

DEFINITIONS = '\n\n[a]: https://example.com/definition "t"\n[^1]: https://example.com/note\n[b]: /b\n'
START, END = "startmark", "endmark"

BLOCK_PLACES = {
    "paragraph": ("", 0, ""),
    "paragraph-between": ("before\n\n", 0, "\n\nafter"),
    "list-item": ("- ", 2, "\n- next"),
    "after-a-label": ("- **Label:** ", 2, " (`src_1`)\n- next"),
    "nested-item": ("- outer\n  - ", 4, "\n  - next\n- last"),
    "ordered-item": ("1. ", 3, "\n2. next"),
    "wrong-indent": ("- ", 0, "\n- next"),
    "quotation": ("> ", 0, "\n\nafter"),
}
INLINE_PLACES = {
    "heading": ("## ", "\n\nafter"),
    "heading-with-key": ("### ", " (PC-142)\n\nafter"),
    "cell": ("| a | b |\n| --- | --- |\n| x | ", " |\n| next | row |"),
    "first-cell": ("| a | b |\n| --- | --- |\n| ", " | x |\n| next | row |"),
    "header-cell": ("| ", " | b |\n| --- | --- |\n| x | y |"),
    "emphasis": ("**", "** after"),
    "list-item": ("- ", "\n- next"),
}


def rendered(before: str, escaped: str, after: str) -> Page:
    return Page(RENDERER.render(before + escaped + after + DEFINITIONS))


def shown_between(before: str, escaped: str, after: str) -> str:
    """What the reader shows in the place of the text: it stands between two marks, so that edges are seen."""
    page = rendered(before + START, escaped, END + after)
    return page.text.partition(START)[2].rpartition(END)[0]


def lines_as_shown(text: str) -> str:
    """The documented exception: an empty line of a block is shown as one space."""
    shown = visible(text)
    return "\n".join(line or " " for line in shown.split("\n")) if shown else ""


def check_block(text: str, place: str) -> None:
    before, indent, after = BLOCK_PLACES[place]
    escaped = markdown_block(text, indent=indent)
    assert shown_between(before, escaped, after) == lines_as_shown(text)
    page, harmless = rendered(before, escaped, after), rendered(before, "word", after)
    if escaped:
        assert page.tags == harmless.tags
        assert page.text == harmless.text.replace("word", lines_as_shown(text))
    assert page.breaks == visible(text).count("\n")


def check_inline(text: str, place: str) -> None:
    before, after = INLINE_PLACES[place]
    escaped = markdown_inline(text)
    expected = visible(text).replace("\n", " ")
    assert "\n" not in escaped
    assert shown_between(before, escaped, after) == expected
    # Emphasis depends on the character inside its delimiters, so there the marks stay in.
    marks = (START, END) if place == "emphasis" else ("", "")
    page = rendered(before, marks[0] + escaped + marks[1], after)
    harmless = rendered(before, "word", after)
    if escaped:
        assert page.tags == harmless.tags
        assert page.text == harmless.text.replace("word", marks[0] + expected + marks[1])
    assert page.breaks == 0


@every_hostile_text
def test_hostile_text_in_a_block_is_text_and_nothing_else(text: str) -> None:
    for place in BLOCK_PLACES:
        check_block(text, place)


@every_hostile_text
def test_hostile_text_in_a_line_is_text_and_nothing_else(text: str) -> None:
    for place in INLINE_PLACES:
        check_inline(text, place)


@given(TEXTS, st.sampled_from(sorted(BLOCK_PLACES)))
@settings(PROFILE, max_examples=600)
def test_any_text_in_a_block_is_text_and_nothing_else(text: str, place: str) -> None:
    check_block(text, place)


@given(TEXTS, st.sampled_from(sorted(INLINE_PLACES)))
@settings(PROFILE, max_examples=600)
def test_any_text_in_a_line_is_text_and_nothing_else(text: str, place: str) -> None:
    check_inline(text, place)


def test_every_ascii_punctuation_character_has_a_backslash_before_it() -> None:
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    assert markdown_inline(marks) == "".join("\\" + mark for mark in marks)
    assert markdown_block("\u202e") == "\\\\u\\{202e\\}"


def test_edge_spaces_are_entities_and_newlines_are_hard_breaks_inside_the_item() -> None:
    assert markdown_block("  a b \n\n\tc", indent=2) == "&#32;&#32;a b&#32;\\\n  &#32;\\\n  &#9;c"
    assert markdown_block(" \n") == "&#32;\\\n&#32;"
    assert markdown_inline(" a\nb\n") == "&#32;a b&#32;"
    assert markdown_block("") == markdown_inline("") == ""


def test_the_dangerous_renderer_really_renders_what_is_not_escaped() -> None:
    # Keeps the checks above honest: without the escaper they would fail.
    for name in ("html-script", "md-link", "md-heading", "md-emphasis", "reference-link", "md-autolink", "md-image"):
        raw, harmless = rendered("", HOSTILE[name], ""), rendered("", "word", "")
        assert raw.tags != harmless.tags, name
