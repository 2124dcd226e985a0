"""What a person says of the work, and what in the checkout it rests on.

:class:`Words` are collected by a surface; a statement rests on HEAD, on the worktree when something is uncommitted, and
on whatever it names. A name that the repository does not have is refused before anything is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passdown.handoff.gitdraft import WORKTREE_LABEL, GitFacts, commit_label
from passdown.handoff.host import Checkout
from passdown.handoff.models import Disposition
from passdown.kernel.errors import PassdownError


@dataclass(frozen=True, slots=True)
class Said:
    """One statement with what it rests on.

    ``cite`` are names of commits or files of this checkout. ``citations`` are complete ones; where there are any, only
    these and ``cite`` count, else HEAD and what is uncommitted are cited too.
    """

    text: str
    cite: Sequence[str] = ()
    citations: Sequence[Mapping[str, Any]] = ()
    only_named: bool = False
    """Cite nothing beside what is named: the person picked."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a person says. ``state`` and ``blocked`` are statements; ``blocked`` also sets the disposition.

    A given ``disposition`` wins over what ``blocked`` and ``complete`` say.

    ``evidence`` is inline evidence that the citations of the words name by label, ``reports`` that of test reports,
    which every statement rests on; ``omissions`` are added to those made from git. ``keep`` picks of the earlier
    handoff's own words those that still hold, by index; without it all are kept unless something is restated.
    """

    objective: str | None = None
    state: Sequence[str | Said] = ()
    blocked: Sequence[str | Said] = ()
    complete: bool = False
    next_action: str | Said | None = None
    no_next_action: bool = False
    cite: Sequence[str] = ()
    only_words: bool = False
    disposition: Disposition | None = None
    keep: Sequence[int] | None = None
    omissions: Sequence[Mapping[str, Any]] = ()
    evidence: Sequence[Mapping[str, Any]] = ()
    reports: Sequence[Mapping[str, Any]] = ()


@dataclass(slots=True)
class Evidence:
    """Inline evidence by label, each once."""

    items: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, item: Mapping[str, Any]) -> dict[str, str]:
        """Take a piece in, if it is not there, and return its citation."""
        label = str(item["label"])
        self.items.setdefault(label, dict(item))
        return {"kind": "inline", "label": label}


def cited_by(checkout: Checkout, names: Sequence[str], evidence: Evidence) -> list[dict[str, str]]:
    """Citations of what ``names`` name, a commit before a file; ``git_object_not_found`` where one names neither."""
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


def own_citations(facts: GitFacts, named: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What a person's words rest on: HEAD, the worktree when something is uncommitted, and what was named."""
    own: list[Mapping[str, Any]] = []
    if facts.commits:
        own.append({"kind": "inline", "label": commit_label(facts.commits[0]["oid"])})
    if facts.worktree["entries"] or not own:
        own.append({"kind": "inline", "label": WORKTREE_LABEL})
    return own + [item for item in named if item not in own]


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Makes statements of words: with the citations that all of them have, and those that each names itself."""

    checkout: Checkout
    evidence: Evidence
    own: Sequence[Mapping[str, Any]]

    def statement(self, said: str | Said) -> dict[str, Any]:
        """One statement with inline citations."""
        if isinstance(said, str):
            return {"text": said, "citations": list(self.own)}
        named = [*said.citations, *cited_by(self.checkout, said.cite, self.evidence)]
        alone = bool(named) and (said.only_named or bool(said.citations))
        base = [] if alone else list(self.own)
        return {"text": said.text, "citations": base + [item for item in named if item not in base]}
