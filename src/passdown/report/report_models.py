"""The canonical report and its selection envelope as models: the schema of the answer, and of what is read back.

Reports are assembled as plain JSON values for speed; these models describe them for the API document and validate them
in tests. Every member is present in every report, null or empty where there is nothing to say.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from passdown.handoff.models import ArtifactRef, Citation, EvidenceCheck, EvidenceView, HandoffContent
from passdown.kernel.timestamps import TimestampRefused, format_timestamp, parse_timestamp
from passdown.kernel.wire import Count, Digest, Revision, Wire
from passdown.report.models import (
    OBJECT_SET,
    TEXT_SET,
    ActivitySource,
    FilterDisposition,
    Kind,
    Locale,
    ProjectDescriptor,
    RefKind,
    TimeBasis,
    WorkstreamDescriptor,
)


def _timestamp(value: str) -> str:
    try:
        return format_timestamp(parse_timestamp(value))
    except TimestampRefused as refused:
        raise PydanticCustomError("timestamp", "{rule}", {"rule": refused.rule}) from None


Timestamp = Annotated[str, AfterValidator(_timestamp)]
# What a saved envelope holds was judged when it was made. Only its form counts here, so that it can always be read.
Text = Annotated[str, AfterValidator(lambda value: unicodedata.normalize("NFC", value))]


class SavedRefFilter(Wire):
    kind: RefKind | None
    provider: Text | None
    external_id: Text | None


class SavedFilters(Wire):
    """The filters of a selection, as they were applied."""

    kinds: Annotated[tuple[Kind, ...], TEXT_SET]
    dispositions: Annotated[tuple[FilterDisposition, ...], TEXT_SET]
    labels: Annotated[tuple[Text, ...], TEXT_SET]
    external_refs: Annotated[tuple[SavedRefFilter, ...], OBJECT_SET]
    activity_sources: Annotated[tuple[ActivitySource, ...], TEXT_SET]
    agent_labels: Annotated[tuple[Text, ...], TEXT_SET]
    time_bases: Annotated[tuple[TimeBasis, ...], TEXT_SET]
    include_archived: bool


class Period(Wire):
    """A half-open interval ``[start, end)`` in UTC, and the zone that its days are shown in."""

    start: Timestamp
    end: Timestamp
    timezone: str


class SavedRef(Wire):
    family: Text
    artifact_id: Text
    revision: Revision


class SelectionEntry(Wire):
    """``handoff_ref`` is null exactly when ``status`` is not ``selected``; ``unknown`` is for past boundaries only."""

    scope_id: Text
    workstream_revision: Count
    status: Literal["selected", "no_handoff", "unknown"]
    handoff_ref: SavedRef | None

    @model_validator(mode="after")
    def _ref_fits_status(self) -> SelectionEntry:
        if (self.handoff_ref is not None) != (self.status == "selected"):
            raise PydanticCustomError("ref_and_status", "a reference without selection, or the reverse")
        return self


class ActivityEntry(Wire):
    event_id: Text
    source: ActivitySource
    source_event_id: Text
    occurred_at: Timestamp | None
    observed_at: Timestamp
    time_basis: TimeBasis


Consistency = Literal["exact_input", "optimistic_stable"]


class SelectionEnvelope(Wire):
    """Everything that a report was made from. Independent of language, rendering and the time of making."""

    schema_: Literal["powercontext.handoff-report-selection.v1"] = Field(alias="schema")
    project_id: Text
    project_revision: Count
    normalized_filters: SavedFilters
    normalized_period: Period | None
    selection_consistency: Consistency
    activity_cursor: Count
    baseline_selection: tuple[SelectionEntry, ...] | None
    end_selection: tuple[SelectionEntry, ...]
    activity_selection: tuple[ActivityEntry, ...]


class UnavailableSource(Wire):
    source: ActivitySource
    reason: Literal["unauthorized", "failed", "unsupported", "never_run"]


class Coverage(Wire):
    """How much the report knows; each counter stands for itself. Totals are those before any filter."""

    total_included_workstreams: Count
    catalog_matched_workstreams: Count
    selected_workstreams: Count
    missing_handoff_workstreams: Count
    unknown_end_workstreams: Count
    reported_with_omissions: Count
    unchecked_evidence_workstreams: Count
    unavailable_evidence_workstreams: Count
    activity_without_handoff_workstreams: Count
    activity_after_handoff_workstreams: Count
    unassigned_activity_events: Count
    unknown_time_events: Count
    enabled_activity_sources: tuple[ActivitySource, ...]
    unavailable_activity_sources: tuple[UnavailableSource, ...]


class Summary(Wire):
    continuable_count: Count
    blocked_count: Count
    complete_count: Count
    no_handoff_count: Count


class GeneratedSummary(Wire):
    """Prose of a model, kept apart from every fact. ``unavailable``: asked for, but nothing here can write it."""

    trust: Literal["generated_untrusted"]
    status: Literal["available", "unavailable"]
    text: str | None
    citations: tuple[Citation, ...]


class TemporalBasis(Wire):
    """How the two ends of a period are known; null for a report of the present."""

    baseline: Literal["exact_input", "observed", "baseline_unknown"] | None
    end: Literal["exact_input", "observed", "end_unknown"] | None


class ReportEvidence(EvidenceView):
    """One distinct citation of the handoff, in order of first appearance. ``readable`` null means not checked."""

    readable: bool | None  # type: ignore[assignment]


class WorkstreamReport(Wire):
    """One workstream: its descriptor, its handoff as untrusted history, and what supports it.

    ``unproved``: complete, but no cited evidence was read by Passdown's own reader.
    """

    workstream: WorkstreamDescriptor
    handoff_ref: ArtifactRef | None
    recorded_at: Timestamp | None
    content: HandoffContent | None
    evidence_checks: tuple[EvidenceCheck, ...] | Literal["not_checked"]
    evidence: tuple[ReportEvidence, ...]
    unproved: bool
    reporting_status: Literal["reported", "reported_with_omissions", "evidence_unavailable", "no_handoff", "unknown"]
    activity_status: Literal["no_observed_activity", "observed_activity", "activity_without_handoff", "unknown"]
    handoff_activity_relation: Literal["activity_after_handoff", "no_observed_activity_after_handoff", "unknown"] | None
    observed_activity_count: Count
    activities: tuple[()]
    temporal_basis: TemporalBasis
    baseline: None


class HandoffReport(Wire):
    """``powercontext.handoff-report.v1``. ``report_digest`` covers everything but itself."""

    schema_: Literal["powercontext.handoff-report.v1"] = Field(alias="schema")
    trust: Literal["untrusted_history"]
    locale: Locale
    format: Literal["markdown", "json"]
    report_kind: Literal["handoff"]
    generated_at: Timestamp
    renderer_version: Literal["json.v1", "markdown.zh-CN.v1", "markdown.en.v1"]
    project: ProjectDescriptor
    project_revision: Count
    filters: SavedFilters
    period: Period | None
    selection_consistency: Consistency
    activity_cursor: Count
    baseline_selection: tuple[SelectionEntry, ...] | None
    end_selection: tuple[SelectionEntry, ...]
    activity_selection: tuple[ActivityEntry, ...]
    selection_digest: Digest
    report_digest: Digest
    coverage: Coverage
    summary: Summary
    changes: None
    unassigned_activity: tuple[()]
    generated_summary: GeneratedSummary | None
    workstreams: tuple[WorkstreamReport, ...]
