"""The handlers of the report: select exactly, check, assemble, project. Every call only reads.

A report is made in five steps, each a bounded number of set reads: the catalog in one snapshot; the heads of everything
that it may show, twice; the contents; the evidence; the projection. Heads that differ between the two collections start
it over from a fresh catalog, at most ``head_retries`` times, then the answer is ``handoff_report_busy``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from passdown.handoff.models import handoff_ref
from passdown.kernel import limits
from passdown.kernel.clock import Clock
from passdown.kernel.cursors import pack, unpack
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import IdSource
from passdown.kernel.operations import Handler, Principal
from passdown.kernel.timestamps import format_timestamp
from passdown.kernel.wire import dump
from passdown.report import assemble, catalog_store
from passdown.report.assemble import Frozen, Member, Report, Settings
from passdown.report.catalog_rules import Descriptor
from passdown.report.catalog_service import CatalogService
from passdown.report.filters import catalog_matches, disposition_matches
from passdown.report.fragments import Fragments
from passdown.report.models import UNGROUPED_ID, Filters, GetHandoffReportAsk
from passdown.report.operations import (
    ListReportRevisionsAnswer,
    ListReportRevisionsAsk,
    RenderedReport,
    ReportRevision,
)
from passdown.report.port import Exact, HandoffReader, Head, Revision
from passdown.report.selection import stable
from passdown.report.ungrouped import ungrouped_project, ungrouped_workstream
from passdown.storage.session import Session, Store, chunks

Renderer = Callable[[dict[str, Any]], bytes]
"""A finished report to its Markdown in UTF-8."""

MAX_HEAD_RETRIES: Final = 5
MEDIA_TYPES: Final = {"markdown": "text/markdown; charset=utf-8", "json": "application/json"}
GUIDANCE: Final = ["filter_by_kind_label_or_disposition", "turn_off_evidence_checks", "export_by_workstream"]


class ReportService:
    """One handler per operation of the room.

    ``workstreams`` and ``output_bytes`` bound one report (100 and 10,485,760); ``head_retries`` (3, at most 5) is how
    often a selection starts over when heads moved under it. ``fragments`` keeps what reports have in common.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdSource,
        reader: HandoffReader,
        renderer: Renderer,
        *,
        fragments: Fragments | None = None,
        workstreams: int = limits.REPORT_WORKSTREAMS,
        output_bytes: int = limits.REPORT_BYTES,
        head_retries: int = limits.HEAD_RETRIES,
    ) -> None:
        if not 0 <= head_retries <= MAX_HEAD_RETRIES:
            raise ValueError(f"head_retries is 0..{MAX_HEAD_RETRIES}")
        self._store = store
        self._clock = clock
        self._reader = reader
        self._renderer = renderer
        self._fragments = fragments
        self._workstreams = workstreams
        self._output_bytes = output_bytes
        self._head_retries = head_retries
        self._catalog = CatalogService(store, clock, ids, reader)

    def handlers(self) -> dict[str, Handler]:
        """Operation name to handler."""
        return {
            **self._catalog.handlers(),
            "list_handoff_report_revisions": self.list_handoff_report_revisions,
            "get_handoff_report": self.get_handoff_report,
        }

    def list_handoff_report_revisions(self, who: Principal, ask: ListReportRevisionsAsk) -> ListReportRevisionsAnswer:
        """The revisions of a scope in short, newest first."""
        position = unpack("report_revisions", ask.cursor)
        found = self._reader.revisions(ask.scope_id, position[0] if position else None, ask.limit + 1)
        page = found[: ask.limit]
        return ListReportRevisionsAnswer(
            revisions=tuple(map(_in_short, page)),
            next_cursor=pack("report_revisions", page[-1].exact.revision) if len(found) > ask.limit else None,
        )

    def get_handoff_report(self, who: Principal, ask: GetHandoffReportAsk) -> RenderedReport:
        """The report in the asked projection, with both digests; ``download`` changes nothing in it."""
        finished = self.report(ask)
        report = finished.value
        body = finished.canonical if ask.format == "json" else self._renderer(report)
        self._refuse_too_large(len(body), report)
        return RenderedReport(
            body=body,
            media_type=MEDIA_TYPES[ask.format],
            selection_digest=report["selection_digest"],
            report_digest=report["report_digest"],
            file_name=assemble.file_name(report),
        )

    def report(self, ask: GetHandoffReportAsk) -> Report:
        """The canonical report, before it is projected and its size is judged."""
        frozen = self._freeze(ask.project_id, ask.filters)
        return assemble.assemble(
            frozen,
            Settings(
                locale=ask.locale or frozen.project["default_locale"],
                format=ask.format,
                generated_us=self._clock.now_us(),
                evidence_checks=ask.include_evidence_checks,
                generated_summary=ask.include_generated_summary,
            ),
            self._fragments,
        )

    # --- selecting ----------------------------------------------------------------------------------------------------

    def _freeze(self, project_id: str, filters: Filters) -> Frozen:
        for _ in range(1 + self._head_retries):
            project, counter, members = self._catalog_snapshot(project_id, include_archived=filters.include_archived)
            matched = list(filter(catalog_matches(filters), members))
            scope_ids = [workstream["scope_id"] for workstream in matched]
            first, second = self._reader.latest_many(scope_ids), self._reader.latest_many(scope_ids)
            if stable(first, second):
                return Frozen(
                    project=project,
                    project_revision=counter,
                    filters=dump(filters),
                    total=len(members),
                    matched=len(matched),
                    members=self._selected(matched, second, filters),
                )
        raise PassdownError("handoff_report_busy", retries=self._head_retries)

    def _catalog_snapshot(self, project_id: str, *, include_archived: bool) -> tuple[Descriptor, int, list[Descriptor]]:
        """The project, its counter and its members, as of one moment."""
        if project_id == UNGROUPED_ID:
            heads = self._reader.ungrouped(None, None)
            return ungrouped_project(), 0, [ungrouped_workstream(head.scope_id) for head in heads]

        def work(session: Session) -> tuple[Descriptor, int, list[Descriptor]]:
            state = catalog_store.project(session, project_id)
            if state is None:
                raise PassdownError("project_not_found", field="project_id")
            members = catalog_store.members(session, project_id, include_archived=include_archived)
            return state.descriptor, state.project_revision, members

        return self._store.read(work)

    def _selected(self, matched: Sequence[Descriptor], heads: Mapping[str, Head], filters: Filters) -> Sequence[Member]:
        """What passes the second stage. Contents are read in runs, so that a large project is never held whole."""
        if not filters.dispositions:
            self._refuse_too_many(len(matched))
        selected: list[Member] = []
        count = 0
        for run in chunks(matched):
            members = self._with_contents(run, heads)
            passing = [member for member in members if disposition_matches(filters, member.disposition)]
            count += len(passing)
            if count <= self._workstreams:
                selected += passing
        self._refuse_too_many(count)
        return self._with_evidence(selected)

    def _with_contents(self, workstreams: Sequence[Descriptor], heads: Mapping[str, Head]) -> list[Member]:
        refs = [_exact(heads[item["scope_id"]]) for item in workstreams if item["scope_id"] in heads]
        revisions = self._reader.get_many(refs)
        if len(revisions) != len(refs):
            raise PassdownError("handoff_report_inconsistent", missing=len(refs) - len(revisions))
        members = []
        for workstream in workstreams:
            head = heads.get(workstream["scope_id"])
            members.append(Member(workstream, head, None if head is None else revisions[_exact(head)]))
        return members

    def _with_evidence(self, members: Sequence[Member]) -> list[Member]:
        facts = self._reader.check_evidence_many([_exact(member.head) for member in members if member.head])
        return [
            Member(member.workstream, member.head, member.revision, facts.get(_exact(member.head), ()))
            if member.head
            else member
            for member in members
        ]

    # --- limits -------------------------------------------------------------------------------------------------------

    def _refuse_too_many(self, actual: int) -> None:
        if actual > self._workstreams:
            raise PassdownError("too_many_workstreams", limit=self._workstreams, actual=actual)

    def _refuse_too_large(self, actual: int, report: Mapping[str, Any]) -> None:
        if actual > self._output_bytes:
            raise PassdownError(
                "handoff_report_too_large",
                limit=self._output_bytes,
                estimated_bytes=actual,
                selected_workstreams=report["coverage"]["selected_workstreams"],
                guidance=GUIDANCE,
            )


def _exact(head: Head) -> Exact:
    return Exact(head.scope_id, head.artifact_id, head.revision)


def _in_short(revision: Revision) -> ReportRevision:
    return ReportRevision(
        handoff_ref=handoff_ref(revision.exact.artifact_id, revision.exact.revision),
        content_digest=revision.content_digest,
        objective=revision.content["objective"],
        disposition=revision.content["disposition"],
        recorded_at=format_timestamp(revision.recorded_us),
    )
