"""Small shared steps about one revision: whose it is, and its content as a model."""

from __future__ import annotations

import orjson

from passdown.handoff import store
from passdown.handoff.models import HANDOFF_FAMILY, ArtifactRef, HandoffContent
from passdown.handoff.rules import Head
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import validate
from passdown.storage.session import Session


def to_head(ref: ArtifactRef | None, field: str) -> Head | None:
    """The base named in ``field`` as the rules know it; ``invalid_request`` if it is no handoff."""
    if ref is None:
        return None
    if ref.family != HANDOFF_FAMILY:
        errors = [{"field": f"{field}.family", "rule": "not_a_handoff"}]
        raise PassdownError("invalid_request", errors=errors, error_count=1)
    return Head(ref.artifact_id, ref.revision)


def require_own(session: Session, head: Head | None, ref: ArtifactRef, field: str) -> None:
    """Refuse a reference that is not of the scope of ``head``: ``handoff_scope_mismatch`` if it is of another one."""
    if ref.family == HANDOFF_FAMILY and head is not None and ref.artifact_id == head.artifact_id:
        return
    owner = store.scope_of_artifact(session, ref.artifact_id) if ref.family == HANDOFF_FAMILY else None
    raise PassdownError("handoff_not_found" if owner is None else "handoff_scope_mismatch", field=field)


def content_value(row: store.RevisionRow) -> HandoffContent:
    """The content of a stored revision."""
    return validate(HandoffContent, orjson.loads(row.content))
