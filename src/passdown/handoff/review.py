"""The handlers of ``diff_handoffs`` and ``export_handoff``: they read revisions and ask the rules."""

from __future__ import annotations

from typing import Any

from passdown.handoff import store
from passdown.handoff.acknowledgements import acknowledgements
from passdown.handoff.capture import body_value
from passdown.handoff.diff_operations import DiffHandoffsAnswer, DiffHandoffsAsk
from passdown.handoff.differences import differences
from passdown.handoff.export_operations import BODY_BYTES, ExportHandoffAsk, HandoffExport
from passdown.handoff.exports import sealed
from passdown.handoff.models import ArtifactRef, handoff_ref
from passdown.handoff.revisions import content_value, require_own
from passdown.handoff.rules import CitationValue, Head, cited, reference
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.timestamps import format_timestamp
from passdown.kernel.wire import dump, validate
from passdown.storage.session import Session, Store


class ReviewService:
    """Two reading handlers."""

    def __init__(self, database: Store) -> None:
        self._database = database

    def diff_handoffs(self, who: Principal, ask: DiffHandoffsAsk) -> DiffHandoffsAnswer:
        """What differs between two revisions of the scope."""

        def work(session: Session) -> DiffHandoffsAnswer:
            head = store.head(session, ask.scope_id)
            after = _named(session, ask.scope_id, head, ask.after, "after")
            before = None
            if ask.before is not None:
                before = _named(session, ask.scope_id, head, ask.before, "before")
            elif after.base_revision:
                before = store.revision(session, ask.scope_id, after.base_revision)
            found = differences(dump(content_value(before)) if before else None, dump(content_value(after)))
            return validate(
                DiffHandoffsAnswer,
                {
                    "scope_id": ask.scope_id,
                    "before": dump(handoff_ref(before.artifact_id, before.revision)) if before else None,
                    "after": dump(handoff_ref(after.artifact_id, after.revision)),
                    **found,
                },
            )

        return self._database.read(work)

    def export_handoff(self, who: Principal, ask: ExportHandoffAsk) -> HandoffExport:
        """The document of one revision."""

        def work(session: Session) -> HandoffExport:
            head = store.head(session, ask.scope_id)
            row = _named(session, ask.scope_id, head, ask.handoff_ref, "handoff_ref")
            return sealed(_members(session, ask, row))

        return self._database.read(work)


def _named(
    session: Session, scope_id: str, head: Head | None, ref: ArtifactRef | None, field: str
) -> store.RevisionRow:
    """The revision that ``ref`` names, the current one for None; else a refusal with ``field``."""
    if ref is not None:
        require_own(session, head, ref, field)
    wanted = ref.revision if ref is not None else head.revision if head else 0
    row = store.revision(session, scope_id, wanted)
    if row is None:
        raise PassdownError("handoff_not_found", field=field)
    return row


def _members(session: Session, ask: ExportHandoffAsk, row: store.RevisionRow) -> dict[str, Any]:
    content = content_value(row)
    room = BODY_BYTES if ask.include_bodies else 0
    evidence, left_out = [], 0
    for citation in cited(dump(content)):
        item, used, is_left_out = _evidence(session, ask, citation, room)
        room -= used
        left_out += is_left_out
        evidence.append(item)
    receipts = acknowledgements(
        session, ask.scope_id, digest=row.content_digest, revision=row.revision, artifact_id=row.artifact_id
    )
    return {
        "scope_id": ask.scope_id,
        "handoff_ref": dump(handoff_ref(row.artifact_id, row.revision)),
        "base": dump(handoff_ref(row.artifact_id, row.base_revision)) if row.base_revision else None,
        "content": dump(content),
        "content_digest": row.content_digest,
        "recorded_at": format_timestamp(row.recorded_us),
        "recorded_by": {"principal_id": row.recorded_by, "identity": row.recorded_identity},
        "evidence": evidence,
        "bodies_left_out": left_out,
        "acknowledgements": dump(receipts),
    }


def _evidence(
    session: Session, ask: ExportHandoffAsk, citation: CitationValue, room: int
) -> tuple[dict[str, Any], int, bool]:
    """The entry of one citation, the bytes of body that it took, and whether its body was left out for want of room."""
    ref = reference(citation)
    if ref.key is None:
        digest = store.revision_digest(session, ask.scope_id, ref.revision or 0)
        return {"citation": citation, "source": None, "content_digest": digest}, 0, False
    found = store.source(session, ask.scope_id, ref.key)
    if found is None:
        return {"citation": citation, "source": None, "content_digest": None}, 0, False
    is_taken = ask.include_bodies and found.size <= room
    is_left_out = ask.include_bodies and not is_taken
    source = {
        "materialization": found.materialization,
        "assurance": found.assurance,
        "read_by": found.read_by,
        "media_type": found.media_type,
        "name": found.name,
        "description": found.description,
        "label": found.label,
        "size": found.size,
        "sha256": found.sha256.hex(),
        "recorded_at": format_timestamp(found.recorded_us),
        "recorded_by": {"principal_id": found.recorded_by, "identity": found.recorded_identity},
        "body": body_value(found.media_type, found.body or b"") if is_taken else None,
        "body_left_out": is_left_out,
    }
    return {"citation": citation, "source": source, "content_digest": None}, found.size if is_taken else 0, is_left_out
