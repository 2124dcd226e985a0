"""The one escaper: what foreign text looks like in Markdown, in a terminal, in HTML, in a fence, in front matter.

Every form begins with :func:`visible`, which makes hidden characters readable as ``\\u{...}`` and changes nothing else
but CRLF to LF. It is idempotent. A reader who types the six or more characters of such an escape sees them unchanged:
the shown form is for people, and whoever needs the exact text reads the canonical JSON.

Invariants, for every string without exception, lone surrogates included:

- Markdown: the text is only text. No construct of CommonMark or of the GitHub extensions (links, HTML, tables, tasks,
  footnotes, strikethrough, math) can begin, end or be continued by it, and none around it can be ended by it.
- Terminal: only printable characters and, if asked for, newlines. No control sequence can pass.
- HTML: the text is only character data, in an element or in a quoted attribute.

Public: :func:`visible`, :func:`markdown_block`, :func:`markdown_inline`, :func:`terminal`, :func:`html`,
:func:`ascii_json`, :func:`yaml_scalar`, and for aligned terminal output :func:`display_width` and :func:`fit`.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable
from typing import Any, Final

from passdown.kernel.characters import HIDDEN, WHITE_SPACE, works_here
from passdown.kernel.columns import clusters

TAB_COLUMNS: Final = 4
ELLIPSIS: Final = "\u2026"

_PUNCTUATION: Final = str.maketrans({mark: f"\\{mark}" for mark in string.punctuation})
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
# None of these is JSON syntax, so in JSON text they stand only inside strings, where an escape means the same.
_FENCE: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&`"})

_PLAIN_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_NOT_A_WORD: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def visible(text: str) -> str:
    """``text`` with CRLF as LF and each hidden character as ``\\u{hex}`` (lower case, no leading zeros).

    Hidden are: control characters except tab and newline (a lone CR included), U+2028 and U+2029, directional
    controls, zero-width and filler characters where they are not part of an emoji or of a joining script, tag
    characters, lone surrogates and noncharacters. All else stays, private-use characters too.
    """
    return _show_hidden(text.replace("\r\n", "\n"), lambda char: f"\\u{{{ord(char):x}}}")


def markdown_block(text: str, *, indent: int = 0) -> str:
    """``text`` for a paragraph, a quotation or a list item; each newline is a hard break.

    The caller writes the marker (``- ``) and gives as ``indent`` the columns that later lines need to stay inside it.
    White space at the edges of a line becomes numeric entities, and an empty line becomes one such space, so that
    nothing is trimmed, taken for indented code, or ends the block.
    """
    lines = visible(text).split("\n")
    if lines == [""]:
        return ""
    return ("\\\n" + " " * indent).join(_markdown_line(line) or "&#32;" for line in lines)


def markdown_inline(text: str) -> str:
    """``text`` for a table cell, a heading, or a place within a line; a newline becomes a space.

    In a table the caller keeps a space between the text and the bars of its cell.
    """
    return _markdown_line(visible(text).replace("\n", " "))


def terminal(text: str, *, keep_newlines: bool = False) -> str:
    """``text`` for a terminal: printable characters only.

    One line by default: a newline or a tab becomes one space. With ``keep_newlines`` newlines stay and a tab becomes
    four spaces.
    """
    shown = visible(text)
    if keep_newlines:
        return shown.replace("\t", " " * TAB_COLUMNS)
    return shown.replace("\n", " ").replace("\t", " ")


def display_width(text: str) -> int:
    """The columns that ``terminal(text)`` takes: East Asian wide characters and emoji 2, combining marks 0."""
    return sum(width for _, width in clusters(terminal(text)))


def fit(text: str, width: int, *, pad: bool = False) -> str:
    """``terminal(text)`` in at most ``width`` columns, cut between whole characters with an ellipsis at the end.

    With ``pad`` the answer is filled with spaces to exactly ``width`` columns (at least 0).
    """
    shown = terminal(text)
    if display_width(shown) > width:
        shown = _cut(shown, width - 1).rstrip(WHITE_SPACE) + ELLIPSIS if width > 0 else ""
    return shown + " " * (width - display_width(shown)) if pad else shown


def html(text: str) -> str:
    """``text`` as HTML character data, for elements and quoted attributes; newlines are left to the style sheet."""
    return visible(text).translate(_HTML)


def ascii_json(value: Any) -> str:
    """``value`` as one line of JSON in ASCII with sorted keys, safe in every code fence and in HTML.

    Raises ``ValueError`` or ``TypeError`` for a value that is not JSON, numbers that are not finite included.
    """
    line = json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return line.translate(_FENCE)


def yaml_scalar(value: str) -> str:
    """``value`` as a string in YAML 1.1 and 1.2 front matter: a plain word, else a JSON string.

    Visible characters of any script stand for themselves, because YAML does not join the two halves of JSON's
    surrogate pairs. A hidden character beyond U+FFFF is written ``\\U0000hhhh``, which is YAML only.
    """
    if _PLAIN_WORD.fullmatch(value) and value.lower() not in _NOT_A_WORD:
        return value
    return _show_hidden(json.dumps(value, ensure_ascii=False), _yaml_escape)


def _show_hidden(text: str, show: Callable[[str], str]) -> str:
    return HIDDEN.sub(
        # More than one character is a flag, whose hidden part is its spelling.
        lambda found: found[0] if len(found[0]) > 1 or works_here(text, found.start()) else show(found[0]),
        text,
    )


def _cut(shown: str, width: int) -> str:
    """The longest beginning of whole clusters that takes at most ``width`` columns."""
    kept: list[str] = []
    for cluster, columns in clusters(shown):
        if columns > width:
            break
        width -= columns
        kept.append(cluster)
    return "".join(kept)


def _yaml_escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if char <= "\uffff" else f"\\U{ord(char):08x}"


def _markdown_line(line: str) -> str:
    """One shown line with its punctuation escaped and the white space at its edges as entities."""
    body = line.lstrip(WHITE_SPACE)
    start = line[: len(line) - len(body)]
    middle = body.rstrip(WHITE_SPACE)
    end = body[len(middle) :]
    return _entities(start) + middle.translate(_PUNCTUATION) + _entities(end)


def _entities(spaces: str) -> str:
    return "".join(f"&#{ord(space)};" for space in spaces)
