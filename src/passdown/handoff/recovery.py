"""The handler of ``recover_draft``: captures what the host read, and asks the rules for the draft."""

from __future__ import annotations

from passdown.handoff import drafts, store
from passdown.handoff.inline import capture_inline, inline_records, source_citation
from passdown.handoff.models import handoff_ref
from passdown.handoff.recover_operations import RecoverDraftAnswer, RecoverDraftAsk
from passdown.handoff.recovering import recovered_draft
from passdown.handoff.revisions import content_value
from passdown.handoff.sources import ref_of
from passdown.kernel.clock import Clock
from passdown.kernel.operations import Principal
from passdown.kernel.wire import dump
from passdown.storage.session import Session, Store


class RecoveryService:
    """One handler; it stores evidence and never a revision."""

    def __init__(self, database: Store, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def recover_draft(self, who: Principal, ask: RecoverDraftAsk) -> RecoverDraftAnswer:
        """Capture the evidence of the disk and return the draft on the current head."""
        records = inline_records(who, ask.scope_id, ask.evidence)
        now_us = self._clock.now_us()

        def work(session: Session) -> RecoverDraftAnswer:
            head = store.head(session, ask.scope_id)
            row = store.revision(session, ask.scope_id, head.revision) if head else None
            captured = capture_inline(session, records, who=who, now_us=now_us, head=head)
            inline = {label: source_citation(item.row) for label, item in captured.items()}
            base = handoff_ref(head.artifact_id, head.revision) if head else None
            draft = recovered_draft(
                objective=ask.objective,
                parts=drafts.resolve_inline(ask.state, None, ask.omissions, inline),
                head=dump(content_value(row)) if row else None,
                head_citation={"kind": "artifact", "artifact_ref": dump(base)} if base else None,
                locale=ask.locale,
            )
            return RecoverDraftAnswer(
                scope_id=ask.scope_id,
                base=base,
                draft=draft,
                captured=tuple(ref_of(item.row) for item in captured.values()),
            )

        # Without inline evidence nothing is stored, and a reader needs no write lock.
        return self._database.write(work) if records else self._database.read(work)
