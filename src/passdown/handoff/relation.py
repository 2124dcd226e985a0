"""How a checkout stands to the commits that a handoff cites. Pure.

The commits that the next action cites decide; without any, those of the state. Branch names take no part. With several
commits the most careful answer wins: ``diverged`` over ``unknown`` over ``behind``; HEAD on one of them while it
descends from all others is ``aligned``; HEAD beyond all of them is ``ahead``. What is unknown has one cause, the one
that is hardest to mend: what is missing may still be missing when more history is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

Relation = Literal["aligned", "ahead", "behind", "diverged", "unknown"]
Ancestry = Literal["same", "ahead", "behind", "diverged", "no_head", "commit_missing", "shallow"]
UnknownBecause = Literal["no_commit_cited", "commit_missing", "shallow", "no_head"]
_CAUSES: Final[tuple[UnknownBecause, ...]] = ("no_head", "commit_missing", "shallow")


def commit_of(citation: Mapping[str, Any]) -> str | None:
    """The commit id of a ``git_commit`` citation, whose identity begins with it; None for any other citation."""
    if citation["kind"] != "source" or citation["source_ref"]["source_type"] != "git_commit":
        return None
    oid = str(citation["source_ref"]["source_id"]).split("@", 1)[0]
    return oid if len(oid) in (40, 64) and not set(oid) - set("0123456789abcdef") else None


def deciding_commits(content: Mapping[str, Any]) -> list[str]:
    """The commits that decide the relation, in order of citation; empty when none is cited."""
    groups = [content["next_action"]["citations"]] if content["next_action"] is not None else []
    groups.append([citation for statement in content["state"] for citation in statement["citations"]])
    for citations in groups:
        found = [oid for oid in map(commit_of, citations) if oid is not None]
        if found:
            return list(dict.fromkeys(found))
    return []


def combine(ancestry: Sequence[Ancestry]) -> tuple[Relation, UnknownBecause | None]:
    """One relation from how HEAD stands to each deciding commit, and with ``unknown`` why."""
    if "diverged" in ancestry:
        return "diverged", None
    if not ancestry:
        return "unknown", "no_commit_cited"
    for cause in _CAUSES:
        if cause in ancestry:
            return "unknown", cause
    if "behind" in ancestry:
        return "behind", None
    return ("aligned" if "same" in ancestry else "ahead"), None


def worktree_citation(content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reference of the worktree source that the handoff records its uncommitted files with.

    The last one in ``state`` is meant: words that were kept from an earlier handoff stand before the new reading.
    """
    statements = list(reversed(content["state"]))
    if content["next_action"] is not None:
        statements.append(content["next_action"])
    citations = [citation for statement in statements for citation in statement["citations"]]
    citations += [item["citation"] for item in content["omissions"] if item["citation"] is not None]
    for citation in citations:
        if citation["kind"] == "source" and citation["source_ref"]["source_type"] == "worktree":
            ref: Mapping[str, Any] = citation["source_ref"]
            return ref
    return None
