"""Small shared steps about one revision: whose it is, and its content as a model."""

from __future__ import annotations

import orjson

from passdown.handoff import store
from passdown.handoff.models import HANDOFF_FAMILY, ArtifactRef, HandoffContent
from passdown.handoff.rules import Head
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import validate
from passdown.storage.session import Session


def to_head(ref: ArtifactRef | None) -> Head | None:
    """A reference as the rules know it."""
    return None if ref is None else Head(ref.artifact_id, ref.revision)


def require_own(session: Session, scope_id: str, head: Head | None, ref: ArtifactRef) -> None:
    """Refuse a reference that is not of this scope: ``handoff_scope_mismatch`` if it is of another one."""
    if ref.family == HANDOFF_FAMILY and head is not None and ref.artifact_id == head.artifact_id:
        return
    owner = store.scope_of_artifact(session, ref.artifact_id) if ref.family == HANDOFF_FAMILY else None
    raise PassdownError("handoff_not_found" if owner is None else "handoff_scope_mismatch", field="handoff_ref")


def content_value(row: store.RevisionRow) -> HandoffContent:
    """The content of a stored revision."""
    return validate(HandoffContent, orjson.loads(row.content))
