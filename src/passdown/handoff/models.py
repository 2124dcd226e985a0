"""Wire models of the handoff core: references, citations, content, prepared handoff.

Content is ``powercontext.handoff.v1``; its canonical bytes are what a revision stores and what every digest covers.
Limits: objective 1..8,192 characters, 1..64 statements of 1..4,096 characters with 1..32 citations each, at most 64
omissions. (Handoff core, "Content".)
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from passdown.kernel import limits
from passdown.kernel.wire import TAG, Count, Digest, Identifier, Revision, Wire, identifier, text

HANDOFF_SCHEMA: Final = "powercontext.handoff.v1"
PREPARED_SCHEMA: Final = "powercontext.prepared-handoff.v1"
HANDOFF_FAMILY: Final = "handoff"

SourceType = Literal["content", "git_commit", "file", "worktree", "test_report", "document", "url"]
Disposition = Literal["continuable", "blocked", "complete"]
Assurance = Literal["host_read", "caller_supplied", "referenced"]
Materialization = Literal["captured", "referenced"]

StatementText = Annotated[str, text(limits.STATEMENT)]
Objective = Annotated[str, text(limits.OBJECTIVE)]
Label = Annotated[str, identifier(limits.LABEL)]


class SourceRef(Wire):
    """Names one immutable source of a scope."""

    source_type: Annotated[str, identifier(limits.SOURCE_TYPE)]
    source_id: Annotated[str, identifier(limits.SOURCE_ID)]


class ArtifactRef(Wire):
    """Names one immutable revision: ``{family, artifact_id, revision}``, revisions from 1 without gap."""

    family: Annotated[str, identifier(limits.SOURCE_TYPE)]
    artifact_id: Annotated[str, identifier(limits.ARTIFACT_ID)]
    revision: Revision


class SourceCitation(Wire):
    """Cites a captured source of the same scope."""

    kind: Literal["source"]
    source_ref: SourceRef


class ArtifactCitation(Wire):
    """Cites a revision of the same scope."""

    kind: Literal["artifact"]
    artifact_ref: ArtifactRef


class InlineCitation(Wire):
    """Cites evidence that travels in the same request, by the label given there."""

    kind: Literal["inline"]
    label: Label


def by_kind(value: Any) -> str | None:
    """The tag of a union whose members are told apart by ``kind``."""
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return TAG + kind if isinstance(kind, str) else None


_BY_KIND = Discriminator(
    by_kind,
    custom_error_type="unsupported_citation_kind",
    custom_error_message="unsupported citation kind",
)

Citation = Annotated[
    Annotated[SourceCitation, Tag(TAG + "source")] | Annotated[ArtifactCitation, Tag(TAG + "artifact")], _BY_KIND
]
DraftCitation = Annotated[
    Annotated[SourceCitation, Tag(TAG + "source")]
    | Annotated[ArtifactCitation, Tag(TAG + "artifact")]
    | Annotated[InlineCitation, Tag(TAG + "inline")],
    _BY_KIND,
]


class Statement(Wire):
    """A sentence and the exact evidence that it rests on."""

    text: StatementText
    citations: Annotated[tuple[Citation, ...], Field(min_length=1, max_length=limits.CITATIONS)]


class Omission(Wire):
    """Relevant material that was unavailable, excluded or unverified."""

    text: StatementText
    citation: Citation | None = None


class HandoffContent(Wire):
    """What a revision says. ``next_action`` null means only that none is proposed."""

    schema_: Literal["powercontext.handoff.v1"] = Field(alias="schema")
    objective: Objective
    state: Annotated[tuple[Statement, ...], Field(min_length=1, max_length=limits.STATEMENTS)]
    disposition: Disposition
    next_action: Statement | None
    omissions: Annotated[tuple[Omission, ...], Field(max_length=limits.OMISSIONS)]


class DraftStatement(Wire):
    """A statement that may still cite inline evidence by label."""

    text: StatementText
    citations: Annotated[tuple[DraftCitation, ...], Field(max_length=limits.CITATIONS)]


class DraftOmission(Wire):
    """An omission that may still cite inline evidence by label."""

    text: StatementText
    citation: DraftCitation | None = None


class Draft(Wire):
    """Content under way: the same members as content, statements and citations may still be missing."""

    objective: Objective
    state: Annotated[tuple[DraftStatement, ...], Field(max_length=limits.STATEMENTS)]
    disposition: Disposition
    next_action: DraftStatement | None
    omissions: Annotated[tuple[DraftOmission, ...], Field(max_length=limits.OMISSIONS)]
    origin: Literal["prepared", "recovered"] = "prepared"


class PreparedHandoff(Wire):
    """A finalised handoff that nothing stores yet: a plain document, checked by its digest wherever it arrives.

    ``base`` is the committed head that was seen, null for a first handoff.
    """

    schema_: Literal["powercontext.prepared-handoff.v1"] = Field(alias="schema")
    scope_id: Identifier
    base: ArtifactRef | None
    content: HandoffContent
    content_digest: Digest


class Recorder(Wire):
    """Who stored something here, and whether that name was asserted or proved by a token."""

    principal_id: Identifier
    identity: Literal["asserted", "authenticated"]


class EvidenceView(Wire):
    """What one citation is, for a reader.

    ``readable`` means that the reference resolves in this scope, not that the statement is still true. ``remote_refs``
    are the remote-tracking refs that held a commit when it was read: ``[]`` is "none", null is "not read" or no commit.
    """

    citation: Citation
    assurance: Assurance | None
    label: str
    readable: bool
    read_by: str | None
    remote_refs: tuple[str, ...] | None


SHOWN_RUNS: Final = 16
"""Test runs that are listed with a commit; more are counted."""


class TestRun(Wire):
    """A stored test report that names a commit: the counts, and whether the report or somebody named it."""

    __test__ = False  # the test runner is not meant

    source_ref: SourceRef
    assurance: Assurance
    commit_basis: Literal["report", "said"]
    tests: Count
    failures: Count
    errors: Count
    skipped: Count


class ContinueEvidence(EvidenceView):
    """Evidence with what was checked of it.

    *Committed* is that the source is a commit, *pushed* that ``remote_refs`` is not empty, *checked* that ``checks``
    has a run: three facts, and none follows from another. ``checks`` is null for what is no commit; the newest come
    first.
    """

    checks: Annotated[tuple[TestRun, ...], Field(max_length=SHOWN_RUNS)] | None
    checks_total: Count


class EvidenceCheck(Wire):
    """Whether every reference of one claim resolves. ``state_index`` is null for the next action."""

    claim: Literal["state", "next_action"]
    state_index: int | None
    status: Literal["available", "unavailable"]
    unavailable_evidence: tuple[Citation, ...]


def handoff_ref(artifact_id: str, revision: int) -> ArtifactRef:
    """The reference of a handoff revision."""
    return ArtifactRef(family=HANDOFF_FAMILY, artifact_id=artifact_id, revision=revision)
