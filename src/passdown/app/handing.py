"""A handoff from a checkout: what git shows since the last one, and what a person adds.

The command line and the demo use it; a surface only collects words and shows the result.

Statements of a person cite HEAD, the worktree when something is uncommitted, and whatever ``cite`` names. A name that
the repository does not have is refused before anything is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from passdown.git.facts import Commit
from passdown.handoff.capture import reading_id
from passdown.handoff.facts import WorktreeFacts
from passdown.handoff.gitdraft import WORKTREE_LABEL, GitDraft, GitFacts, Locale, commit_label, draft, is_from_git
from passdown.handoff.host import Checkout, worktree_descriptor, worktree_facts
from passdown.handoff.models import ArtifactRef, HandoffContent, SourceRef, SourceType
from passdown.handoff.operations import (
    CONTINUE_HANDOFF,
    GET_HANDOFF,
    GET_SOURCE,
    ContinueAnswer,
    ContinueHandoffAsk,
    GetHandoffAsk,
    GetSourceAsk,
    HandOffNowAsk,
)
from passdown.handoff.relation import commit_of, worktree_citation
from passdown.handoff.rules import cited
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Caller
from passdown.kernel.wire import build, dump, validate

RECENT_COMMITS: Final = 10
"""Commits that a handoff restates at most; older ones are an omission that says so."""
MAX_TAGS: Final = 200
_MOVES: Final = 3


@dataclass(frozen=True, slots=True)
class Words:
    """What a person says. ``state`` and ``blocked`` are statements; ``blocked`` also sets the disposition."""

    objective: str | None = None
    state: Sequence[str] = ()
    blocked: Sequence[str] = ()
    complete: bool = False
    next_action: str | None = None
    cite: Sequence[str] = ()
    only_words: bool = False


@dataclass(slots=True)
class _Evidence:
    """Inline evidence by label, each once."""

    items: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, item: Mapping[str, Any]) -> dict[str, str]:
        label = str(item["label"])
        self.items.setdefault(label, dict(item))
        return {"kind": "inline", "label": label}


@dataclass(frozen=True, slots=True)
class Previous:
    """The committed head of the scope, if any."""

    ref: ArtifactRef
    content: HandoffContent


def previous(call: Caller, scope_id: str) -> Previous | None:
    """The current handoff of the scope, or None."""
    try:
        handoff = call(GET_HANDOFF, GetHandoffAsk(scope_id=scope_id)).handoff
    except PassdownError as error:
        if error.code != "handoff_not_found":
            raise
        return None
    return Previous(handoff.handoff_ref, handoff.content)


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
        worktree=worktree_descriptor(status),
        shallow=checkout.git.is_shallow and not met_known and len(found) <= recent,
        more_history=len(fresh) > recent,
        unread_folders="unreadable_folder" in status.notes,
    )


def _cited_by(checkout: Checkout, names: Sequence[str], evidence: _Evidence) -> list[dict[str, str]]:
    citations = []
    for number, name in enumerate(names, 1):
        try:
            descriptor = checkout.commit(name)
            item = {"label": commit_label(descriptor["oid"]), "source_type": "git_commit", "descriptor": descriptor}
        except PassdownError as no_commit:
            if no_commit.code != "git_object_not_found":
                raise
            try:
                facts = checkout.file(name)
            except PassdownError as no_file:
                if no_file.code != "git_file_not_found":
                    raise
                guidance = f"Number {number} of what is to be cited is neither a commit nor a file of this worktree."
                raise PassdownError(no_commit.code, field="cite", guidance=guidance) from no_file
            # Two files may hold the same bytes, and a path may be longer than a label.
            place = hashlib.sha256(facts["path"].encode()).hexdigest()
            item = {"label": f"file {place}", "source_type": "file", "descriptor": facts}
        citation = evidence.add(item)
        if citation not in citations:
            citations.append(citation)
    return citations


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
    last = previous(call, scope_id)
    known = frozenset() if last is None else frozenset(filter(None, map(commit_of, cited(dump(last.content)))))
    facts = read_git(checkout, known, recent)
    is_same = last is not None and _is_known(facts, last.content)
    if last is not None and is_same and words == Words():
        return _again(scope_id, last)
    shown = draft(facts, locale)
    evidence = _Evidence()
    for item in shown.evidence:
        evidence.add(item)
    own = _own_citations(facts, _cited_by(checkout, words.cite, evidence))
    members = _members(words, last, shown, own, is_same=is_same, title=title, locale=locale)
    if last is not None and _says_the_same(members, evidence, last.content):
        return _again(scope_id, last)
    used = {citation["label"] for citation in _inline_citations(members)}
    return build_ask(
        scope_id=scope_id,
        **members,
        evidence=[item for label, item in evidence.items.items() if label in used],
        expected_base=None if last is None else dump(last.ref),
    )


def _own_citations(facts: GitFacts, named: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """What a person's words rest on: HEAD, the worktree when something is uncommitted, and what was named."""
    own = [{"kind": "inline", "label": commit_label(facts.commits[0]["oid"])}] if facts.commits else []
    if facts.worktree["entries"] or not own:
        own.append({"kind": "inline", "label": WORKTREE_LABEL})
    return own + [item for item in named if item not in own]


def _members(
    words: Words,
    last: Previous | None,
    shown: GitDraft,
    own: list[dict[str, str]],
    *,
    is_same: bool,
    title: str,
    locale: Locale,
) -> dict[str, Any]:
    """Objective, state, disposition, next action and omissions of the new handoff."""
    before = dump(last.content) if last is not None else None
    restated = bool(words.blocked or words.state or words.complete)
    said = [{"text": text, "citations": own} for text in (*words.blocked, *words.state)]
    kept = [item for item in before["state"] if not is_from_git(item["text"])] if before and not restated else []
    from_git = list(shown.state)
    if before and is_same:
        from_git = [item for item in before["state"] if is_from_git(item["text"])]
    if words.only_words and (said or kept):
        from_git = []
    state = [*said, *kept[: limits.STATEMENTS - len(said) - len(from_git)], *from_git]
    disposition = "blocked" if words.blocked else "complete" if words.complete else "continuable"
    following = None if words.next_action is None else {"text": words.next_action, "citations": own}
    if before and not restated:
        disposition = before["disposition"]
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
        "omissions": omissions,
    }


def _inline_citations(members: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    statements = [*members["state"], *([members["next_action"]] if members["next_action"] else [])]
    found = [citation for statement in statements for citation in statement["citations"]]
    found += [item["citation"] for item in members["omissions"] if item["citation"]]
    return [citation for citation in found if citation["kind"] == "inline"]


def _says_the_same(members: Mapping[str, Any], evidence: _Evidence, content: HandoffContent) -> bool:
    """Whether only the pointer to the handoff before would differ: repeating a command then makes no revision."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("kind") == "inline":
                item = evidence.items[value["label"]]
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


def recorded_worktree(call: Caller, scope_id: str, content: HandoffContent) -> WorktreeFacts | None:
    """The worktree reading that a handoff cites, or None."""
    ref = worktree_citation(dump(content))
    if ref is None:
        return None
    try:
        found = call(GET_SOURCE, GetSourceAsk(scope_id=scope_id, source_ref=build(SourceRef, **ref)))
    except PassdownError as error:
        if error.code != "source_not_found":
            raise
        return None
    return worktree_facts(found.source.descriptor)


def continue_here(
    call: Caller, checkout: Checkout, scope_id: str, *, objective: str | None = None, require_usable: bool = False
) -> ContinueAnswer:
    """Continue the current handoff of this worktree's own workstream, compared with its checkout.

    The first call resolves what is to be compared; the second carries what this host found. If somebody commits in
    between, the comparison belongs to an older revision, so it is made again for the newer one.
    """
    target = {"kind": "latest"}
    plain = {"scope_id": scope_id, "confirm_scope": scope_id, "target": target, "current_objective": objective}
    for _ in range(_MOVES):
        found = call(CONTINUE_HANDOFF, validate(ContinueHandoffAsk, plain))
        workspace = None
        if found.content is not None:
            recorded = recorded_worktree(call, scope_id, found.content)
            workspace = dump(checkout.workspace(dump(found.content), recorded))
        asked = {**plain, "workspace": workspace, "require_usable_next_action": require_usable}
        answer = call(CONTINUE_HANDOFF, validate(ContinueHandoffAsk, asked))
        if answer.selected_revision == found.selected_revision:
            return answer
    raise PassdownError("handoff_conflict", current=dump(answer.current_revision) if answer.current_revision else None)
