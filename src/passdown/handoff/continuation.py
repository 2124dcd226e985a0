"""Continue: resolve a handoff, check its evidence, compare, and show it as untrusted history.

Reading only. The checkout is compared by the host that has it (see ``relation``); what the host found comes in as
``workspace`` and decides here, together with the evidence, whether the next action may be used as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passdown.handoff import store, test_run_store
from passdown.handoff.acknowledgement_operations import Acknowledgements
from passdown.handoff.acknowledgements import PREPARED, acknowledgements
from passdown.handoff.evidence import Resolved, resolve
from passdown.handoff.models import (
    SHOWN_RUNS,
    ArtifactRef,
    HandoffContent,
    PreparedHandoff,
    Recorder,
    handoff_ref,
)
from passdown.handoff.operations import ContinueAnswer, ContinueHandoffAsk, ExactTarget, PreparedTarget
from passdown.handoff.relation import commit_of
from passdown.handoff.revisions import content_value, require_own, to_head
from passdown.handoff.rules import (
    CitationValue,
    Head,
    cited,
    content_bytes,
    content_digest,
    evidence_checks,
    is_unproved,
    next_action_reasons,
    objective_relation,
    rests_on,
)
from passdown.handoff.test_run_store import TestRunRow
from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.timestamps import format_timestamp
from passdown.kernel.wire import dump
from passdown.storage.session import Session, Store


@dataclass(frozen=True, slots=True)
class _Selected:
    head: Head | None
    content: HandoffContent | None
    digest: str | None
    ref: ArtifactRef | None
    row: store.RevisionRow | None
    resolved: Resolved
    superseded: bool
    receipts: Acknowledgements | None = None
    runs: Mapping[str, Sequence[TestRunRow]] = field(default_factory=dict)


class Continuation:
    """The handler of ``continue_handoff``."""

    def __init__(self, database: Store) -> None:
        self._database = database

    def continue_handoff(self, who: Principal, ask: ContinueHandoffAsk) -> ContinueAnswer:
        """The resolved handoff, or status ``empty`` for a scope without one.

        Refusals: ``scope_not_confirmed`` (latest of a scope that the caller did not confirm),
        ``handoff_scope_mismatch``, ``handoff_not_found``, ``prepared_digest_mismatch``, and
        ``workspace_diverged`` only when a usable next action was required.
        """
        if ask.target.kind == "latest" and ask.confirm_scope != ask.scope_id:
            raise PassdownError("scope_not_confirmed", field="confirm_scope")
        selected = self._database.read(lambda session: _select(session, ask))
        answer = _answer(ask, selected)
        if ask.require_usable_next_action and not answer.next_action_usable:
            raise PassdownError("workspace_diverged", reasons=list(answer.next_action_reasons))
        return answer


def _select(session: Session, ask: ContinueHandoffAsk) -> _Selected:
    head = store.head(session, ask.scope_id)
    if isinstance(ask.target, PreparedTarget):
        prepared = ask.target.prepared
        if prepared.scope_id != ask.scope_id:
            raise PassdownError("handoff_scope_mismatch", field="target.prepared.scope_id")
        value = dump(prepared.content)
        digest = content_digest(content_bytes(value, limits.HANDOFF_BYTES_CONFIGURABLE))
        if digest != prepared.content_digest:
            raise PassdownError("prepared_digest_mismatch", expected=prepared.content_digest, actual=digest)
        resolved = resolve(session, ask.scope_id, head, cited(value))
        receipts = acknowledgements(session, ask.scope_id, digest=digest, revision=PREPARED, artifact_id="")
        passed = _has_passed(session, prepared, head)
        runs = _runs(session, ask.scope_id, value)
        return _Selected(head, prepared.content, digest, None, None, resolved, passed, receipts, runs)
    if isinstance(ask.target, ExactTarget):
        require_own(session, head, ask.target.handoff_ref, "target.handoff_ref")
        wanted = ask.target.handoff_ref.revision
    elif head is None:
        return _Selected(None, None, None, None, None, Resolved(None, {}), superseded=False)
    else:
        wanted = head.revision
    row = store.revision(session, ask.scope_id, wanted)
    if row is None:
        raise PassdownError("handoff_not_found", field="target.handoff_ref")
    content = content_value(row)
    resolved = resolve(session, ask.scope_id, head, cited(dump(content)))
    ref = handoff_ref(row.artifact_id, row.revision)
    receipts = acknowledgements(
        session, ask.scope_id, digest=row.content_digest, revision=row.revision, artifact_id=row.artifact_id
    )
    superseded = head is None or wanted != head.revision
    runs = _runs(session, ask.scope_id, dump(content))
    return _Selected(head, content, row.content_digest, ref, row, resolved, superseded, receipts, runs)


def _has_passed(session: Session, prepared: PreparedHandoff, head: Head | None) -> bool:
    """Whether another handoff was committed after the base of this one. A store without any cannot tell."""
    if head is None or to_head(prepared.base, "target.prepared.base") == head:
        return False
    return store.revision_digest(session, prepared.scope_id, head.revision) != prepared.content_digest


def _evidence(selected: _Selected, citation: CitationValue) -> dict[str, Any]:
    """One citation for a reader; a commit with the test runs that name it."""
    oid = commit_of(citation)
    runs = selected.runs.get(oid, []) if oid else []
    checks = [
        {
            "source_ref": {"source_type": run.source_type, "source_id": run.source_id},
            "assurance": run.assurance,
            "commit_basis": run.commit_basis,
            "tests": run.tests,
            "failures": run.failures,
            "errors": run.errors,
            "skipped": run.skipped,
        }
        for run in runs[:SHOWN_RUNS]
    ]
    shown = selected.resolved.view(citation)
    return {**shown, "checks": tuple(checks) if oid else None, "checks_total": len(runs)}


def _runs(session: Session, scope_id: str, content: dict[str, Any]) -> Mapping[str, Sequence[TestRunRow]]:
    oids = [oid for oid in map(commit_of, cited(content)) if oid is not None]
    return test_run_store.runs_of(session, scope_id, oids) if oids else {}


def _answer(ask: ContinueHandoffAsk, selected: _Selected) -> ContinueAnswer:
    content = selected.content
    value = None if content is None else dump(content)
    citations = [] if value is None else cited(value)
    checks = [] if value is None else evidence_checks(value, selected.resolved.readable)
    current = handoff_ref(selected.head.artifact_id, selected.head.revision) if selected.head else None
    is_current = selected.ref is not None and selected.ref == current
    uncommitted = ask.workspace.uncommitted if ask.workspace else None
    reasons = next_action_reasons(
        content=value,
        checks=checks,
        superseded=selected.superseded,
        relation=ask.workspace.relation if ask.workspace else None,
        files_gone=bool(uncommitted and uncommitted.gone),
        files_elsewhere=bool(uncommitted and uncommitted.elsewhere),
    )
    row = selected.row
    support = [] if value is None else rests_on(value)
    return ContinueAnswer.model_validate(
        {
            "trust": "untrusted_history",
            "status": "empty" if content is None else "resolved",
            "scope_id": ask.scope_id,
            "selection": ask.target.kind,
            "content": content,
            "content_digest": selected.digest,
            "selected_revision": selected.ref,
            "current_revision": current,
            "is_current": is_current,
            "recorded_at": format_timestamp(row.recorded_us) if row else None,
            "recorded_by": Recorder.model_validate({"principal_id": row.recorded_by, "identity": row.recorded_identity})
            if row
            else None,
            "evidence_checks": tuple(checks),
            "evidence": tuple(_evidence(selected, citation) for citation in citations),
            "unproved": content is not None
            and is_unproved(content.disposition, map(selected.resolved.assurance, support)),
            "objective_relation": objective_relation(content.objective if content else "", ask.current_objective),
            "workspace": ask.workspace,
            "next_action_usable": not reasons,
            "next_action_reasons": tuple(reasons),
            "acknowledgements": selected.receipts,
        },
        strict=False,
    )
