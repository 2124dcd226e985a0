"""Receipts: the handler of ``acknowledge_handoff``, and what a handoff shows of its receipts.

A receipt of a prepared handoff is kept by its digest; when the same content is committed, it is shown with the
revision too, since it is about the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from passdown.handoff import acknowledgement_store, store
from passdown.handoff.acknowledgement_operations import (
    SHOWN_ACKNOWLEDGEMENTS,
    AcknowledgeHandoffAnswer,
    AcknowledgeHandoffAsk,
    Acknowledgement,
    Acknowledgements,
    ExactReceipt,
)
from passdown.handoff.acknowledgement_store import ReceiptRow, Tally
from passdown.handoff.models import handoff_ref
from passdown.handoff.revisions import content_value, require_own
from passdown.kernel.canonical import canonical_bytes_of_validated, digest_bytes
from passdown.kernel.clock import Clock
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.timestamps import format_timestamp
from passdown.kernel.wire import dump, validate
from passdown.storage.session import Session, Store

PREPARED: Final = 0
"""Stands in the place of a revision for a handoff that was not committed when it was acknowledged."""


def digest_octets(digest: str) -> bytes:
    """The 32 bytes of a ``sha256:`` digest."""
    return bytes.fromhex(digest.removeprefix("sha256:"))


def receipt_key(who: Principal, said: Mapping[str, Any]) -> bytes:
    """What makes two receipts of one handoff the same: who, proved or asserted, and every word."""
    value = {"principal_id": who.principal_id, "identity": who.identity, **said}
    return digest_octets(digest_bytes(canonical_bytes_of_validated(value)))


def require_claims(ask: AcknowledgeHandoffAsk, statements: int | None, *, has_next_action: bool) -> None:
    """Refuse a receipt that declines without a reason, or checks what is not there or the same claim twice.

    ``statements`` is None where the content is not known here.
    """
    errors = []
    if ask.verdict == "declined" and ask.reason is None:
        errors.append({"field": "reason", "rule": "missing"})
    seen = set()
    for index, check in enumerate(ask.checks):
        field = f"checks.{index}"
        claim = (check.claim, check.state_index)
        is_state = check.claim == "state"
        if is_state != (check.state_index is not None):
            errors.append({"field": f"{field}.state_index", "rule": "missing" if is_state else "not_for_this_claim"})
        elif claim in seen:
            errors.append({"field": field, "rule": "repeated"})
        elif statements is not None and is_state and (check.state_index or 0) >= statements:
            errors.append({"field": f"{field}.state_index", "rule": "no_such_statement"})
        elif statements is not None and not is_state and not has_next_action:
            errors.append({"field": f"{field}.claim", "rule": "no_such_statement"})
        seen.add(claim)
    if errors:
        raise PassdownError("invalid_request", errors=errors, error_count=len(errors))


class AcknowledgementService:
    """The handler of ``acknowledge_handoff``."""

    def __init__(self, database: Store, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def acknowledge_handoff(self, who: Principal, ask: AcknowledgeHandoffAsk) -> AcknowledgeHandoffAnswer:
        """Append a receipt, or answer the same one that is there.

        Refusals: ``handoff_not_found``, ``handoff_scope_mismatch``, ``invalid_request`` for a missing reason and for
        a check of a claim that the handoff does not make.
        """
        now_us = self._clock.now_us()
        said: dict[str, Any] = {
            "verdict": ask.verdict,
            "reason": ask.reason,
            "checks": [dump(check) for check in ask.checks],
        }
        key = receipt_key(who, said)
        body = canonical_bytes_of_validated({"reason": said["reason"], "checks": said["checks"]})

        def work(session: Session) -> AcknowledgeHandoffAnswer:
            digest, revision, artifact_id = _target(session, ask)
            row = ReceiptRow(digest, revision, key, ask.verdict, body, now_us, who.principal_id, who.identity)
            inserted = acknowledgement_store.insert(session, ask.scope_id, row, who)
            found = row
            if not inserted:
                there = acknowledgement_store.receipt(session, ask.scope_id, digest, revision, key)
                if there is None:
                    raise PassdownError("store_not_readable", rule="missing_row")
                found = there
            return AcknowledgeHandoffAnswer(acknowledgement=_view(found, artifact_id), replayed=not inserted)

        return self._database.write(work)


def _target(session: Session, ask: AcknowledgeHandoffAsk) -> tuple[bytes, int, str]:
    """Content digest, revision and artifact of what is acknowledged."""
    if not isinstance(ask.target, ExactReceipt):
        require_claims(ask, None, has_next_action=True)
        return digest_octets(ask.target.content_digest), PREPARED, ""
    ref = ask.target.handoff_ref
    require_own(session, store.head(session, ask.scope_id), ref, "target.handoff_ref")
    row = store.revision(session, ask.scope_id, ref.revision)
    if row is None:
        raise PassdownError("handoff_not_found", field="target.handoff_ref")
    content = content_value(row)
    require_claims(ask, len(content.state), has_next_action=content.next_action is not None)
    return digest_octets(row.content_digest), row.revision, row.artifact_id


def _view(row: ReceiptRow, artifact_id: str) -> Acknowledgement:
    return validate(
        Acknowledgement,
        {
            "handoff_ref": None if row.revision == PREPARED else dump(handoff_ref(artifact_id, row.revision)),
            "content_digest": f"sha256:{row.content_digest.hex()}",
            "verdict": row.verdict,
            **orjson.loads(row.body),
            "recorded_at": format_timestamp(row.recorded_us),
            "recorded_by": {"principal_id": row.recorded_by, "identity": row.recorded_identity},
        },
    )


def counted(found: Tally, digest: str, revision: int) -> dict[str, int]:
    """``accepted`` and ``declined`` of one revision, with those of the same content while it was prepared."""
    octets = digest_octets(digest)
    places = {revision, PREPARED}
    return {
        verdict: sum(found.get((octets, place, verdict), 0) for place in places) for verdict in ("accepted", "declined")
    }


def acknowledgements(
    session: Session, scope_id: str, *, digest: str, revision: int, artifact_id: str
) -> Acknowledgements:
    """What a handoff shows of its receipts; ``revision`` 0 asks for those of a prepared one."""
    octets = digest_octets(digest)
    rows = acknowledgement_store.newest(session, scope_id, octets, revision, SHOWN_ACKNOWLEDGEMENTS)
    return Acknowledgements(
        **counted(acknowledgement_store.tally(session, scope_id, [octets]), digest, revision),
        newest=tuple(_view(row, artifact_id) for row in rows),
    )
