"""How many terminal columns shown text takes, cluster by cluster.

A *cluster* is what a reader takes for one character: a base with its marks, a joined emoji, a flag, a syllable of
Hangul letters. Text is cut only between clusters. The measure is what most terminals use: East Asian wide and
fullwidth characters and emoji two columns, nonspacing marks and format characters none, all else one. It takes text as
:func:`passdown.kernel.escape.terminal` gives it, without control characters.

Public: :func:`clusters`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from passdown.kernel.characters import EMOJI_STYLE, KEYCAP_BASES, ZWJ, is_emoji, is_hidden

WIDE: Final = 2


def clusters(shown: str) -> Iterator[tuple[str, int]]:
    """Split ``shown`` into ``(cluster, columns)``; joined in order the clusters are the text."""
    cluster, columns = "", 0
    for char in shown:
        if cluster and _continues(cluster, char):
            columns = _grown(cluster, columns, char)
            cluster += char
            continue
        if cluster:
            yield cluster, columns
        cluster, columns = char, _width(char)
    if cluster:
        yield cluster, columns


def _continues(cluster: str, char: str) -> bool:
    if unicodedata.category(char)[0] == "M" or is_hidden(char) or _is_trailing_jamo(char):
        return True
    if cluster[-1] == ZWJ:
        return is_emoji(char) and is_emoji(cluster[0])
    if _is_modifier(char):
        return is_emoji(cluster[0])
    # Regional letters pair up from the left: the third one begins the next flag.
    return _is_regional(char) and len(cluster) == 1 and _is_regional(cluster)


def _grown(cluster: str, columns: int, char: str) -> int:
    """The columns of ``cluster`` with ``char`` in it: a selector, a modifier and a joined emoji leave one emoji."""
    if is_emoji(char) or (char == EMOJI_STYLE and (is_emoji(cluster[0]) or cluster[0] in KEYCAP_BASES)):
        return WIDE
    return columns + _width(char)


def _width(char: str) -> int:
    if is_hidden(char) or _is_trailing_jamo(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return WIDE if unicodedata.east_asian_width(char) in ("W", "F") else 1


def _is_trailing_jamo(char: str) -> bool:
    """Vowels and final consonants of Hangul, which stand inside the block of the letter before them."""
    return "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def _is_modifier(char: str) -> bool:
    return "\U0001f3fb" <= char <= "\U0001f3ff"


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
