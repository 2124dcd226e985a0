"""Hostile text, arbitrary text, and a reader of HTML, for the tests of the escaper."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

DATA = Path(__file__).parents[1] / "data" / "hostile_text.json"
OWN = {
    "nested-fences": "````\n```\n~~~~\n> ```\n````\n\ttab code",
    "reference-link": "[shown][a] [a][] [a] ![a] [^1]",
    "autolinks": "www.example.com http://example.com mail@example.com <m@example.com> ftp://x.y example.org",
    "definition-over-lines": "[b]:\n<https://example.com>\n'title\nover lines'\n\n[b]",
    "entities": "&amp; &AMP &#60;b&#62; &#x1F600; &copy &nbsp;",
    "emphasis-runs": "***a** b* __c_ _d__ **\u6ce8\u610f\uff01**\u4e2d *\xa0x\xa0*",
    "table-rows": "a | b\n--|--\n`x|y` \\| z\n\\\\| w",
    "tasks": "[ ] todo\n[x] done\n- [X] more",
    "setext": "a\n-\nb\n=",
    "quote-lazy": "> a\nb\n> - c\n1986. a year\n+ d",
    "ends-in-backslash": "a\\",
    "only-backslashes": "\\\\\\",
    "blank-lines": "\n\na\n\n \n\t\nb\n\n",
    "edge-spaces": "  a  \n\tb\t\n\xa0c\u3000",
    "heading-marks": "# a #\n####### b ##",
    "html-kinds": "<?php ?> <![CDATA[x]]> <!DOCTYPE x> </div> <a\nhref='x'>",
    "math": "$$\na\n$$ \\[x\\] `$x$`",
    "look-alike": "\\u{202e} and \u202e",
    "front-matter-end": "...\n---\n%YAML 1.2",
    "osc-link": "\x1b]8;;https://example.com\x1b\\click\x1b]8;;\x1b\\ \x9d0;t\x9c \x90q\x9c",
    "cursor": "\x1b[2J\x1b[1;1H\x1b[?1049h\x1b(0qqq\x0e\x0f\x1bc\x05",
    "mark-first": "\u0301a",
    "del": "a\x7fb",
    "empty": "",
}
HOSTILE = {case["id"]: case["text"] for case in json.loads(DATA.read_text("utf-8"))["cases"]} | OWN

DANGEROUS = st.text(
    st.sampled_from(
        "\\`*_{}[]()#+-.!|<>&\"'$~^=:/@% \t\n\r0a1wx\u6f22\u0301\u0645\u200c\u200d\u202e\x1b\x9b\x85\u2028\xa0\ufe0f"
        "\U0001f468\U0001f467\U0001f1e9\U0001f3fd\U000e0067\ud800\ufffe"
    ),
    max_size=30,
)
ANY = st.text(st.characters(), max_size=40)
TEXTS = DANGEROUS | ANY
settings.register_profile("escape", deadline=None, max_examples=150)
PROFILE = settings.get_profile("escape")

every_hostile_text = pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HOSTILE.items()])


# The dangerous settings: raw HTML, every kind of link; and the extensions that a hosting site adds.
RENDERER = MarkdownIt("commonmark", {"html": True, "typographer": True}).enable(
    ["table", "strikethrough", "replacements", "smartquotes"]
)
RENDERER.validateLink = lambda url: True  # type: ignore[method-assign]


class Page(HTMLParser):
    """What a browser would build: tags in order but for line breaks, which are counted, and all text."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, str, tuple[tuple[str, str | None], ...]]] = []
        self.breaks = 0
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.breaks += 1
        else:
            self.tags.append(("start", tag, tuple(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(("end", tag, ()))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", data, ()))

    def handle_decl(self, decl: str) -> None:
        self.tags.append(("declaration", decl, ()))

    def handle_pi(self, data: str) -> None:
        self.tags.append(("instruction", data, ()))

    def unknown_decl(self, data: str) -> None:
        self.tags.append(("declaration", data, ()))
