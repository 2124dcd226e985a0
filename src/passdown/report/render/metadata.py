"""The machine-readable parts of a Markdown report, written and read back in one place.

A Markdown report carries two of them. The front matter holds nine members, always all of them and in this order; it
helps people and tools to find the report and is no interface for agents. The last code fence of the page holds the
selection envelope as one line of ASCII JSON, so that its digest can be recomputed from the file alone.

Invariants: what :func:`front_matter` writes is YAML and is what :func:`read_front_matter` returns; the line that
:func:`envelope_fence` writes has the selection digest of the report that it came from.

Public: :data:`FRONT_MATTER`, :data:`SELECTION_SCHEMA`, :func:`envelope_of`, :func:`front_matter`,
:func:`envelope_fence`, :func:`read_front_matter`, :func:`read_envelope`. (Report RFC, "Markdown" and
"selection_digest".)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from passdown.kernel.errors import PassdownError
from passdown.kernel.escape import ascii_json, yaml_scalar
from passdown.kernel.strict_json import parse_json

SELECTION_SCHEMA: Final = "powercontext.handoff-report-selection.v1"
FRONT_MATTER: Final = (
    "schema",
    "locale",
    "format",
    "project_id",
    "project_key",
    "report_kind",
    "selection_digest",
    "report_digest",
    "trust",
)
_OPEN_FENCE: Final = "\n```json\n"
_CLOSE_FENCE: Final = "\n```"
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*\Z")


def envelope_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The selection envelope of a report: which states and observations were selected, without clock or language.

    ``filters`` and ``period`` are renamed, the schema is the selection's own, everything else is taken over as it is.
    The report must have the members; :mod:`passdown.report.verify` checks that for foreign ones.
    """
    return {
        "schema": SELECTION_SCHEMA,
        "project_id": report["project"]["project_id"],
        "project_revision": report["project_revision"],
        "normalized_filters": report["filters"],
        "normalized_period": report["period"],
        "selection_consistency": report["selection_consistency"],
        "activity_cursor": report["activity_cursor"],
        "baseline_selection": report["baseline_selection"],
        "end_selection": report["end_selection"],
        "activity_selection": report["activity_selection"],
    }


def front_matter(report: Mapping[str, Any]) -> list[str]:
    """The lines of the front matter, both rules included."""
    project = report["project"]
    values = {**report, "project_id": project["project_id"], "project_key": project["project_key"]}
    return ["---", *(f"{name}: {yaml_scalar(values[name])}" for name in FRONT_MATTER), "---"]


def envelope_fence(report: Mapping[str, Any]) -> list[str]:
    """The lines of the code fence that holds the envelope; ASCII only, so no text in it can end it or hide in it."""
    return ["```json", ascii_json(envelope_of(report)), "```"]


def read_front_matter(text: str) -> dict[str, str]:
    """The nine members of the front matter of a Markdown report.

    Raises ``unsupported_schema`` with ``field`` ``front_matter`` if the page does not begin with them.
    """
    head, closed, _ = text.partition("\n---\n")
    lines = head.split("\n")
    names = tuple(line.partition(": ")[0] for line in lines[1:])
    if not closed or lines[0] != "---" or names != FRONT_MATTER:
        raise PassdownError("unsupported_schema", field="front_matter", rule="members")
    return {name: _scalar(line.partition(": ")[2]) for name, line in zip(FRONT_MATTER, lines[1:], strict=True)}


def read_envelope(text: str) -> dict[str, Any]:
    """The envelope in the last code fence of a Markdown report.

    Raises ``unsupported_schema`` with ``field`` ``envelope`` if there is none, and what the strict reader raises if it
    is no JSON.
    """
    _, opened, tail = text.rpartition(_OPEN_FENCE)
    line, closed, rest = tail.partition(_CLOSE_FENCE)
    if not opened or not closed or rest.strip():
        raise PassdownError("unsupported_schema", field="envelope", rule="fence")
    envelope = parse_json(line.encode())
    if not isinstance(envelope, dict) or envelope.get("schema") != SELECTION_SCHEMA:
        raise PassdownError("unsupported_schema", field="envelope", rule="schema")
    return envelope


def _scalar(written: str) -> str:
    """The string that one front matter value stands for: a plain word or a JSON string."""
    if _PLAIN.match(written):
        return written
    try:
        value = parse_json(written.encode())
    except PassdownError:
        value = None
    if not isinstance(value, str):
        raise PassdownError("unsupported_schema", field="front_matter", rule="value")
    return value
