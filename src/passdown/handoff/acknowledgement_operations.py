"""The receiver's receipt of a handoff, described once.

A receipt says who took a handoff, or declined it, and what they checked of it. It is append-only, visible to whoever
reads the handoff, changes no revision and grants nothing. The same principal with the same words about the same
handoff is a replay and answers the first receipt; other words are another receipt, and all of them stay. A prepared
handoff is named by its digest, and nobody here can tell whether it exists elsewhere. (Handoff core, "Lifecycle".)
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from passdown.handoff.models import ArtifactRef, Recorder, StatementText, by_kind
from passdown.kernel import limits
from passdown.kernel.operations import Op
from passdown.kernel.wire import TAG, Count, Digest, Identifier, Wire

Verdict = Literal["accepted", "declined"]
SHOWN_ACKNOWLEDGEMENTS: Final = 64
"""Receipts that come with a handoff, newest first; the others are counted."""


class ExactReceipt(Wire):
    """Names a committed revision."""

    kind: Literal["exact"]
    handoff_ref: ArtifactRef


class PreparedReceipt(Wire):
    """Names a prepared handoff by its content digest."""

    kind: Literal["prepared"]
    content_digest: Digest


ReceiptTarget = Annotated[
    Annotated[ExactReceipt, Tag(TAG + "exact")] | Annotated[PreparedReceipt, Tag(TAG + "prepared")],
    Discriminator(by_kind),
]


class ReceiverCheck(Wire):
    """What the receiver looked at. ``state_index`` counts from 0 and is null for the next action."""

    claim: Literal["state", "next_action"]
    state_index: Annotated[int, Field(ge=0, lt=limits.STATEMENTS)] | None = None
    result: Literal["confirmed", "refuted", "not_checked"]
    note: StatementText | None = None


class AcknowledgeHandoffAsk(Wire):
    """``reason`` is required where the verdict is ``declined``; each claim is checked at most once."""

    scope_id: Identifier
    target: ReceiptTarget
    verdict: Verdict
    reason: StatementText | None = None
    checks: Annotated[tuple[ReceiverCheck, ...], Field(max_length=limits.STATEMENTS + 1)] = ()


class Acknowledgement(Wire):
    """One receipt. ``handoff_ref`` is null for that of a prepared handoff."""

    handoff_ref: ArtifactRef | None
    content_digest: Digest
    verdict: Verdict
    reason: str | None
    checks: tuple[ReceiverCheck, ...]
    recorded_at: str
    recorded_by: Recorder


class Acknowledgements(Wire):
    """All receipts of a handoff: how many of each verdict, and the newest at most 64, newest first."""

    accepted: Count
    declined: Count
    newest: Annotated[tuple[Acknowledgement, ...], Field(max_length=SHOWN_ACKNOWLEDGEMENTS)]


class AcknowledgeHandoffAnswer(Wire):
    """``replayed`` is true when the same receipt was there already."""

    acknowledgement: Acknowledgement
    replayed: bool


ACKNOWLEDGE_HANDOFF: Final = Op(
    "acknowledge_handoff",
    "/v1/handoff/acknowledge",
    AcknowledgeHandoffAsk,
    AcknowledgeHandoffAnswer,
    ("handoff_not_found", "handoff_scope_mismatch"),
    "append",
    "Say that a handoff was accepted or declined, and what was checked of it; changes no revision.",
    "default",
)

ACKNOWLEDGEMENT_OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (ACKNOWLEDGE_HANDOFF,)
