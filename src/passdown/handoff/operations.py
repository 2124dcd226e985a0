"""The operations of the handoff core, described once.

States of a handoff: draft -> prepared -> (transferred | committed as a revision). Invariants: one scope has one linear
history without gaps; a revision never changes; from one base at most one revision is made; what ``finalize_handoff``
returned, ``commit_handoff`` stores and ``continue_handoff`` shows has one content digest; reading writes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from passdown.handoff.acknowledgement_operations import ACKNOWLEDGEMENT_OPERATIONS, Acknowledgements
from passdown.handoff.diff_operations import DIFF_OPERATIONS
from passdown.handoff.drafting import Reason
from passdown.handoff.export_operations import EXPORT_OPERATIONS
from passdown.handoff.facts import Oid, PathText
from passdown.handoff.models import (
    ArtifactRef,
    Citation,
    ContinueEvidence,
    Disposition,
    Draft,
    DraftOmission,
    DraftStatement,
    EvidenceCheck,
    HandoffContent,
    Objective,
    PreparedHandoff,
    Recorder,
    SourceRef,
    by_kind,
)
from passdown.handoff.recover_operations import RECOVER_OPERATIONS
from passdown.handoff.source_operations import MAX_EVIDENCE, SOURCE_OPERATIONS, InlineEvidence
from passdown.kernel import limits
from passdown.kernel.operations import Op
from passdown.kernel.wire import TAG, Count, Cursor, Digest, Identifier, Limit, Wire


def _offered_kind(value: Any) -> str:
    is_object = isinstance(value, dict)
    if is_object and "kind" in value:
        return TAG + "citation"
    return TAG + ("citation" if not is_object and hasattr(value, "kind") else "inline")


OfferedEvidence = Annotated[
    Annotated[Citation, Tag(TAG + "citation")] | Annotated[InlineEvidence, Tag(TAG + "inline")],
    Discriminator(_offered_kind),
]


class PrepareHandoffAsk(Wire):
    """``evidence`` offers citations or inline evidence; without ``state`` the draft has none, it never invents any.

    ``propose`` asks the drafting provider, if there is one, for statements that cite what is offered.
    """

    scope_id: Identifier
    objective: Objective
    evidence: Annotated[tuple[OfferedEvidence, ...], Field(max_length=MAX_EVIDENCE)] = ()
    state: Annotated[tuple[DraftStatement, ...], Field(max_length=limits.STATEMENTS)] = ()
    disposition: Disposition = "continuable"
    next_action: DraftStatement | None = None
    omissions: Annotated[tuple[DraftOmission, ...], Field(max_length=limits.OMISSIONS)] = ()
    propose: bool = False


class Candidate(Wire):
    """Something that a statement may cite, with what it is."""

    citation: Citation
    label: str


class DraftingOutcome(Wire):
    """What became of ``propose``: ``off`` where no provider is set up; ``failed`` leaves the draft as it was."""

    status: Literal["not_asked", "off", "proposed", "failed"]
    reason: Reason | None
    accepted: Count
    refused: Count


class PrepareHandoffAnswer(Wire):
    """``left_out`` are the candidates that no statement cites; each is an omission of the draft too."""

    draft: Draft
    candidates: tuple[Candidate, ...]
    left_out: tuple[Citation, ...]
    drafting: DraftingOutcome


class FinalizeHandoffAsk(Wire):
    scope_id: Identifier
    draft: Draft


class CommitAnswer(Wire):
    """``unchanged``: the content equals its base, no revision was made. ``replayed``: an earlier commit did it."""

    handoff_ref: ArtifactRef
    status: Literal["committed", "unchanged"]
    replayed: bool
    content_digest: Digest


class HandOffNowAsk(Wire):
    """Content with its evidence in one call.

    ``expected_base`` refuses when somebody committed in between, ``expect_first`` when there is any handoff yet.
    """

    scope_id: Identifier
    objective: Objective
    evidence: Annotated[tuple[InlineEvidence, ...], Field(max_length=MAX_EVIDENCE)] = ()
    state: Annotated[tuple[DraftStatement, ...], Field(min_length=1, max_length=limits.STATEMENTS)]
    disposition: Disposition
    next_action: DraftStatement | None = None
    omissions: Annotated[tuple[DraftOmission, ...], Field(max_length=limits.OMISSIONS)] = ()
    expected_base: ArtifactRef | None = None
    expect_first: bool = False
    commit: bool


class HandOffNowAnswer(Wire):
    """``prepared`` always; ``committed`` null when ``commit`` was false."""

    prepared: PreparedHandoff
    committed: CommitAnswer | None
    captured: tuple[SourceRef, ...]
    unproved: bool


class LatestTarget(Wire):
    kind: Literal["latest"]


class ExactTarget(Wire):
    kind: Literal["exact"]
    handoff_ref: ArtifactRef


class PreparedTarget(Wire):
    kind: Literal["prepared"]
    prepared: PreparedHandoff


Target = Annotated[
    Annotated[LatestTarget, Tag(TAG + "latest")]
    | Annotated[ExactTarget, Tag(TAG + "exact")]
    | Annotated[PreparedTarget, Tag(TAG + "prepared")],
    Discriminator(by_kind),
]

Relation = Literal["aligned", "ahead", "behind", "diverged", "unknown"]
MAX_CHANGED_PATHS: Final = 2_000


class PathRemark(Wire):
    """Why a path may be less different than its bytes say.

    ``line_endings`` it holds CR LF or, compared with a recorded file, only its line ends differ; ``filter_not_run`` it
    passes through a filter such as LFS, which is never run; ``mode`` its bytes are the recorded ones, but it has become
    executable, is no longer, or is a link and was none.
    """

    path: PathText
    remark: Literal["filter_not_run", "line_endings", "mode"]


Remarks = Annotated[tuple[PathRemark, ...], Field(max_length=MAX_CHANGED_PATHS)]


class UncommittedFiles(Wire):
    """What became of the files that were uncommitted when the handoff was written. ``remarks`` are about ``changed``.

    ``elsewhere`` is true when they lay in another worktree than the one that was compared: what is not here may be
    there still.
    """

    present: Count
    changed: Annotated[tuple[PathText, ...], Field(max_length=MAX_CHANGED_PATHS)]
    gone: Annotated[tuple[PathText, ...], Field(max_length=MAX_CHANGED_PATHS)]
    not_recorded: Count
    elsewhere: bool = False
    remarks: Remarks = ()


UnknownBecause = Literal["no_commit_cited", "commit_missing", "shallow", "no_head"]
WorkspaceNote = Literal[
    "filter_not_run",
    "line_endings",
    "nested_repository_not_read",
    "repository_attributes_not_read",
    "repository_excludes_not_read",
    "submodule_not_entered",
    "unreadable_file",
    "unreadable_folder",
    "user_config_unreadable",
]


class Workspace(Wire):
    """What the host computed of its own checkout. ``changed_paths`` differ from HEAD now, ``remarks`` are about them.

    ``unknown_because`` is given with the relation ``unknown`` by hosts that can tell: no commit is cited, this
    repository lacks one, its history is cut off, or there is no commit here yet. ``notes`` say what of the worktree was
    not read, so that it may hold more than is told here.
    """

    head: Oid | None
    dirty: bool
    relation: Relation
    changed_paths: Annotated[tuple[PathText, ...], Field(max_length=MAX_CHANGED_PATHS)]
    uncommitted: UncommittedFiles | None = None
    unknown_because: UnknownBecause | None = None
    remarks: Remarks = ()
    notes: Annotated[tuple[WorkspaceNote, ...], Field(max_length=16)] = ()


class ContinueHandoffAsk(Wire):
    """``latest`` needs ``confirm_scope`` equal to ``scope_id``."""

    scope_id: Identifier
    target: Target
    confirm_scope: Identifier | None = None
    current_objective: Objective | None = None
    workspace: Workspace | None = None
    require_usable_next_action: bool = False


NotUsable = Literal[
    "no_next_action",
    "evidence_unavailable",
    "superseded",
    "workspace_not_given",
    "relation_unknown",
    "diverged",
    "uncommitted_files_gone",
    "uncommitted_files_elsewhere",
]


class ContinueAnswer(Wire):
    """A handoff as untrusted history, checked and compared; nothing of it is executed."""

    trust: Literal["untrusted_history"]
    status: Literal["resolved", "empty"]
    scope_id: Identifier
    selection: Literal["latest", "exact", "prepared"]
    content: HandoffContent | None
    content_digest: Digest | None
    selected_revision: ArtifactRef | None
    current_revision: ArtifactRef | None
    is_current: bool
    recorded_at: str | None
    recorded_by: Recorder | None
    evidence_checks: tuple[EvidenceCheck, ...]
    evidence: tuple[ContinueEvidence, ...]
    unproved: bool
    objective_relation: Literal["same", "different", "not_given"]
    workspace: Workspace | None
    next_action_usable: bool
    next_action_reasons: tuple[NotUsable, ...]
    acknowledgements: Acknowledgements | None


class GetHandoffAsk(Wire):
    """Without ``handoff_ref`` the current revision."""

    scope_id: Identifier
    handoff_ref: ArtifactRef | None = None


class CommittedHandoff(Wire):
    """One stored revision. ``recorded_at`` is when it was stored here, never a source's own time."""

    scope_id: Identifier
    handoff_ref: ArtifactRef
    base: ArtifactRef | None
    content: HandoffContent
    content_digest: Digest
    recorded_at: str
    recorded_by: Recorder
    is_current: bool


class GetHandoffAnswer(Wire):
    handoff: CommittedHandoff
    acknowledgements: Acknowledgements


class ListRevisionsAsk(Wire):
    scope_id: Identifier
    cursor: Cursor | None = None
    limit: Limit = limits.LIST_DEFAULT


class RevisionSummary(Wire):
    handoff_ref: ArtifactRef
    content_digest: Digest
    objective: str
    disposition: Disposition
    recorded_at: str
    recorded_by: Recorder
    accepted: Count
    declined: Count


class ListRevisionsAnswer(Wire):
    """Newest first."""

    revisions: tuple[RevisionSummary, ...]
    next_cursor: str | None


PREPARE_HANDOFF: Final = Op(
    "prepare_handoff",
    "/v1/handoff/prepare",
    PrepareHandoffAsk,
    PrepareHandoffAnswer,
    ("source_conflict", "source_too_large", "not_canonical", "citation_not_readable", "unsupported_citation_kind"),
    "append",
    "Capture inline evidence and return a draft with everything that could be cited.",
    "policy",
)
FINALIZE_HANDOFF: Final = Op(
    "finalize_handoff",
    "/v1/handoff/finalize",
    FinalizeHandoffAsk,
    PreparedHandoff,
    ("handoff_too_large", "citation_not_readable", "unsupported_citation_kind"),
    "read",
    "Check a draft and every citation, and return the prepared handoff; writes nothing.",
    "policy",
)
COMMIT_HANDOFF: Final = Op(
    "commit_handoff",
    "/v1/handoff/commit",
    PreparedHandoff,
    CommitAnswer,
    (
        "handoff_conflict",
        "prepared_digest_mismatch",
        "handoff_too_large",
        "citation_not_readable",
        "unsupported_citation_kind",
    ),
    "append",
    "Append the prepared handoff as the next revision if its base is still the head.",
    "policy",
)
HAND_OFF_NOW: Final = Op(
    "hand_off_now",
    "/v1/handoff/hand-off-now",
    HandOffNowAsk,
    HandOffNowAnswer,
    (
        "source_conflict",
        "source_too_large",
        "not_canonical",
        "handoff_conflict",
        "handoff_too_large",
        "citation_not_readable",
        "unsupported_citation_kind",
    ),
    "append",
    "Capture, finalise and commit in one call and one transaction.",
    "default",
)
CONTINUE_HANDOFF: Final = Op(
    "continue_handoff",
    "/v1/handoff/continue",
    ContinueHandoffAsk,
    ContinueAnswer,
    (
        "handoff_not_found",
        "handoff_scope_mismatch",
        "scope_not_confirmed",
        "prepared_digest_mismatch",
        "workspace_diverged",
        "unsupported_citation_kind",
    ),
    "read",
    "Show a handoff as untrusted history with its evidence checked and the checkout compared.",
    "default",
)
GET_HANDOFF: Final = Op(
    "get_handoff",
    "/v1/handoff/get",
    GetHandoffAsk,
    GetHandoffAnswer,
    ("handoff_not_found", "handoff_scope_mismatch"),
    "read",
    "Read one revision, or the current one.",
    "default",
)
LIST_HANDOFF_REVISIONS: Final = Op(
    "list_handoff_revisions",
    "/v1/handoff/list-revisions",
    ListRevisionsAsk,
    ListRevisionsAnswer,
    ("invalid_cursor",),
    "read",
    "List the revisions of a workstream, newest first.",
    "default",
)

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    *SOURCE_OPERATIONS,
    *ACKNOWLEDGEMENT_OPERATIONS,
    PREPARE_HANDOFF,
    FINALIZE_HANDOFF,
    COMMIT_HANDOFF,
    HAND_OFF_NOW,
    CONTINUE_HANDOFF,
    GET_HANDOFF,
    LIST_HANDOFF_REVISIONS,
    *RECOVER_OPERATIONS,
    *DIFF_OPERATIONS,
    *EXPORT_OPERATIONS,
)
