"""Users' text, escaped and remembered.

Handoffs are immutable, so the same statements are shown again on every page until a newer one replaces them, some of
them several times on one page. Escaping is a pure function and most of the time that a page takes; its results are
kept, least recently used first out. What is kept is bounded in number and length: a few MiB at the most usual sizes.

Public: :func:`inline`, :func:`block`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from passdown.kernel.escape import markdown_block, markdown_inline

KEPT_TEXTS: Final = 8_192
KEPT_CHARACTERS: Final = 512
"""Longest text that is kept. Longer ones are rare and are escaped each time."""


@lru_cache(maxsize=KEPT_TEXTS)
def _kept_inline(text: str) -> str:
    return markdown_inline(text)


@lru_cache(maxsize=KEPT_TEXTS)
def _kept_block(text: str, indent: int) -> str:
    return markdown_block(text, indent=indent)


def inline(text: str) -> str:
    """``text`` for a heading, a table cell or a place within a line."""
    return _kept_inline(text) if len(text) <= KEPT_CHARACTERS else markdown_inline(text)


def block(text: str, *, indent: int = 0) -> str:
    """``text`` for a paragraph or a list item whose later lines stand ``indent`` columns in."""
    return _kept_block(text, indent) if len(text) <= KEPT_CHARACTERS else markdown_block(text, indent=indent)
