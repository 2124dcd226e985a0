"""The canonical report from frozen facts. Pure: the same facts, settings and clock value give the same bytes.

The report is built as a plain JSON value with every member that the schema has, so that two projections of one
selection differ only in ``locale``, ``format``, ``renderer_version``, ``generated_at`` and ``report_digest``. Nothing
is inferred: without an observed activity the activity members say ``unknown``, without a check evidence says
``not_checked``, and no count is turned into progress.

What a report says of one handoff depends on its revision, on the facts of its evidence and on whether they were asked
for, and on nothing else. It is made, and written, once for equal ones and shared by the reports that show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from passdown.handoff.models import HANDOFF_FAMILY
from passdown.handoff.rules import cited, evidence_checks, identity, is_unproved, rests_on
from passdown.kernel.canonical import canonical_bytes_of_validated, digest_pieces
from passdown.kernel.errors import PassdownError
from passdown.kernel.timestamps import format_timestamp
from passdown.report import selection
from passdown.report.fragments import Fragments
from passdown.report.models import REPORT_SCHEMA
from passdown.report.port import EvidenceFact, Head, Revision

JSON_RENDERER: Final = "json.v1"
NOT_CHECKED: Final = "not_checked"

_ORDER: Final = {"blocked": 0, "continuable": 1, "no_handoff": 2, "unknown": 3, "complete": 4}
# The feeds of activity that exist; `other` is what a caller records by hand and has no feed.
_FEEDS: Final = ("coding_session", "git_commit", "git_worktree", "handoff_observation")

_WITHOUT_ACTIVITY: Final[dict[str, Any]] = {
    "activity_status": "unknown",
    "observed_activity_count": 0,
    "activities": [],
    "temporal_basis": {"baseline": None, "end": None},
    "baseline": None,
}
_OBJECTS: Final = 4


@dataclass(frozen=True, slots=True)
class Member:
    """One selected workstream: its descriptor, and the head and revision that were frozen for it, or neither."""

    workstream: Mapping[str, Any]
    head: Head | None
    revision: Revision | None
    facts: tuple[EvidenceFact, ...] = ()

    @property
    def disposition(self) -> str | None:
        """What the handoff says of itself; None without one."""
        return None if self.revision is None else str(self.revision.content["disposition"])


@dataclass(frozen=True, slots=True)
class Frozen:
    """Everything selected. ``total`` and ``matched`` count workstreams before any filter and after the first stage."""

    project: Mapping[str, Any]
    project_revision: int
    filters: Mapping[str, Any]
    total: int
    matched: int
    members: Sequence[Member]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the report is made. ``generated_us`` is the only clock value in it."""

    locale: str
    format: str
    generated_us: int
    evidence_checks: bool
    generated_summary: bool


@dataclass(frozen=True, slots=True)
class Report:
    """A finished report: the JSON value of ``HandoffReport``, and its canonical bytes, which are its JSON export.

    Parts of ``value`` may be shared with other reports, so nobody changes it.
    """

    value: dict[str, Any]
    canonical: bytes


@dataclass(frozen=True, slots=True)
class _Part:
    """What is said of a workstream besides its descriptor: the members, and their canonical object left open."""

    members: Mapping[str, Any]
    written: bytes


def assemble(frozen: Frozen, settings: Settings, fragments: Fragments | None = None) -> Report:
    """The report with both digests. ``fragments`` keeps what other reports will show too; it changes no byte."""
    fragments = fragments or Fragments(entries=0)
    envelope = selection.latest_envelope(
        project_id=frozen.project["project_id"],
        project_revision=frozen.project_revision,
        filters=frozen.filters,
        entries=[selection.entry(member.workstream, member.head) for member in frozen.members],
    )
    ordered = _ordered(frozen.members)
    parts = [_part(member, settings.evidence_checks, fragments) for member in ordered]
    workstreams = [
        {**part.members, "workstream": member.workstream} for member, part in zip(ordered, parts, strict=True)
    ]
    report: dict[str, Any] = {
        "schema": REPORT_SCHEMA,
        "trust": "untrusted_history",
        "locale": settings.locale,
        "format": settings.format,
        "report_kind": "handoff",
        "generated_at": format_timestamp(settings.generated_us),
        "renderer_version": renderer_version(settings.format, settings.locale),
        "project": frozen.project,
        "project_revision": frozen.project_revision,
        "filters": envelope["normalized_filters"],
        "period": envelope["normalized_period"],
        "selection_consistency": envelope["selection_consistency"],
        "activity_cursor": envelope["activity_cursor"],
        "baseline_selection": envelope["baseline_selection"],
        "end_selection": envelope["end_selection"],
        "activity_selection": envelope["activity_selection"],
        "selection_digest": selection.digest_of_own(envelope),
        "coverage": _coverage(frozen, workstreams),
        "summary": _summary(frozen.members),
        "changes": None,
        "unassigned_activity": [],
        "generated_summary": _generated_summary(settings.generated_summary),
        "workstreams": workstreams,
    }
    return _sealed(report, _written(ordered, parts))


def _sealed(report: dict[str, Any], workstreams: Sequence[bytes]) -> Report:
    """Put in ``report_digest``, which covers every other member. Each member is written once, for digest and export.

    ``workstreams`` are the pieces of the member of that name. A report may be of many megabytes, so pieces stay pieces
    until the end.
    """
    written: dict[str, Sequence[bytes]] = {
        name: workstreams if name == "workstreams" else (canonical_bytes_of_validated(value),)
        for name, value in report.items()
    }
    report["report_digest"] = digest_pieces(_object(written))
    written["report_digest"] = (b'"%s"' % report["report_digest"].encode(),)
    return Report(report, b"".join(_object(written)))


def _object(written: Mapping[str, Sequence[bytes]]) -> list[bytes]:
    """The pieces of an object. Names of members are ASCII, so their order as text is the order of RFC 8785."""
    pieces = []
    for name in sorted(written):
        pieces += [b',"%s":' % name.encode(), *written[name]]
    return [b"{", pieces[0][1:], *pieces[1:], b"}"]


def renderer_version(format_: str, locale: str) -> str:
    """The versioned renderer that the output comes from."""
    return JSON_RENDERER if format_ == "json" else f"markdown.{locale}.v1"


def file_name(report: Mapping[str, Any]) -> str:
    """A safe name for a download, of project id and digest only."""
    suffix = "json" if report["format"] == "json" else "md"
    digest = report["selection_digest"].removeprefix("sha256:")[:12]
    return f"handoff-report-{report['project']['project_id']}-{digest}.{suffix}"


def _ordered(members: Sequence[Member]) -> list[Member]:
    # Titles are stored in NFC; their bytes decide, without folding case or accents.
    return sorted(
        members,
        key=lambda member: (
            _ORDER[member.disposition or "no_handoff"],
            member.workstream["title"].encode(),
            member.workstream["scope_id"].encode(),
        ),
    )


def _written(ordered: Sequence[Member], parts: Sequence[_Part]) -> list[bytes]:
    """The pieces of the canonical array of the workstreams. The descriptor's member is the last of each by its name."""
    pieces = [b"["]
    for member, part in zip(ordered, parts, strict=True):
        pieces += [part.written, b',"workstream":', canonical_bytes_of_validated(dict(member.workstream)), b"}", b","]
    return [*(pieces[:-1] if ordered else pieces), b"]"]


def _part(member: Member, checked: bool, fragments: Fragments) -> _Part:
    if member.head is None or member.revision is None:
        return fragments.of(_without_handoff, weigh=_weight)
    return fragments.of(_of_handoff, member.revision, member.facts, checked, weigh=_weight)


def _weight(part: _Part) -> int:
    # Bytes of memory for each written one: the text, and the objects that it was written from.
    return _OBJECTS * len(part.written)


def _without_handoff() -> _Part:
    return _left_open(
        {
            "handoff_ref": None,
            "recorded_at": None,
            "content": None,
            "evidence_checks": [],
            "evidence": [],
            "unproved": False,
            "reporting_status": "no_handoff",
            "handoff_activity_relation": None,
        }
    )


def _of_handoff(revision: Revision, facts: tuple[EvidenceFact, ...], checked: bool) -> _Part:
    content = revision.content
    citations = cited(content)
    if len(citations) != len(facts):
        raise PassdownError("handoff_report_inconsistent", rule="evidence")
    evidence = list(zip(citations, facts, strict=True))
    readable = {identity(citation): _resolves(citation, fact) for citation, fact in evidence}
    assurance = {identity(citation): fact.assurance for citation, fact in evidence}
    checks = evidence_checks(content, lambda citation: readable[identity(citation)]) if checked else NOT_CHECKED
    return _left_open(
        {
            "handoff_ref": selection.handoff_ref(revision.exact),
            "recorded_at": format_timestamp(revision.recorded_us),
            "content": content,
            "evidence_checks": checks,
            "evidence": [
                _evidence(citation, fact, readable[identity(citation)] if checked else None)
                for citation, fact in evidence
            ],
            "unproved": is_unproved(content["disposition"], [assurance[identity(item)] for item in rests_on(content)]),
            "reporting_status": _reporting_status(content, checks),
            "handoff_activity_relation": "unknown",
        }
    )


def _left_open(members: dict[str, Any]) -> _Part:
    every = _WITHOUT_ACTIVITY | members
    return _Part(every, canonical_bytes_of_validated(every)[:-1])


def _resolves(citation: Mapping[str, Any], fact: EvidenceFact) -> bool:
    """A revision has to be one of the very artifact that is cited, of a family that exists here."""
    if citation["kind"] == "source":
        return fact.readable
    ref = citation["artifact_ref"]
    return fact.readable and ref["family"] == HANDOFF_FAMILY and ref["artifact_id"] == fact.artifact_id


def _evidence(citation: Mapping[str, Any], fact: EvidenceFact, readable: bool | None) -> dict[str, Any]:
    if citation["kind"] == "artifact":
        ref = citation["artifact_ref"]
        label = f"{ref['family']} #{ref['revision']}"
    else:
        label = fact.label if fact.label is not None else citation["source_ref"]["source_id"]
    return {
        "citation": citation,
        "assurance": fact.assurance,
        "label": label,
        "readable": readable,
        "read_by": fact.read_by,
        "remote_refs": fact.remote_refs,
    }


def _reporting_status(content: Mapping[str, Any], checks: str | Sequence[Mapping[str, Any]]) -> str:
    if checks != NOT_CHECKED and _has_unavailable(checks):
        return "evidence_unavailable"
    return "reported_with_omissions" if content["omissions"] else "reported"


def _has_unavailable(checks: Any) -> bool:
    return any(check["status"] == "unavailable" for check in checks)


def _coverage(frozen: Frozen, workstreams: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    with_handoff = [item for item in workstreams if item["content"] is not None]
    unchecked = [item for item in with_handoff if item["evidence_checks"] == NOT_CHECKED]
    return {
        "total_included_workstreams": frozen.total,
        "catalog_matched_workstreams": frozen.matched,
        "selected_workstreams": len(workstreams),
        "missing_handoff_workstreams": len(workstreams) - len(with_handoff),
        "unknown_end_workstreams": 0,
        "reported_with_omissions": sum(1 for item in with_handoff if item["content"]["omissions"]),
        "unchecked_evidence_workstreams": len(unchecked),
        "unavailable_evidence_workstreams": sum(
            1 for item in with_handoff if item["reporting_status"] == "evidence_unavailable"
        ),
        "activity_without_handoff_workstreams": 0,
        "activity_after_handoff_workstreams": 0,
        "unassigned_activity_events": 0,
        "unknown_time_events": 0,
        "enabled_activity_sources": [],
        "unavailable_activity_sources": [{"source": source, "reason": "never_run"} for source in _FEEDS],
    }


def _summary(members: Sequence[Member]) -> dict[str, int]:
    counts = {"continuable": 0, "blocked": 0, "complete": 0, "no_handoff": 0}
    for member in members:
        counts[member.disposition or "no_handoff"] += 1
    return {f"{name}_count": count for name, count in counts.items()}


def _generated_summary(requested: bool) -> dict[str, Any] | None:
    if not requested:
        return None
    return {"trust": "generated_untrusted", "status": "unavailable", "text": None, "citations": []}
