"""The words of one locale, and the few forms that every section writes them in.

A report speaks in two voices. Text of users is escaped and stands plain. Words of the report itself stand in emphasis
(:func:`note`) or in bold (:meth:`Words.label`), which escaped text can never produce: nobody can forge "read by a host"
by typing it. Users' text never stands at the edge of an emphasis, where its first or last character would decide
whether the emphasis holds.

States: a :class:`Words` is immutable and made once per locale. Invariant: all locales have the same keys.

Public: :data:`LOCALES`, :data:`SYMBOLS`, :data:`WARNING`, :class:`Words`, :func:`words_of`, :func:`note`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from passdown.kernel.errors import PassdownError
from passdown.kernel.symbols import STATUS_SYMBOLS
from passdown.report.render import phrases_en, phrases_zh_cn
from passdown.report.render.escaped import inline

LOCALES: Final[Mapping[str, Mapping[str, str]]] = {"zh-CN": phrases_zh_cn.PHRASES, "en": phrases_en.PHRASES}

SYMBOLS: Final = STATUS_SYMBOLS
WARNING: Final = "▲"
SEPARATOR: Final = " · "


@dataclass(frozen=True, slots=True)
class Words:
    """Phrases of one locale. Values that are put into a phrase are already escaped."""

    locale: str
    phrases: Mapping[str, str]

    def say(self, key: str, **values: Any) -> str:
        """The phrase of ``key`` with its values."""
        phrase = self.phrases[key]
        return phrase.format(**values) if values else phrase

    def count(self, key: str, n: int, **values: Any) -> str:
        """The phrase for ``n`` things: ``key.one`` or ``key.many``."""
        return self.say(f"{key}.one" if n == 1 else f"{key}.many", n=n, **values)

    def term(self, family: str, value: str, fallback: str = "other") -> str:
        """The word for an enumerated value; an unknown one gets the word of ``fallback``, never an English leftover."""
        return self.phrases.get(f"{family}.{value}") or self.phrases[f"{family}.{fallback}"]

    def label(self, key: str, *, warning: bool = False) -> str:
        """A bold label with its colon and the space behind it."""
        mark = f"{WARNING} " if warning else ""
        return f"**{mark}{self.phrases['label.' + key]}{self.phrases['mark.colon']}** "

    def listed(self, parts: Iterable[str]) -> str:
        """Short things beside each other."""
        return self.phrases["mark.list"].join(parts)

    def clauses(self, parts: Iterable[str]) -> str:
        """Short sentences beside each other."""
        return self.phrases["mark.clause"].join(parts)

    def quoted(self, text: str) -> str:
        """Users' text within a sentence of the report, escaped, in quotation marks."""
        return self.say("mark.quote", text=inline(text))


@cache
def words_of(locale: str) -> Words:
    """The words of ``zh-CN`` or ``en``; another locale is ``unsupported_report_locale``."""
    phrases = LOCALES.get(locale)
    if phrases is None:
        raise PassdownError("unsupported_report_locale", field="locale")
    return Words(locale, phrases)


def note(text: str) -> str:
    """Words of the report in emphasis. ``text`` begins and ends with words of the report, not of users."""
    return f"*{text}*"
