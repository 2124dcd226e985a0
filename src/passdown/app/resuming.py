"""Continuing from a checkout: which handoff, what it recorded, and how this worktree stands to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from passdown.handoff.facts import WorktreeFacts
from passdown.handoff.host import Checkout, worktree_facts
from passdown.handoff.models import ArtifactRef, HandoffContent, SourceRef
from passdown.handoff.operations import (
    CONTINUE_HANDOFF,
    GET_HANDOFF,
    ContinueAnswer,
    ContinueHandoffAsk,
    GetHandoffAsk,
)
from passdown.handoff.relation import worktree_citation
from passdown.handoff.source_operations import GET_SOURCE, GetSourceAsk
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Caller
from passdown.kernel.wire import build, dump, validate

_MOVES: Final = 3


@dataclass(frozen=True, slots=True)
class Previous:
    """The committed head of the scope, if any."""

    ref: ArtifactRef
    content: HandoffContent


def previous(call: Caller, scope_id: str) -> Previous | None:
    """The current handoff of the scope, or None."""
    try:
        handoff = call(GET_HANDOFF, GetHandoffAsk(scope_id=scope_id)).handoff
    except PassdownError as error:
        if error.code != "handoff_not_found":
            raise
        return None
    return Previous(handoff.handoff_ref, handoff.content)


def recorded_worktree(call: Caller, scope_id: str, content: HandoffContent) -> WorktreeFacts | None:
    """The worktree reading that a handoff cites, or None."""
    ref = worktree_citation(dump(content))
    if ref is None:
        return None
    try:
        found = call(GET_SOURCE, GetSourceAsk(scope_id=scope_id, source_ref=build(SourceRef, **ref)))
    except PassdownError as error:
        if error.code != "source_not_found":
            raise
        return None
    return worktree_facts(found.source.descriptor)


def continue_here(
    call: Caller,
    checkout: Checkout,
    scope_id: str,
    *,
    objective: str | None = None,
    require_usable: bool = False,
    target: Mapping[str, Any] | None = None,
) -> ContinueAnswer:
    """Continue a handoff of this worktree's own workstream, the current one by default, compared with its checkout.

    The first call resolves what is to be compared; the second carries what this host found. If somebody commits in
    between, the comparison belongs to an older revision, so it is made again for the newer one.
    """
    plain = {
        "scope_id": scope_id,
        "confirm_scope": scope_id,
        "target": target or {"kind": "latest"},
        "current_objective": objective,
    }
    for _ in range(_MOVES):
        found = call(CONTINUE_HANDOFF, validate(ContinueHandoffAsk, plain))
        workspace = None
        if found.content is not None:
            recorded = recorded_worktree(call, scope_id, found.content)
            workspace = dump(checkout.workspace(dump(found.content), recorded))
        asked = {**plain, "workspace": workspace, "require_usable_next_action": require_usable}
        answer = call(CONTINUE_HANDOFF, validate(ContinueHandoffAsk, asked))
        if answer.selected_revision == found.selected_revision:
            return answer
    raise PassdownError("handoff_conflict", current=dump(answer.current_revision) if answer.current_revision else None)
