"""Drafts: replacing inline citations, the deterministic draft, and finalising. Pure.

A draft never gains a statement that nobody gave. What was offered and is not cited becomes an omission that names it,
so that the reader knows that it existed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passdown.handoff.models import HANDOFF_SCHEMA, Draft, DraftOmission, DraftStatement, HandoffContent
from passdown.handoff.operations import Candidate
from passdown.handoff.rules import CitationValue, Reference, reference
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import dump, validate


def _replace(value: dict[str, Any], inline: Mapping[str, CitationValue], field: str) -> CitationValue:
    if value["kind"] != "inline":
        return value
    found = inline.get(value["label"])
    if found is None:
        raise PassdownError("citation_not_readable", errors=[{"field": field, "rule": "unknown_label"}], error_count=1)
    return found


def resolve_inline(
    statements: Sequence[DraftStatement],
    next_action: DraftStatement | None,
    omissions: Sequence[DraftOmission],
    inline: Mapping[str, CitationValue],
) -> dict[str, Any]:
    """``state``, ``next_action`` and ``omissions`` as JSON values without inline citations.

    A label that the request does not carry is ``citation_not_readable`` (rule ``unknown_label``).
    """

    def statement(item: DraftStatement, field: str) -> dict[str, Any]:
        citations = [_replace(dump(c), inline, f"{field}.citations.{index}") for index, c in enumerate(item.citations)]
        return {"text": item.text, "citations": citations}

    def omission(item: DraftOmission, field: str) -> dict[str, Any]:
        given = None if item.citation is None else _replace(dump(item.citation), inline, f"{field}.citation")
        return {"text": item.text, "citation": given}

    return {
        "state": [statement(item, f"state.{index}") for index, item in enumerate(statements)],
        "next_action": None if next_action is None else statement(next_action, "next_action"),
        "omissions": [omission(item, f"omissions.{index}") for index, item in enumerate(omissions)],
    }


def content_of(objective: str, disposition: str, parts: Mapping[str, Any]) -> HandoffContent:
    """Validated content; missing statements or citations are ``invalid_request`` with the member that lacks them."""
    return validate(
        HandoffContent,
        {"schema": HANDOFF_SCHEMA, "objective": objective, "disposition": disposition, **parts},
    )


def _cited(parts: Mapping[str, Any]) -> set[Reference]:
    statements = list(parts["state"]) + ([parts["next_action"]] if parts["next_action"] else [])
    found = {reference(citation) for item in statements for citation in item["citations"]}
    return found | {reference(item["citation"]) for item in parts["omissions"] if item["citation"] is not None}


def deterministic_draft(
    objective: str, disposition: str, parts: Mapping[str, Any], candidates: Sequence[Candidate]
) -> tuple[Draft, list[CitationValue]]:
    """The given statements, plus one omission for each candidate that nothing cites; and those candidates.

    When more are left out than omissions fit, the last omission counts the rest.
    """
    used = _cited(parts)
    left_out = [item for item in candidates if reference(dump(item.citation)) not in used]
    room = limits.OMISSIONS - len(parts["omissions"])
    named = left_out if len(left_out) <= room else left_out[: max(room - 1, 0)]
    omissions = list(parts["omissions"]) + [
        {"text": f"Offered and not used: {item.label}"[: limits.STATEMENT], "citation": dump(item.citation)}
        for item in named
    ]
    if len(named) < len(left_out) and len(omissions) < limits.OMISSIONS:
        omissions.append({"text": f"Offered and not used: {len(left_out) - len(named)} more", "citation": None})
    draft = validate(
        Draft,
        {
            "objective": objective,
            "state": parts["state"],
            "disposition": disposition,
            "next_action": parts["next_action"],
            "omissions": omissions,
            "origin": "prepared",
        },
    )
    return draft, [dump(item.citation) for item in left_out]
