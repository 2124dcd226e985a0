"""Capturing and reading sources: the handlers of ``/v1/sources`` and the capture step of the handoff operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from passdown.handoff import store, test_run_store
from passdown.handoff.capture import SourceRecord, body_value, record
from passdown.handoff.codes import source_key
from passdown.handoff.models import Recorder, SourceRef
from passdown.handoff.source_operations import (
    CaptureSourceAnswer,
    CaptureSourceAsk,
    GetSourceAnswer,
    GetSourceAsk,
    InlineEvidence,
    ListSourcesAnswer,
    ListSourcesAsk,
    Source,
    SourceSummary,
)
from passdown.kernel.clock import Clock
from passdown.kernel.cursors import pack, unpack
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.timestamps import format_timestamp
from passdown.storage.session import Session, Store


def record_of(who: Principal, scope_id: str, ask: CaptureSourceAsk | InlineEvidence) -> SourceRecord:
    """The record that a capture request or a piece of inline evidence stands for."""
    return record(
        who,
        scope_id=scope_id,
        source_type=ask.source_type,
        source_id=ask.source_id,
        content=ask.content,
        descriptor=ask.descriptor,
        name=ask.name,
        description=ask.description,
        said=ask.said,
    )


@dataclass(frozen=True, slots=True)
class Captured:
    """A source after capture; ``replayed`` when it was there already with the same content."""

    row: store.SourceRow
    replayed: bool


def capture(session: Session, item: SourceRecord, *, who: Principal, now_us: int, after_revision: int) -> Captured:
    """Insert, or find the same identity with the same content and assurance; anything else is ``source_conflict``."""
    inserted = store.insert_source(session, item, after_revision=after_revision, now_us=now_us, who=who)
    row = store.source(session, item.scope_id, source_key(item.source_type, item.source_id))
    if row is None:
        raise PassdownError("store_not_readable", rule="missing_row")
    if inserted and item.test_run is not None:
        test_run_store.insert(session, item.scope_id, item.source_id, item.test_run)
    if not inserted and (row.sha256, row.media_type, row.assurance) != (item.sha256, item.media_type, item.assurance):
        raise PassdownError("source_conflict", current_sha256=row.sha256.hex(), current_assurance=row.assurance)
    return Captured(row, not inserted)


def ref_of(row: store.SourceRow) -> SourceRef:
    """The reference of a stored source."""
    return SourceRef(source_type=row.source_type, source_id=row.source_id)


def view(scope_id: str, row: store.SourceRow) -> Source:
    """A stored source as the wire shows it."""
    value: Any = body_value(row.media_type, row.body or b"")
    is_content = row.source_type == "content"
    return Source(
        scope_id=scope_id,
        source_ref=ref_of(row),
        materialization=row.materialization,  # type: ignore[arg-type]
        assurance=row.assurance,  # type: ignore[arg-type]
        read_by=row.read_by,
        media_type=row.media_type,
        name=row.name,
        description=row.description,
        label=row.label,
        size=row.size,
        sha256=row.sha256.hex(),
        content=value if is_content else None,
        descriptor=None if is_content else value,
        recorded_at=format_timestamp(row.recorded_us),
        recorded_by=Recorder(principal_id=row.recorded_by, identity=row.recorded_identity),  # type: ignore[arg-type]
    )


class SourceService:
    """Handlers of ``capture_source``, ``get_source`` and ``list_sources``."""

    def __init__(self, database: Store, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def capture_source(self, who: Principal, ask: CaptureSourceAsk) -> CaptureSourceAnswer:
        """Store one source, or answer the one that is there."""
        item = record_of(who, ask.scope_id, ask)
        now_us = self._clock.now_us()

        def work(session: Session) -> Captured:
            head = store.head(session, ask.scope_id)
            return capture(session, item, who=who, now_us=now_us, after_revision=head.revision if head else 0)

        captured = self._database.write(work)
        return CaptureSourceAnswer(source=view(ask.scope_id, captured.row), replayed=captured.replayed)

    def get_source(self, who: Principal, ask: GetSourceAsk) -> GetSourceAnswer:
        """One source with its body, or ``source_not_found``."""
        key = source_key(ask.source_ref.source_type, ask.source_ref.source_id)
        row = self._database.read(lambda session: store.source(session, ask.scope_id, key))
        if row is None:
            raise PassdownError("source_not_found")
        return GetSourceAnswer(source=view(ask.scope_id, row))

    def list_sources(self, who: Principal, ask: ListSourcesAsk) -> ListSourcesAnswer:
        """One page, in the order of the revision that was current at capture."""
        after = unpack("sources", ask.cursor) or (0, b"")
        rows = self._database.read(lambda session: store.sources_after(session, ask.scope_id, after, ask.limit + 1))
        page = rows[: ask.limit]
        more = len(rows) > ask.limit
        return ListSourcesAnswer(
            sources=tuple(
                SourceSummary(
                    source_ref=ref_of(row),
                    assurance=row.assurance,  # type: ignore[arg-type]
                    label=row.label,
                    size=row.size,
                    sha256=row.sha256.hex(),
                    recorded_at=format_timestamp(row.recorded_us),
                )
                for row in page
            ),
            next_cursor=pack("sources", page[-1].after_revision, page[-1].key) if more else None,
        )
