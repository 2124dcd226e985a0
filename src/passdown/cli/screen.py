"""What a person sees: aligned lines, a word and a symbol for every status, no control character of anybody's text.

Data goes to stdout, words to stderr. Colour only where stdout is a terminal, ``NO_COLOR`` is unset and ``TERM`` is not
``dumb``; a status never depends on it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

from passdown.kernel.symbols import STATUS_SYMBOLS

SYMBOLS: Final[Mapping[str, str]] = {
    **STATUS_SYMBOLS,
    "accepted": "✓",
    "declined": "✗",
    "aligned": "=",
    "ahead": "+",
    "behind": "-",
    "diverged": "!",
}
WORDS: Final[Mapping[str, str]] = {"no_handoff": "no handoff"}
_COLOURS: Final[Mapping[str, str]] = {"blocked": "31", "diverged": "31", "complete": "32", "continuable": "36"}
_FALLBACK_WIDTH: Final = 100
_MIN_ROOM: Final = 20
_PIECES: Final = re.compile(" *[^ ]+| +")
CANCELLED: Final = 130
"""Exit code of a command that the person called off, by an answer or by an interrupt."""


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
    """``text`` cut into lines that fit beside ``indent`` columns: at spaces where there are some, else anywhere.

    A newline of the text begins a line, and spaces stay unless the cut falls on them.
    """
    from passdown.kernel.escape import display_width, terminal

    room = max(_MIN_ROOM, (columns or width()) - indent)
    lines: list[str] = []
    for paragraph in terminal(text, keep_newlines=True).split("\n"):
        line = ""
        for piece in _PIECES.findall(paragraph):
            if display_width(line + piece) <= room:
                line += piece
                continue
            *full, rest = _broken(piece.strip(" ") if line else piece, room)
            lines += [line, *full] if line else full
            line = rest
        lines.append(line)
    return lines


def _broken(piece: str, room: int) -> list[str]:
    """One piece in lines of at most ``room`` columns, cut between whole characters."""
    from passdown.kernel.columns import clusters

    lines, line, used = [], "", 0
    for cluster, columns in clusters(piece):
        if line and used + columns > room:
            lines.append(line)
            line, used = "", 0
        line += cluster
        used += columns
    return [*lines, line]


def flowing(text: str, indent: int) -> list[str]:
    """``text`` as lines behind ``indent`` spaces, further lines two deeper."""
    first, *further = wrapped(text, indent + 2)
    return [" " * indent + first, *(" " * (indent + 2) + line for line in further)]


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
    """Aligned columns, one string for each row; the last column takes what is left and is shortened with an ellipsis.

    Where less than a few words are left for it, it stands below the others instead, and nothing is aligned.
    """
    from passdown.kernel.escape import display_width, fit

    if not rows:
        return []
    widths = [max(display_width(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    room = width() - indent - sum(column + 2 for column in widths)
    if room < _MIN_ROOM and max(display_width(row[-1]) for row in rows) > room:
        return [_stacked(row, indent) for row in rows]
    return [
        (" " * indent + "".join(pad(cell, column) + "  " for cell, column in zip(row, widths, strict=False)))
        + fit(row[-1], room)
        for row in rows
    ]


def _stacked(row: Sequence[str], indent: int) -> str:
    from passdown.kernel.escape import fit

    lines = flowing("  ".join(cell for cell in row[:-1] if cell), indent)
    deeper = indent + 4
    return "\n".join([*lines, " " * deeper + fit(row[-1], width() - deeper)])


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


def is_interactive() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> str | None:
    """One line from the person, without its edge spaces; None where the input ended."""
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = sys.stdin.readline()
    return None if answer == "" else answer.strip()


def confirm(question: str, *, assume_yes: bool) -> bool:
    """Ask on a terminal; without one, or with ``--yes``, what was announced is done."""
    if assume_yes or not is_interactive():
        return True
    # An empty line takes the default; the end of input is nobody's consent.
    answer = ask(f"{question} [Y/n] ")
    return answer is not None and answer.lower() in ("", "y", "yes")
