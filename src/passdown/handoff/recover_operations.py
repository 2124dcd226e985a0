"""Recovering a draft from what is on disk, described once.

For work whose author ended before it could hand off. The host that has the checkout gives what it reads there as
inline evidence with statements about it; the store adds the words of the current handoff. The evidence is captured,
a revision is never made: the draft is looked at, finalised and committed by whoever answers for it.
(Handoff core, "Lifecycle".)
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from passdown.handoff.models import ArtifactRef, Draft, DraftOmission, DraftStatement, Objective, SourceRef
from passdown.handoff.source_operations import MAX_EVIDENCE, InlineEvidence
from passdown.kernel import limits
from passdown.kernel.operations import Op
from passdown.kernel.wire import Identifier, Wire

OWN_OMISSIONS: Final = 4
"""Omissions that a recovered draft has of its own at most: room is kept for them."""


class RecoverDraftAsk(Wire):
    """``objective`` is needed only where the workstream has no handoff. ``locale`` is the language of what is added."""

    scope_id: Identifier
    objective: Objective | None = None
    evidence: Annotated[tuple[InlineEvidence, ...], Field(max_length=MAX_EVIDENCE)] = ()
    state: Annotated[tuple[DraftStatement, ...], Field(max_length=limits.STATEMENTS)] = ()
    omissions: Annotated[tuple[DraftOmission, ...], Field(max_length=limits.OMISSIONS - OWN_OMISSIONS)] = ()
    locale: Literal["en", "zh-CN"] = "en"


class RecoverDraftAnswer(Wire):
    """A draft with ``origin: recovered`` on the head that was seen (``base``, null for none); nothing is committed."""

    scope_id: Identifier
    base: ArtifactRef | None
    draft: Draft
    captured: tuple[SourceRef, ...]


RECOVER_DRAFT: Final = Op(
    "recover_draft",
    "/v1/handoff/recover",
    RecoverDraftAsk,
    RecoverDraftAnswer,
    ("source_conflict", "source_too_large", "not_canonical", "citation_not_readable", "unsupported_citation_kind"),
    "append",
    "Make a draft of work whose author could not hand off; it is never committed by itself.",
    "policy",
)

RECOVER_OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (RECOVER_DRAFT,)
