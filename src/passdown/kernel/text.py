"""What text and identifiers are once they are inside: their one form, and what is refused at the door.

Free text keeps every Unicode scalar value; surfaces escape it (:mod:`passdown.kernel.escape`). Identifiers and keys
are compared byte for byte by every store, so nothing is trimmed or folded: what would need it is refused.

Invariants: what these functions return is NFC and free of lone surrogates, gives itself when normalised again, and has
at most ``max_chars`` code points. Time is linear in the input but for sorting, whatever marks it piles up.

Public: :func:`normalise_text`, :func:`normalise_identifier`, :func:`normalise_key`, :func:`nfc`, :class:`TextRefused`.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import Final

from passdown.kernel.characters import WHITE_SPACE, is_hidden
from passdown.kernel.limits import KEY

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Canonical composition makes at most this many code points into one.
_MOST_COMPOSED: Final = 4
_KEY_PUNCTUATION: Final = frozenset("._-")


class TextRefused(ValueError):
    """Text that has no place here. ``rule`` says why; ``limit`` is the number of code points, for ``too_long``.

    Rules: ``empty``, ``too_long``, ``surrogate``, ``edge_space``, ``control_character``, ``key_character``.
    """

    def __init__(self, rule: str, *, limit: int | None = None) -> None:
        self.rule = rule
        self.limit = limit
        super().__init__(f"text refused: {rule}" if limit is None else f"text refused: {rule} (limit {limit})")


LINE_END: Final = re.compile(r"\r+\n")
"""Several carriage returns before a line feed go at once: else the same rule, applied again, gave another text."""


def normalise_text(value: str, *, max_chars: int, required: bool = True) -> str:
    """Free text in NFC with CRLF as LF; a lone CR is data and stays, but for one that would make a CRLF of an LF.

    Refuses lone surrogates (``surrogate``), more than ``max_chars`` code points (``too_long``) and, where text is
    ``required``, text that is empty or white space only (``empty``).
    """
    text = _bounded_nfc(LINE_END.sub("\n", value), max_chars)
    if required and not text.strip(WHITE_SPACE):
        raise TextRefused("empty")
    return text


def normalise_identifier(value: str, *, max_chars: int) -> str:
    """An opaque identifier in NFC, 1 to ``max_chars`` code points.

    Refuses white space at its edges (``edge_space``) and, anywhere, control characters and line or paragraph
    separators (``control_character``), besides what :func:`normalise_text` refuses. Other hidden characters stay:
    they make another identifier, and surfaces show them.
    """
    text = _bounded_nfc(value, max_chars)
    if not text:
        raise TextRefused("empty")
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in text):
        raise TextRefused("control_character")
    if text != text.strip(WHITE_SPACE):
        raise TextRefused("edge_space")
    return text


def normalise_key(value: str) -> str:
    """The key of a project or workstream: 1 to 64 letters, decimal digits, ``.``, ``_`` or ``-``, in NFC.

    Letters are those of any script, upper and lower case being different, with the marks that NFC leaves on them. A
    key that begins with a mark, or has a character that nobody sees, is refused (``key_character``): it could not be
    told from another one.
    """
    text = _bounded_nfc(value, KEY)
    if not text:
        raise TextRefused("empty")
    if unicodedata.category(text[0])[0] == "M" or not all(map(_is_key_character, text)):
        raise TextRefused("key_character")
    return text


def nfc(value: str) -> str:
    """``value`` in Unicode normalisation form C.

    The same as ``unicodedata.normalize``, which takes quadratic time over a long run of combining marks that are out
    of order: twelve megabytes of them would occupy a server for hours.
    """
    if unicodedata.is_normalized("NFC", value):
        return value
    return unicodedata.normalize("NFC", "".join(_ordered_runs(value)))


def _ordered_runs(value: str) -> list[str]:
    """``value`` with each run of combining marks decomposed and in canonical order, which sorting gives quickly."""
    pieces: list[str] = []
    for is_run, group in groupby(value, _is_combining):
        if is_run:
            parts = (part for mark in group for part in unicodedata.normalize("NFD", mark))
            pieces.extend(sorted(parts, key=unicodedata.combining))
        else:
            pieces.extend(group)
    return pieces


def _is_combining(char: str) -> bool:
    """Whether every part of the character is ordered by its class: three Tibetan vowels are so only in parts."""
    return unicodedata.combining(char) != 0 or char in "\u0f73\u0f75\u0f81"


def _bounded_nfc(value: str, max_chars: int) -> str:
    # Far too long text is refused before any work is spent on it; it cannot compose to less than a quarter.
    if len(value) > _MOST_COMPOSED * max_chars:
        raise TextRefused("too_long", limit=max_chars)
    if _SURROGATE.search(value):
        raise TextRefused("surrogate")
    text = nfc(value)
    if len(text) > max_chars:
        raise TextRefused("too_long", limit=max_chars)
    return text


def _is_key_character(char: str) -> bool:
    if char in _KEY_PUNCTUATION:
        return True
    category = unicodedata.category(char)
    return (category[0] in "LM" or category == "Nd") and not is_hidden(char)
