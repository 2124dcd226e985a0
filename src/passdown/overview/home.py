"""What needs attention here: the composition behind bare ``passdown``. Pure.

States of a checkout: outside a repository, unbound, bound without a handoff, bound with one. From a report's
workstreams (as its canonical JSON has them) the rows that ask for a person come
first: blocked, then without a handoff, then
``complete`` that nothing read proves, then evidence that is gone; what simply goes on comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Need = Literal["blocked", "no_handoff", "unproved", "evidence_unavailable", "continuable", "complete"]
_ORDER: dict[str, int] = {
    "blocked": 0,
    "evidence_unavailable": 1,
    "no_handoff": 2,
    "unproved": 3,
    "continuable": 4,
    "complete": 5,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One workstream as the home screen shows it. ``says`` is the sentence that matters most, or empty."""

    scope_id: str
    key: str | None
    title: str
    need: Need
    says: str
    recorded_at: str | None


def _need(item: Mapping[str, Any]) -> Need:
    content = item["content"]
    if content is None:
        return "no_handoff"
    if content["disposition"] == "blocked":
        return "blocked"
    if item["reporting_status"] == "evidence_unavailable":
        return "evidence_unavailable"
    if item["unproved"]:
        return "unproved"
    return "complete" if content["disposition"] == "complete" else "continuable"


def _says(item: Mapping[str, Any]) -> str:
    content = item["content"]
    if content is None:
        return ""
    if content["disposition"] == "blocked":
        return str(content["state"][0]["text"])
    if content["next_action"] is not None:
        return str(content["next_action"]["text"])
    return str(content["state"][0]["text"])


def rows(workstreams: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The workstreams of a report, those that need somebody first; within a need the report's own order stays."""
    found = [
        Row(
            scope_id=item["workstream"]["scope_id"],
            key=item["workstream"]["key"],
            title=item["workstream"]["title"],
            need=_need(item),
            says=_says(item),
            recorded_at=item["recorded_at"],
        )
        for item in workstreams
    ]
    return sorted(found, key=lambda row: _ORDER[row.need])


def next_command(*, in_repository: bool, bound: bool, has_handoff: bool) -> str:
    """The one command that goes on from here."""
    if not in_repository:
        return "cd into a repository, then: passdown init"
    if not bound:
        return "passdown init"
    return "passdown continue" if has_handoff else "passdown handoff"
