"""Checks an exported report from the file alone: no store, no network, no clock.

A JSON export is the canonical report itself, so both digests are recomputed from it. A Markdown export is a rendering:
it carries its selection envelope, whose digest is recomputed, but neither the text nor the report digest can be checked
without the canonical report, and the verdict says so. A digest is not a signature: it shows that a file fits itself,
not who made it.

The checks run from the outside in, and the first that fails decides:

1. size, form of the JSON or of the front matter (``body_too_large``, ``malformed_json``, ``unsupported_schema``);
2. the bytes are the canonical form: RFC 8785 over NFC, declared timestamps in UTC with six digits, selections in the
   order of their scopes, every member present (``not_canonical``);
3. the selection digest fits the envelope, then the report digest fits everything but itself (``digest_mismatch`` with
   ``digest``, ``expected``: what the file carries or null if that is no digest, ``actual``: what its content has).

So a change inside the envelope, or of the selection digest's own text, names ``selection_digest``; any other change
names ``report_digest``, which also covers all of the former. This module builds digests from :mod:`passdown.kernel`
alone, apart from the code that makes reports.

Public: :class:`Verdict`, :func:`verify`, :func:`selection_of`, :func:`envelope_of`. (Report RFC, digests.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from passdown.kernel.canonical import canonical_bytes, digest
from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import REPORT_BYTES
from passdown.kernel.strict_json import parse_json
from passdown.report.render.metadata import envelope_of, read_envelope, read_front_matter

REPORT_SCHEMA: Final = "powercontext.handoff-report.v1"
FILE_BYTES: Final = REPORT_BYTES + 64 * 1024
"""Longest file that is read: one whole output, and room for line ends that were converted on the way."""

MEMBERS: Final = frozenset(
    (
        "schema",
        "trust",
        "locale",
        "format",
        "report_kind",
        "generated_at",
        "renderer_version",
        "project",
        "project_revision",
        "filters",
        "period",
        "selection_consistency",
        "activity_cursor",
        "baseline_selection",
        "end_selection",
        "activity_selection",
        "selection_digest",
        "report_digest",
        "coverage",
        "summary",
        "changes",
        "unassigned_activity",
        "generated_summary",
        "workstreams",
    )
)
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")

_JSON_NOTE: Final = "Both digests fit the file. A digest is not a signature: it does not say who made the file."
_MARKDOWN_NOTE: Final = (
    "The selection digest fits the envelope in the file. The text itself and the report digest are not verified; "
    "for that, export the report as JSON. A digest is not a signature: it does not say who made the file."
)

DigestName = Literal["selection_digest", "report_digest"]

__all__ = ["FILE_BYTES", "REPORT_SCHEMA", "Verdict", "envelope_of", "selection_of", "verify"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A file that fits its digests.

    ``format`` is the form of the file, ``verified`` the digests that were recomputed, ``note`` what the verdict does
    not say. ``report_digest`` of a Markdown file is only what its front matter carries.
    """

    format: Literal["json", "markdown"]
    schema: str
    project_id: str
    selection_digest: str
    report_digest: str
    verified: tuple[DigestName, ...]
    note: str


def verify(data: bytes) -> Verdict:
    """The verdict on an exported report, JSON or Markdown, of at most :data:`FILE_BYTES` bytes.

    Raises ``body_too_large``, ``malformed_json``, ``unsupported_schema``, ``not_canonical`` or ``digest_mismatch``.
    """
    return _read(data)[0]


def selection_of(data: bytes) -> dict[str, Any]:
    """The selection envelope of an exported report, after the same checks as :func:`verify`."""
    return _read(data)[1]


def _read(data: bytes) -> tuple[Verdict, dict[str, Any]]:
    if len(data) > FILE_BYTES:
        raise PassdownError("body_too_large", limit=FILE_BYTES, actual=len(data))
    if data.startswith(b"---"):
        return _read_markdown(data)
    return _read_json(data)


# --- JSON ---


def _read_json(data: bytes) -> tuple[Verdict, dict[str, Any]]:
    report = parse_json(data, max_bytes=FILE_BYTES)
    if not isinstance(report, dict) or report.get("schema") != REPORT_SCHEMA:
        raise PassdownError("unsupported_schema", field="schema")
    if canonical_bytes(report) != data:
        raise PassdownError("not_canonical", rule="bytes")
    _require_members(report)
    _require_timestamps(report)
    _require_order(report)
    envelope = envelope_of(report)
    selection = _fits("selection_digest", report, envelope)
    covered = {name: value for name, value in report.items() if name != "report_digest"}
    whole = _fits("report_digest", report, covered)
    verdict = Verdict(
        format="json",
        schema=REPORT_SCHEMA,
        project_id=envelope["project_id"],
        selection_digest=selection,
        report_digest=whole,
        verified=("selection_digest", "report_digest"),
        note=_JSON_NOTE,
    )
    return verdict, envelope


def _fits(name: DigestName, carrier: Mapping[str, Any], content: object) -> str:
    """The digest of ``content``, if it is the one that the file carries."""
    carried, actual = carrier[name], digest(content)
    if carried != actual:
        # What stands in the file's place of a digest may be any text, which a refusal does not repeat.
        known = isinstance(carried, str) and _DIGEST.match(carried)
        raise PassdownError("digest_mismatch", digest=name, expected=carried if known else None, actual=actual)
    return actual


def _require_members(report: Mapping[str, Any]) -> None:
    missing = sorted(MEMBERS - report.keys())
    if missing:
        raise PassdownError("not_canonical", field=missing[0], rule="missing")
    project = report["project"]
    if not isinstance(project, dict) or not isinstance(project.get("project_id"), str):
        raise PassdownError("not_canonical", field="project.project_id", rule="missing")


def _require_timestamps(report: Mapping[str, Any]) -> None:
    """Declared timestamps stand in their one form; texts that only look like one are left alone."""
    for field, value in _timestamps(report):
        if value is not None and not (isinstance(value, str) and _TIMESTAMP.match(value)):
            raise PassdownError("not_canonical", field=field, rule="timestamp")


def _timestamps(report: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "generated_at", report["generated_at"]
    for period in _objects([report["period"]]):
        yield from ((f"period.{name}", period.get(name)) for name in ("start", "end"))
    for stream in _objects(report["workstreams"]):
        yield "workstreams.recorded_at", stream.get("recorded_at")
        yield from _event_times("workstreams.activities", stream.get("activities"))
    yield from _event_times("activity_selection", report["activity_selection"])
    yield from _event_times("unassigned_activity", report["unassigned_activity"])


def _event_times(field: str, events: object) -> Iterator[tuple[str, Any]]:
    for event in _objects(events):
        yield from ((f"{field}.{name}", event.get(name)) for name in ("occurred_at", "observed_at"))


def _objects(value: object) -> Iterable[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _require_order(report: Mapping[str, Any]) -> None:
    """Selections stand in the order of their scopes' bytes, each scope once."""
    for field in ("baseline_selection", "end_selection"):
        scopes = [entry.get("scope_id") for entry in _objects(report[field])]
        named = [scope.encode() for scope in scopes if isinstance(scope, str)]
        if len(named) != len(scopes) or any(one >= other for one, other in pairwise(named)):
            raise PassdownError("not_canonical", field=field, rule="order")


# --- Markdown ---


def _read_markdown(data: bytes) -> tuple[Verdict, dict[str, Any]]:
    try:
        # Mail and version control may convert line ends; nothing that is verified here depends on them.
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PassdownError("unsupported_schema", field="front_matter", rule="utf8", offset=error.start) from None
    head = read_front_matter(text)
    if head["schema"] != REPORT_SCHEMA:
        raise PassdownError("unsupported_schema", field="schema")
    envelope = read_envelope(text)
    if not _DIGEST.match(head["report_digest"]):
        raise PassdownError("unsupported_schema", field="report_digest", rule="digest")
    selection = _fits("selection_digest", head, envelope)
    if head["project_id"] != envelope.get("project_id"):
        raise PassdownError("not_canonical", field="project_id", rule="differs")
    verdict = Verdict(
        format="markdown",
        schema=REPORT_SCHEMA,
        project_id=head["project_id"],
        selection_digest=selection,
        report_digest=head["report_digest"],
        verified=("selection_digest",),
        note=_MARKDOWN_NOTE,
    )
    return verdict, envelope
