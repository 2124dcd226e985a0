"""A handoff from a checkout: what git shows since the last one, and what a person adds.

The command line and the demo use it; a surface only collects words and shows the result.

Statements of a person cite HEAD, the worktree when something is uncommitted, and whatever ``cite`` names. A name that
the repository does not have is refused before anything is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from passdown.app.citing import Evidence, Phrasing, Words, cited_by, own_citations
from passdown.app.resuming import Previous, previous
from passdown.git.facts import Commit
from passdown.handoff.capture import reading_id
from passdown.handoff.gitdraft import WORKTREE_LABEL, GitDraft, GitFacts, Locale, draft, is_from_git
from passdown.handoff.host import Checkout, worktree_descriptor
from passdown.handoff.models import HandoffContent, SourceType
from passdown.handoff.operations import HandOffNowAsk
from passdown.handoff.relation import commit_of
from passdown.handoff.rules import cited
from passdown.kernel import limits
from passdown.kernel.operations import Caller
from passdown.kernel.wire import dump, validate

RECENT_COMMITS: Final = 10
"""Commits that a handoff restates at most; older ones are an omission that says so."""
MAX_TAGS: Final = 200


def read_git(checkout: Checkout, known: frozenset[str], recent: int = RECENT_COMMITS) -> GitFacts:
    """Commits, newest first, down to the first one that the last handoff cited (at most ``recent``); tags; worktree."""
    found = checkout.git.commits(recent + 1)
    fresh: list[Commit] = []
    for commit in found:
        if commit.oid in known:
            break
        fresh.append(commit)
    met_known = len(fresh) < len(found)
    # HEAD is always cited, also when the last handoff cited it: the relation of a checkout is measured against it.
    kept = fresh[:recent] or found[:1]
    status = checkout.git.status()
    tags: dict[str, list[str]] = {}
    for tag in checkout.git.tags(MAX_TAGS):
        tags.setdefault(tag.oid, []).append(tag.name)
    return GitFacts(
        commits=checkout.commits(kept),
        tags=tags,
        worktree=worktree_descriptor(status, checkout.instance_id),
        shallow=checkout.git.is_shallow and not met_known and len(found) <= recent,
        more_history=len(fresh) > recent,
        notes=status.notes,
        doubtful=sum(entry.doubt is not None for entry in status.entries),
    )


def ask_from_checkout(
    call: Caller,
    checkout: Checkout,
    scope_id: str,
    words: Words,
    *,
    title: str,
    locale: Locale,
    recent: int = RECENT_COMMITS,
) -> HandOffNowAsk:
    """The whole request for ``hand_off_now``: what git shows since the last handoff, and what a person adds.

    What a person said last time goes on until it is restated: without ``state``, ``blocked`` or ``complete`` the
    earlier words, the disposition and the next action are kept with their own evidence, so that a plain handoff never
    unblocks anything by silence. ``recent`` bounds the commits that are restated (1 to 10).
    """
    return compose(previous(call, scope_id), checkout, scope_id, words, title=title, locale=locale, recent=recent)


def compose(
    last: Previous | None,
    checkout: Checkout,
    scope_id: str,
    words: Words,
    *,
    title: str,
    locale: Locale,
    recent: int = RECENT_COMMITS,
    is_blind: bool = False,
) -> HandOffNowAsk:
    """The request on the handoff ``last``; ``is_blind`` where nobody could look whether there is one."""
    known = frozenset() if last is None else frozenset(filter(None, map(commit_of, cited(dump(last.content)))))
    facts = read_git(checkout, known, recent)
    is_same = last is not None and _is_known(facts, last.content)
    if last is not None and is_same and words == Words():
        return _again(scope_id, last)
    shown = draft(facts, locale)
    evidence = Evidence()
    for item in (*shown.evidence, *words.evidence):
        evidence.add(item)
    named = cited_by(checkout, words.cite, evidence) + [evidence.add(report) for report in words.reports]
    phrasing = Phrasing(checkout, evidence, own_citations(facts, named))
    members = _members(words, last, shown, phrasing, is_same=is_same, title=title, locale=locale)
    if last is not None and _says_the_same(members, evidence, last.content):
        return _again(scope_id, last)
    used = {citation["label"] for citation in _inline_citations(members)}
    return build_ask(
        scope_id=scope_id,
        **members,
        evidence=[item for label, item in evidence.items.items() if label in used],
        expected_base=None if last is None else dump(last.ref),
        expect_first=last is None and not is_blind,
    )


def own_words(content: HandoffContent) -> list[str]:
    """The statements that somebody wrote, in order, without those that were made from git."""
    return [item.text for item in content.state if not is_from_git(item.text)]


def _members(
    words: Words,
    last: Previous | None,
    shown: GitDraft,
    phrasing: Phrasing,
    *,
    is_same: bool,
    title: str,
    locale: Locale,
) -> dict[str, Any]:
    """Objective, state, disposition, next action and omissions of the new handoff."""
    before = dump(last.content) if last is not None else None
    restated = bool(words.blocked or words.state or words.complete or words.disposition)
    said = [phrasing.statement(item) for item in (*words.blocked, *words.state)]
    kept = [item for item in before["state"] if not is_from_git(item["text"])] if before else []
    if words.keep is not None:
        kept = [kept[index] for index in words.keep]
    elif restated:
        kept = []
    from_git = list(shown.state)
    if before and is_same:
        from_git = [item for item in before["state"] if is_from_git(item["text"])]
    if words.only_words and (said or kept):
        from_git = []
    if not from_git and shown.is_dirty and not _cites_worktree([*said, *kept]):
        # What lies uncommitted is what a successor loses most easily: it is never left out by an option.
        from_git = [shown.state[-1]]
    state = [*said, *kept[: max(0, limits.STATEMENTS - len(said) - len(from_git))], *from_git]
    disposition = words.disposition or ("blocked" if words.blocked else "complete" if words.complete else "continuable")
    following = None if words.next_action is None else phrasing.statement(words.next_action)
    if before and not restated:
        disposition = before["disposition"]
    if before and not words.no_next_action and (not restated or words.keep is not None):
        following = following or before["next_action"]
    omissions = [dict(item) for item in shown.omissions]
    if before and is_same and not restated:
        omissions = before["omissions"]
    elif last is not None:
        earlier = {"kind": "artifact", "artifact_ref": dump(last.ref)}
        omissions.append({"text": _EARLIER[locale], "citation": earlier})
    return {
        "objective": words.objective or (before["objective"] if before else title),
        "state": state,
        "disposition": disposition,
        "next_action": following,
        "omissions": [*omissions, *map(dict, words.omissions)],
    }


def _cites_worktree(state: Sequence[Mapping[str, Any]]) -> bool:
    return any(citation.get("label") == WORKTREE_LABEL for item in state for citation in item["citations"])


def _inline_citations(members: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    statements = [*members["state"], *([members["next_action"]] if members["next_action"] else [])]
    found = [citation for statement in statements for citation in statement["citations"]]
    found += [item["citation"] for item in members["omissions"] if item["citation"]]
    return [citation for citation in found if citation["kind"] == "inline"]


def _says_the_same(members: Mapping[str, Any], evidence: Evidence, content: HandoffContent) -> bool:
    """Whether only the pointer to the handoff before would differ: repeating a command then makes no revision."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("kind") == "inline":
                item = evidence.items.get(value["label"], {})
                if not item.get("descriptor"):
                    return item  # words of somebody: what they will be called is not known before they are stored
                named = reading_id(item["source_type"], item["descriptor"])
                return {"kind": "source", "source_ref": {"source_type": item["source_type"], "source_id": named}}
            return {name: plain(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return value.removesuffix("-said") if isinstance(value, str) else value

    before = dump(content)
    del before["schema"]
    pair = [plain(dict(members)), plain(before)]
    for item in pair:
        item["omissions"] = [one for one in item["omissions"] if one["text"] not in _EARLIER.values()]
    return bool(pair[0] == pair[1])


def _is_known(facts: GitFacts, content: HandoffContent) -> bool:
    """Whether the handoff rests on the same reading of HEAD and worktree: nothing was committed, pushed or changed."""
    readings: list[tuple[SourceType, Mapping[str, Any]]] = [("worktree", facts.worktree)]
    if facts.commits:
        readings.append(("git_commit", facts.commits[0]))
    there = {
        (citation["source_ref"]["source_type"], citation["source_ref"]["source_id"].removesuffix("-said"))
        for citation in cited(dump(content))
        if citation["kind"] == "source"
    }
    return all((kind, reading_id(kind, descriptor)) in there for kind, descriptor in readings)


def _again(scope_id: str, last: Previous) -> HandOffNowAsk:
    """The handoff that is there, word for word: committing it is ``unchanged`` and makes no revision."""
    content = dump(last.content)
    del content["schema"]
    return build_ask(scope_id=scope_id, evidence=[], expected_base=dump(last.ref), **content)


_EARLIER: Final[Mapping[Locale, str]] = {
    "en": "What the handoff before this one said is not restated here.",
    "zh-CN": "上一份交接的内容未在此复述。",
}


def build_ask(**members: Any) -> HandOffNowAsk:
    """Validate the assembled request as the wire would."""
    return validate(HandOffNowAsk, {**members, "commit": True})
