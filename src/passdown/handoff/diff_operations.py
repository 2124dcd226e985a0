"""Comparing two revisions of one workstream, described once.

Presentation only: nothing is merged or concluded. Statements are matched by what they cite and what they say; the same
two revisions give the same bytes. (Handoff core, "Lifecycle".)
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from passdown.handoff.models import ArtifactRef, Omission, Statement
from passdown.kernel import limits
from passdown.kernel.operations import Op
from passdown.kernel.wire import Count, Identifier, Wire

Kind = Literal["same", "moved", "text_changed", "citations_changed", "added", "removed"]
Place = Annotated[int, Field(ge=0, lt=limits.STATEMENTS)]


class DiffHandoffsAsk(Wire):
    """Without ``after`` the current revision; without ``before`` the revision that ``after`` was made on."""

    scope_id: Identifier
    before: ArtifactRef | None = None
    after: ArtifactRef | None = None


class TextChange(Wire):
    """A field with one value, before and after; ``changed`` is whether they differ."""

    changed: bool
    before: str | None
    after: str | None


class StatementChange(Wire):
    """One statement of either side, in the order of the newer one, removed ones where they stood.

    ``same`` and ``moved`` are equal word for word, at the same and at another place among the statements that both
    have; ``text_changed`` cites the same, ``citations_changed`` says the same. Indexes count from 0.
    """

    kind: Kind
    before_index: Place | None
    after_index: Place | None
    before: Statement | None
    after: Statement | None


class NextActionChange(Wire):
    """``replaced``: it says something else and cites something else."""

    kind: Kind | Literal["none", "replaced"]
    before: Statement | None
    after: Statement | None


class OmissionChange(Wire):
    kind: Literal["same", "added", "removed"]
    omission: Omission


class DiffHandoffsAnswer(Wire):
    """``before`` is null where ``after`` is the first revision: then everything is added."""

    scope_id: Identifier
    before: ArtifactRef | None
    after: ArtifactRef
    identical: bool
    objective: TextChange
    disposition: TextChange
    next_action: NextActionChange
    state: Annotated[tuple[StatementChange, ...], Field(max_length=2 * limits.STATEMENTS)]
    omissions: Annotated[tuple[OmissionChange, ...], Field(max_length=2 * limits.OMISSIONS)]
    counts: dict[str, Count]


DIFF_HANDOFFS: Final = Op(
    "diff_handoffs",
    "/v1/handoff/diff",
    DiffHandoffsAsk,
    DiffHandoffsAnswer,
    ("handoff_not_found", "handoff_scope_mismatch"),
    "read",
    "Compare two revisions field by field, statements matched by what they cite and say.",
    "default",
)

DIFF_OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (DIFF_HANDOFFS,)
