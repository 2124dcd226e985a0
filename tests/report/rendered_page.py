"""Reads a rendered Markdown page back with a Markdown parser, a YAML parser and an HTML parser, none of them ours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

# Raw HTML is left on: what the page does not escape shows up as tags.
_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
CELL = "\0"
"""Stands in a page's text before each table cell; no text can hold it, because it would be shown as an escape."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text: list[str] = []
        self.inside_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside_code = self.inside_code or tag == "code"
        if tag == "td":
            self.text.append(CELL)
        if tag != "br":
            self.tags.append(f"<{tag} {sorted(attrs)}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.inside_code = self.inside_code and tag != "code"
        self.tags.append(f"</{tag}>")

    def handle_comment(self, data: str) -> None:
        self.tags.append("<!-->")

    def handle_decl(self, decl: str) -> None:
        self.tags.append("<!>")

    def handle_pi(self, data: str) -> None:
        self.tags.append("<?>")

    def handle_data(self, data: str) -> None:
        if not self.inside_code:
            self.text.append(data)


@dataclass
class RenderedPage:
    """``tags``: every tag but line breaks, in order. ``text``: what a reader sees outside the fence, digests masked."""

    data: bytes
    front: dict[str, Any] = field(init=False)
    tokens: list[Token] = field(init=False)
    html: str = field(init=False)
    tags: list[str] = field(init=False)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        opening, head, body = self.data.decode().split("---\n", 2)
        assert opening == ""
        self.front = yaml.safe_load(head)
        self.tokens = _PARSER.parse(body)
        self.html = _PARSER.renderer.render(self.tokens, _PARSER.options, {})
        reader = _Reader()
        reader.feed(self.html)
        reader.close()
        self.tags = reader.tags
        self.text = _DIGEST.sub("DIGEST", "".join(reader.text))

    @property
    def headings(self) -> list[tuple[str, str]]:
        """Level and text of every heading, in order."""
        found = []
        for index, token in enumerate(self.tokens):
            if token.type == "heading_open":
                inline = self.tokens[index + 1].children or []
                found.append((token.tag, "".join(child.content for child in inline)))
        return found

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table, row by row, as text."""
        rows: list[list[str]] = []
        for index, token in enumerate(self.tokens):
            if token.type == "tr_open":
                rows.append([])
            if token.type in ("td_open", "th_open"):
                inline = self.tokens[index + 1].children or []
                rows[-1].append("".join(child.content for child in inline))
        return rows

    def section(self, heading: str) -> str:
        """The HTML between a heading of level two and the next one."""
        _, _, rest = self.html.partition(f"<h2>{heading}</h2>\n")
        return rest.partition("<h2>")[0]

    @property
    def envelope(self) -> Any:
        """The value in the only code fence of the page."""
        fences = [token for token in self.tokens if token.type == "fence"]
        assert [fence.info for fence in fences] == ["json"]
        assert fences[0].content.isascii()
        assert fences[0].content.count("\n") == 1
        return json.loads(fences[0].content)
