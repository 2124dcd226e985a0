"""What a person sees: aligned lines, a word and a symbol for every status, no control character of anybody's text.

Data goes to stdout, words to stderr. Colour only where stdout is a terminal, ``NO_COLOR`` is unset and ``TERM`` is not
``dumb``; a status never depends on it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

from passdown.kernel.symbols import STATUS_SYMBOLS

SYMBOLS: Final[Mapping[str, str]] = {
    **STATUS_SYMBOLS,
    "aligned": "=",
    "ahead": "+",
    "behind": "-",
    "diverged": "!",
}
WORDS: Final[Mapping[str, str]] = {"no_handoff": "no handoff"}
_COLOURS: Final[Mapping[str, str]] = {"blocked": "31", "diverged": "31", "complete": "32", "continuable": "36"}
_FALLBACK_WIDTH: Final = 100


def status(word: str) -> str:
    """Symbol and word of a status, the same width whatever the font does with colour."""
    return f"{SYMBOLS.get(word, '·')} {WORDS.get(word, word)}"


def coloured(text: str, word: str, stream: TextIO | None = None) -> str:
    """``text`` in the colour of status ``word``, where colour is wanted at all."""
    stream = stream or sys.stdout
    colour = _COLOURS.get(word)
    if colour is None or not stream.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def width() -> int:
    """Columns to write in: the terminal's, else 100; never under 40."""
    return max(40, shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns)


def plain(text: str) -> str:
    """Anybody's text as one harmless line."""
    from passdown.kernel.escape import terminal

    return terminal(text)


def short(text: str, columns: int) -> str:
    """Anybody's text within a column, with an ellipsis where it does not fit."""
    from passdown.kernel.escape import fit, terminal

    return fit(terminal(text), columns)


def wrapped(text: str, indent: int, columns: int | None = None) -> list[str]:
    """``text`` cut into lines of display width, at spaces where there are some; further lines are indented."""
    from passdown.kernel.escape import display_width, terminal

    room = max(20, (columns or width()) - indent)
    lines: list[str] = []
    for paragraph in terminal(text, keep_newlines=True).split("\n"):
        line = ""
        for word in paragraph.split(" "):
            candidate = f"{line} {word}" if line else word
            if display_width(candidate) <= room:
                line = candidate
                continue
            if line:
                lines.append(line)
            line = word
            while display_width(line) > room:
                head = _prefix(line, room)
                lines.append(head)
                line = line[len(head) :]
        lines.append(line)
    return lines or [""]


def _prefix(text: str, room: int) -> str:
    from passdown.kernel.escape import display_width

    end = 1
    while end < len(text) and display_width(text[: end + 1]) <= room:
        end += 1
    return text[:end]


def pad(text: str, columns: int) -> str:
    """``text`` filled with spaces to a display width."""
    from passdown.kernel.escape import display_width

    return text + " " * max(0, columns - display_width(text))


def fields(items: Iterable[tuple[str, str]], indent: int = 2) -> list[str]:
    """Aligned ``label  value`` lines; long values are wrapped under themselves."""
    from passdown.kernel.escape import display_width

    pairs = list(items)
    label_width = max((display_width(label) for label, _ in pairs), default=0) + 2
    out = []
    for label, value in pairs:
        start = indent + label_width
        lines = wrapped(value, start)
        out.append(" " * indent + pad(label, label_width) + lines[0])
        out += [" " * start + line for line in lines[1:]]
    return [line.rstrip() for line in out]


def table(rows: Sequence[Sequence[str]], indent: int = 2) -> list[str]:
    """Aligned columns; the last one takes what is left of the line and is shortened with an ellipsis."""
    from passdown.kernel.escape import display_width, fit

    if not rows:
        return []
    widths = [max(display_width(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    left = indent + sum(column + 2 for column in widths)
    room = max(10, width() - left)
    return [
        (" " * indent + "".join(pad(cell, column) + "  " for cell, column in zip(row, widths, strict=False)))
        + fit(row[-1], room)
        for row in rows
    ]


def say(*lines: str) -> None:
    """Words for the person, on stderr."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def show(lines: Iterable[str]) -> None:
    """Data for the person, on stdout."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def show_json(value: Any) -> None:
    """One JSON document and a newline on stdout, keys in canonical order, in UTF-8 whatever the terminal speaks."""
    from passdown.kernel.canonical import canonical_bytes

    sys.stdout.flush()
    sys.stdout.buffer.write(canonical_bytes(value) + b"\n")


def confirm(question: str, *, assume_yes: bool) -> bool:
    """Ask on a terminal; without one, or with ``--yes``, what was announced is done."""
    if assume_yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    sys.stderr.write(f"{question} [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    # An empty line takes the default; the end of input is nobody's consent.
    return answer != "" and answer.strip().lower() in ("", "y", "yes")
