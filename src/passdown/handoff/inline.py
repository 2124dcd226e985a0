"""Evidence that travels in a request: what each piece will be stored as, and its capture with the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from passdown.handoff import store
from passdown.handoff.capture import SourceRecord
from passdown.handoff.models import SourceRef
from passdown.handoff.places import within
from passdown.handoff.rules import CitationValue, Head
from passdown.handoff.source_operations import InlineEvidence
from passdown.handoff.sources import Captured, capture, record_of
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.wire import Wire, dump
from passdown.storage.session import Session


def source_citation(row: store.SourceRow) -> CitationValue:
    """The citation of a stored source."""
    return {"kind": "source", "source_ref": dump(SourceRef(source_type=row.source_type, source_id=row.source_id))}


@dataclass(frozen=True, slots=True)
class Inline:
    """What a piece of inline evidence will be stored as, and its place in the request."""

    place: str
    record: SourceRecord


def inline_records(who: Principal, scope_id: str, evidence: Sequence[Wire]) -> dict[str, Inline]:
    """The inline pieces of ``evidence`` by label."""
    found: dict[str, Inline] = {}
    for index, item in enumerate(evidence):
        if isinstance(item, InlineEvidence):
            place = f"evidence.{index}"
            if item.label in found:
                errors = [{"field": f"{place}.label", "rule": "duplicate_label"}]
                raise PassdownError("invalid_request", errors=errors, error_count=1)
            with within(place):
                found[item.label] = Inline(place, record_of(who, scope_id, item))
    return found


def capture_inline(
    session: Session, records: Mapping[str, Inline], *, who: Principal, now_us: int, head: Head | None
) -> dict[str, Captured]:
    after_revision = head.revision if head else 0
    found: dict[str, Captured] = {}
    for label, item in records.items():
        with within(item.place):
            found[label] = capture(session, item.record, who=who, now_us=now_us, after_revision=after_revision)
    return found
