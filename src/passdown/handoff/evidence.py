"""Resolving citations inside one transaction: which references of a scope are readable, and what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from passdown.handoff import store
from passdown.handoff.rules import CitationValue, Head, reference
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import MAX_LISTED_ERRORS
from passdown.storage.session import Session


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the citations of one scope resolve to, as of one transaction."""

    head: Head | None
    sources: Mapping[bytes, store.SourceFacts]

    def readable(self, citation: CitationValue) -> bool:
        """Whether the reference resolves in this scope. Says nothing about the truth of the statement."""
        ref = reference(citation)
        if ref.key is not None:
            return ref.key in self.sources
        head = self.head
        return head is not None and ref.artifact_id == head.artifact_id and 1 <= (ref.revision or 0) <= head.revision

    def assurance(self, citation: CitationValue) -> str | None:
        """The assurance of a readable source; None for artifacts and for what is not readable."""
        ref = reference(citation)
        facts = self.sources.get(ref.key) if ref.key else None
        return facts.assurance if facts else None

    def view(self, citation: CitationValue) -> dict[str, Any]:
        """What the citation is, for a reader: the JSON value of ``EvidenceView``."""
        ref = reference(citation)
        facts = self.sources.get(ref.key) if ref.key else None
        if ref.key is None:
            artifact = citation["artifact_ref"]
            label = f"{artifact['family']} #{artifact['revision']}"
        else:
            label = facts.label if facts else citation["source_ref"]["source_id"]
        return {
            "citation": citation,
            "assurance": facts.assurance if facts else None,
            "label": label,
            "readable": self.readable(citation),
            "read_by": facts.read_by if facts else None,
            "remote_refs": facts.remote_refs if facts else None,
        }


def resolve(session: Session, scope_id: str, head: Head | None, citations: Iterable[CitationValue]) -> Resolved:
    """Look all citations up with a bounded number of set reads."""
    keys = [ref.key for ref in map(reference, citations) if ref.key is not None]
    return Resolved(head, store.source_facts(session, scope_id, keys) if keys else {})


def require_readable(resolved: Resolved, placed: Iterable[tuple[str, CitationValue]]) -> None:
    """``citation_not_readable`` naming the place of each citation that does not resolve."""
    missing = [
        {"field": place, "rule": "not_readable"} for place, citation in placed if not resolved.readable(citation)
    ]
    if missing:
        raise PassdownError("citation_not_readable", errors=missing[:MAX_LISTED_ERRORS], error_count=len(missing))
