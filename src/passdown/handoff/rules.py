"""The pure rules of the handoff core: citations, size, commit decision, checks, usability.

Nothing here reads a clock, a store or a repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from passdown.handoff.codes import source_key
from passdown.kernel.canonical import canonical_bytes_of_validated, digest_bytes
from passdown.kernel.errors import PassdownError

CitationValue = Mapping[str, Any]
"""A citation as its JSON value: ``{kind, source_ref}`` or ``{kind, artifact_ref}``."""


@dataclass(frozen=True, slots=True)
class Head:
    """The current revision of a scope."""

    artifact_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A citation as the tables know it. Source: ``key`` is set. Artifact: ``artifact_id`` and ``revision`` are."""

    key: bytes | None
    artifact_id: str | None = None
    revision: int | None = None


Identity = tuple[str | int, ...]


def identity(citation: CitationValue) -> Identity:
    """What makes two citations the same, cheaper than :func:`reference`: reports compare hundreds of them."""
    if citation["kind"] == "source":
        ref = citation["source_ref"]
        return (ref["source_type"], ref["source_id"])
    ref = citation["artifact_ref"]
    return (ref["family"], ref["artifact_id"], ref["revision"])


def reference(citation: CitationValue) -> Reference:
    """The storable form of a citation."""
    if citation["kind"] == "source":
        ref = citation["source_ref"]
        return Reference(source_key(ref["source_type"], ref["source_id"]))
    ref = citation["artifact_ref"]
    # A family other than handoff has no table in this version: NUL, which no id holds, makes it resolve to nothing.
    artifact_id = ref["artifact_id"] if ref["family"] == "handoff" else f"{ref['family']}\0{ref['artifact_id']}"
    return Reference(None, artifact_id, ref["revision"])


def claims(content: Mapping[str, Any]) -> Iterator[tuple[str, int | None, Sequence[CitationValue]]]:
    """Each claim with its citations: every statement of ``state`` in order, then ``next_action``."""
    for index, statement in enumerate(content["state"]):
        yield "state", index, statement["citations"]
    if content["next_action"] is not None:
        yield "next_action", None, content["next_action"]["citations"]


def placed(content: Mapping[str, Any]) -> Iterator[tuple[str, CitationValue]]:
    """Every citation with its place in the content, as ``state.0.citations.2``; repeated ones too."""
    for claim, index, citations in claims(content):
        for number, citation in enumerate(citations):
            yield f"{claim if index is None else f'{claim}.{index}'}.citations.{number}", citation
    for number, omission in enumerate(content["omissions"]):
        if omission["citation"] is not None:
            yield f"omissions.{number}.citation", omission["citation"]


def cited(content: Mapping[str, Any]) -> list[CitationValue]:
    """Every distinct citation in order of first appearance: state, next action, omissions."""
    found: dict[Identity, CitationValue] = {}
    for _, _, citations in claims(content):
        for citation in citations:
            found.setdefault(identity(citation), citation)
    for omission in content["omissions"]:
        if omission["citation"] is not None:
            found.setdefault(identity(omission["citation"]), omission["citation"])
    return list(found.values())


def rests_on(content: Mapping[str, Any]) -> list[CitationValue]:
    """What the statements of ``state`` cite: an omission and a proposal prove nothing of what is said to be done."""
    return [citation for claim, _, citations in claims(content) if claim == "state" for citation in citations]


def content_bytes(content: dict[str, Any], limit: int) -> bytes:
    """Canonical bytes of validated content; ``handoff_too_large`` with both numbers past ``limit``."""
    data = canonical_bytes_of_validated(content)
    if len(data) > limit:
        raise PassdownError("handoff_too_large", limit=limit, actual=len(data))
    return data


def content_digest(data: bytes) -> str:
    """``sha256:`` digest of canonical content bytes."""
    return digest_bytes(data)


def evidence_checks(content: Mapping[str, Any], readable: Callable[[CitationValue], bool]) -> list[dict[str, Any]]:
    """One check per claim. Readable means that the reference resolves, not that the statement is still true."""
    checks: list[dict[str, Any]] = []
    for claim, index, citations in claims(content):
        missing = [citation for citation in citations if not readable(citation)]
        checks.append(
            {
                "claim": claim,
                "state_index": index,
                "status": "unavailable" if missing else "available",
                "unavailable_evidence": missing,
            }
        )
    return checks


def is_unproved(disposition: str, assurances: Iterable[str | None]) -> bool:
    """A ``complete`` for which nothing that it rests on was read by Passdown's own reader rests on words alone."""
    return disposition == "complete" and "host_read" not in set(assurances)


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What the store knows when a prepared handoff arrives, read in the committing transaction.

    ``base_digest`` and ``next_digest`` are the content digests of revision ``base`` and ``base + 1``, None if absent.
    """

    head: Head | None
    base_digest: str | None
    next_digest: str | None


@dataclass(frozen=True, slots=True)
class CommitDecision:
    """``append``: write revision ``revision``. ``unchanged`` and ``replayed`` write nothing."""

    kind: Literal["append", "unchanged", "replayed", "conflict"]
    revision: int


def decide_commit(base: Head | None, digest: str, facts: CommitFacts) -> CommitDecision:
    """Compare-and-set of the linear history.

    Order matters: content equal to its own base is ``unchanged`` even if the head has moved; a commit whose answer was
    lost finds its revision behind ``base`` whatever was committed after it; only then the head must equal ``base``.
    """
    head = facts.head
    same_history = base is None or (head is not None and head.artifact_id == base.artifact_id)
    base_revision = base.revision if base else 0
    if same_history:
        if base and facts.base_digest == digest:
            return CommitDecision("unchanged", base_revision)
        if facts.next_digest == digest:
            return CommitDecision("replayed", base_revision + 1)
        if base_revision == (head.revision if head else 0):
            return CommitDecision("append", base_revision + 1)
    return CommitDecision("conflict", head.revision if head else 0)


def objective_relation(objective: str, current: str | None) -> Literal["same", "different", "not_given"]:
    """Whether the caller's objective is the handoff's own; a different one is reported, never adopted."""
    if current is None:
        return "not_given"
    return "same" if current == objective else "different"


def next_action_reasons(
    *,
    content: Mapping[str, Any] | None,
    checks: Sequence[Mapping[str, Any]],
    superseded: bool,
    relation: str | None,
    files_gone: bool,
    files_elsewhere: bool = False,
) -> list[str]:
    """Why the next action must not be followed as it stands; empty means usable.

    A relation that nobody computed, or that cannot be decided, does not make an old order safe.
    """
    if content is None or content["next_action"] is None:
        return ["no_next_action"]
    reasons = []
    if any(check["claim"] == "next_action" and check["status"] == "unavailable" for check in checks):
        reasons.append("evidence_unavailable")
    if superseded:
        reasons.append("superseded")
    if relation is None:
        reasons.append("workspace_not_given")
    elif relation == "unknown":
        reasons.append("relation_unknown")
    elif relation == "diverged":
        reasons.append("diverged")
    if files_gone:
        reasons.append("uncommitted_files_elsewhere" if files_elsewhere else "uncommitted_files_gone")
    return reasons
