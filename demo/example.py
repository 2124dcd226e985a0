"""A second project, plainly labelled as an example, with a workstream in each of the four states."""

from __future__ import annotations

from typing import Any

from passdown.handoff.operations import HAND_OFF_NOW, HandOffNowAsk
from passdown.kernel.operations import Caller
from passdown.kernel.wire import build, validate
from passdown.report.operations import CREATE_PROJECT, REGISTER_WORKSTREAM, CreateProjectAsk, RegisterWorkstreamAsk

KEY = "example-shop"

_STREAMS: tuple[dict[str, Any], ...] = (
    {
        "key": "retry-queue",
        "title": "Retry queue for payments",
        "kind": "feature",
        "objective": "A payment that fails for a passing reason is tried again without charging twice.",
        "note": "Design note: retries carry the idempotency key of the first attempt. The key table exists.",
        "state": ["The key table exists and is filled on every first attempt.", "No retry is scheduled yet."],
        "next_action": "Schedule the first retry after thirty seconds, with the key of the first attempt.",
        "disposition": "continuable",
    },
    {
        "key": "invoice-dates",
        "title": "Invoice dates at year's end",
        "kind": "bug",
        "objective": "Invoices issued on 31 December carry the date of the buyer's zone.",
        "note": "Message from accounting: which zone counts for buyers without an address is not decided.",
        "state": ["Blocked: which zone counts for buyers without an address is not decided."],
        "next_action": None,
        "disposition": "blocked",
    },
    {
        "key": "basket-refactor",
        "title": "One basket module",
        "kind": "refactor",
        "objective": "Web and app share one basket module.",
        "note": "Merge note: both callers use the shared module; the old copies are deleted.",
        "state": ["Both callers use the shared module and the old copies are deleted."],
        "next_action": None,
        "disposition": "complete",
    },
    {"key": "search-latency", "title": "Search latency", "kind": "research", "objective": None},
)


def make(call: Caller, locale: str) -> str:
    """Make the example project and return its id."""
    project = call(
        CREATE_PROJECT,
        build(
            CreateProjectAsk,
            key=KEY,
            title="Example: a made-up shop",
            description="Made by the demo to show all four states. Its evidence is said, not read.",
            default_locale=locale,
        ),
    ).project
    for stream in _STREAMS:
        register = build(
            RegisterWorkstreamAsk,
            project_id=project.project_id,
            key=stream["key"],
            title=stream["title"],
            kind=stream["kind"],
        )
        scope_id = call(REGISTER_WORKSTREAM, register).workstream.scope_id
        if stream["objective"] is not None:
            call(HAND_OFF_NOW, _handoff(scope_id, stream))
    return project.project_id


def _handoff(scope_id: str, stream: dict[str, Any]) -> HandOffNowAsk:
    cited = [{"kind": "inline", "label": "note"}]
    following = stream["next_action"]
    return validate(
        HandOffNowAsk,
        {
            "scope_id": scope_id,
            "objective": stream["objective"],
            "state": [{"text": text, "citations": cited} for text in stream["state"]],
            "disposition": stream["disposition"],
            "next_action": None if following is None else {"text": following, "citations": cited},
            "evidence": [{"label": "note", "source_type": "content", "content": stream["note"]}],
            "commit": True,
        },
    )
