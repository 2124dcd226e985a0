"""A draft for somebody who could not hand off any more. Pure.

Whoever died at a limit left its work on the disk and its last words in the last handoff. The draft puts the two side by
side and says which is which: statements that were made from what is there now, and the words of the handoff before,
with the evidence that they had. Nothing is concluded. The draft is marked ``recovered``, is never committed by itself,
and tells its reader in an omission that its author did not write it.

Invariants: the objective is the one given, else that of the head, never a made one; disposition and next action are
those of the head, since nobody took them back; every omission about words of the head cites the head; the draft fits
the limits of content, and what did not fit is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from passdown.handoff.gitdraft import Locale, is_from_git
from passdown.handoff.models import Draft
from passdown.handoff.rules import CitationValue
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import validate

_WORDS: Final[Mapping[str, Mapping[Locale, str]]] = {
    "recovered": {
        "en": "Recovered from what was left on disk; whoever did this work did not write this handoff.",
        "zh-CN": "根据磁盘上留存的内容恢复；做这项工作的人没有写过这份交接。",
    },
    "words": {
        "en": "Words that do not come from the disk are those of revision {revision}; what changed since is not known.",
        "zh-CN": "并非来自磁盘的文字出自修订 {revision}；此后是否有变化未知。",
    },
    "next_action": {
        "en": "The next action is that of revision {revision}; whether it was begun or done since is not known.",
        "zh-CN": "下一步出自修订 {revision}；此后是否已开始或完成未知。",
    },
    "dropped": {
        "en": "{count} statements of revision {revision} did not fit and are not repeated here.",
        "zh-CN": "修订 {revision} 中有 {count} 条陈述放不下，未在此重复。",
    },
}


def recovered_draft(
    *,
    objective: str | None,
    parts: Mapping[str, Any],
    head: Mapping[str, Any] | None,
    head_citation: CitationValue | None,
    locale: Locale,
) -> Draft:
    """The draft from ``parts`` (``state`` and ``omissions`` read from the disk) and the content of the head, if any.

    ``invalid_request`` with field ``objective`` and rule ``missing`` where neither has one, since none is made up, and
    with field ``state`` where there would be no statement at all.
    """
    purpose = objective or (head["objective"] if head else None)
    if purpose is None:
        raise _missing("objective")
    state = [dict(item) for item in parts["state"]]
    said = [item for item in head["state"] if not is_from_git(item["text"])] if head else []
    kept = said[: limits.STATEMENTS - len(state)]
    if not kept and not state:
        raise _missing("state")
    omissions = [_omission("recovered", locale)]
    revision = head_citation["artifact_ref"]["revision"] if head_citation else 0
    if kept:
        omissions.append(_omission("words", locale, head_citation, revision=revision))
    if head and head["next_action"]:
        omissions.append(_omission("next_action", locale, head_citation, revision=revision))
    if len(kept) < len(said):
        count = len(said) - len(kept)
        omissions.append(_omission("dropped", locale, head_citation, count=count, revision=revision))
    given: Sequence[Mapping[str, Any]] = parts["omissions"]
    return validate(
        Draft,
        {
            "objective": purpose,
            "state": [*kept, *state],
            "disposition": head["disposition"] if head else "continuable",
            "next_action": head["next_action"] if head else None,
            "omissions": [*omissions, *given],
            "origin": "recovered",
        },
    )


def _omission(key: str, locale: Locale, citation: CitationValue | None = None, **values: int) -> dict[str, Any]:
    return {"text": _WORDS[key][locale].format(**values), "citation": citation}


def _missing(field: str) -> PassdownError:
    return PassdownError("invalid_request", errors=[{"field": field, "rule": "missing"}], error_count=1)
