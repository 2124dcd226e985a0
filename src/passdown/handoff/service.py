"""The handlers of the handoff core: they open the transaction, ask the rules, and store what the rules decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from passdown.handoff import acknowledgement_store, drafts, store
from passdown.handoff.acknowledgement_operations import Acknowledgements
from passdown.handoff.acknowledgement_store import Tally
from passdown.handoff.acknowledgements import AcknowledgementService, acknowledgements, counted, digest_octets
from passdown.handoff.continuation import Continuation
from passdown.handoff.drafting import DraftingFailed, Provider, accept, messages
from passdown.handoff.evidence import require_readable, resolve
from passdown.handoff.inline import capture_inline, inline_records, source_citation
from passdown.handoff.models import (
    HANDOFF_SCHEMA,
    PREPARED_SCHEMA,
    ArtifactCitation,
    ArtifactRef,
    HandoffContent,
    PreparedHandoff,
    Recorder,
    SourceCitation,
    handoff_ref,
)
from passdown.handoff.operations import (
    Candidate,
    CommitAnswer,
    CommittedHandoff,
    DraftingOutcome,
    FinalizeHandoffAsk,
    GetHandoffAnswer,
    GetHandoffAsk,
    HandOffNowAnswer,
    HandOffNowAsk,
    ListRevisionsAnswer,
    ListRevisionsAsk,
    PrepareHandoffAnswer,
    PrepareHandoffAsk,
    RevisionSummary,
)
from passdown.handoff.places import within
from passdown.handoff.recovery import RecoveryService
from passdown.handoff.review import ReviewService
from passdown.handoff.revisions import content_value, require_own, to_head
from passdown.handoff.rules import (
    CitationValue,
    CommitFacts,
    Head,
    cited,
    content_bytes,
    content_digest,
    decide_commit,
    is_unproved,
    placed,
    reference,
    rests_on,
)
from passdown.handoff.source_operations import InlineEvidence
from passdown.handoff.sources import SourceService, ref_of
from passdown.kernel import limits
from passdown.kernel.canonical import canonical_bytes
from passdown.kernel.clock import Clock
from passdown.kernel.cursors import pack, unpack
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import IdSource
from passdown.kernel.operations import Handler, Principal
from passdown.kernel.timestamps import format_timestamp
from passdown.kernel.wire import dump, validate
from passdown.storage.session import Session, Store

MAX_CANDIDATES = 64


class HandoffService:
    """One handler per operation.

    ``max_bytes`` bounds the canonical content (default 32,768, at most 262,144); ``drafting`` is asked for proposals.
    """

    def __init__(
        self,
        database: Store,
        clock: Clock,
        ids: IdSource,
        *,
        max_bytes: int = limits.HANDOFF_BYTES,
        drafting: Provider | None = None,
    ) -> None:
        if not 1 <= max_bytes <= limits.HANDOFF_BYTES_CONFIGURABLE:
            raise PassdownError(
                "invalid_request",
                errors=[{"field": "max_bytes", "rule": "range"}],
                error_count=1,
                limit=limits.HANDOFF_BYTES_CONFIGURABLE,
            )
        self._database = database
        self._clock = clock
        self._ids = ids
        self._max_bytes = max_bytes
        self._drafting = drafting
        self._sources = SourceService(database, clock)
        self._continuation = Continuation(database)
        self._acknowledgements = AcknowledgementService(database, clock)
        self._recovery = RecoveryService(database, clock)
        self._review = ReviewService(database)

    def handlers(self) -> dict[str, Handler]:
        """Operation name to handler."""
        return {
            "capture_source": self._sources.capture_source,
            "get_source": self._sources.get_source,
            "list_sources": self._sources.list_sources,
            "prepare_handoff": self.prepare_handoff,
            "finalize_handoff": self.finalize_handoff,
            "commit_handoff": self.commit_handoff,
            "hand_off_now": self.hand_off_now,
            "continue_handoff": self._continuation.continue_handoff,
            "get_handoff": self.get_handoff,
            "acknowledge_handoff": self._acknowledgements.acknowledge_handoff,
            "list_handoff_revisions": self.list_handoff_revisions,
            "recover_draft": self._recovery.recover_draft,
            "diff_handoffs": self._review.diff_handoffs,
            "export_handoff": self._review.export_handoff,
        }

    # --- draft ----------------------------------------------------------------------------------------------------

    def prepare_handoff(self, who: Principal, ask: PrepareHandoffAsk) -> PrepareHandoffAnswer:
        """Capture inline evidence, gather what may be cited, and return the deterministic draft."""
        records = inline_records(who, ask.scope_id, ask.evidence)
        named = [(index, dump(item)) for index, item in enumerate(ask.evidence) if not isinstance(item, InlineEvidence)]
        now_us = self._clock.now_us()

        def work(session: Session) -> tuple[dict[str, Any], list[Candidate]]:
            head = store.head(session, ask.scope_id)
            captured = capture_inline(session, records, who=who, now_us=now_us, head=head)
            inline = {label: source_citation(item.row) for label, item in captured.items()}
            parts = drafts.resolve_inline(ask.state, ask.next_action, ask.omissions, inline)
            offered: list[CitationValue] = [item for _, item in named]
            offered += inline.values()
            recent = store.sources_after(
                session, ask.scope_id, (0, b""), MAX_CANDIDATES, exactly_revision=head.revision if head else 0
            )
            offered += [source_citation(row) for row in recent]
            if head is not None:
                offered.append({"kind": "artifact", "artifact_ref": dump(handoff_ref(head.artifact_id, head.revision))})
            distinct = list({reference(citation): citation for citation in offered}.values())
            resolved = resolve(session, ask.scope_id, head, distinct)
            require_readable(resolved, [(f"evidence.{index}", item) for index, item in named])
            return parts, [
                Candidate(citation=typed, label=resolved.view(value)["label"])
                for typed, value in zip(_typed(distinct), distinct, strict=True)
            ]

        # Without inline evidence nothing is stored, and a reader needs no write lock.
        parts, candidates = self._database.write(work) if records else self._database.read(work)
        # Behind the transaction: whatever a provider does, no lock waits for it.
        parts, drafting = self._proposed(ask, parts, candidates)
        draft, left_out = drafts.deterministic_draft(ask.objective, ask.disposition, parts, candidates)
        return PrepareHandoffAnswer(
            draft=draft, candidates=tuple(candidates), left_out=tuple(_typed(left_out)), drafting=drafting
        )

    def _proposed(
        self, ask: PrepareHandoffAsk, parts: dict[str, Any], candidates: Sequence[Candidate]
    ) -> tuple[dict[str, Any], DraftingOutcome]:
        """The parts with what the provider proposed and the rules accepted, and what became of it."""
        if not ask.propose or self._drafting is None:
            status: Literal["not_asked", "off"] = "off" if ask.propose else "not_asked"
            return parts, DraftingOutcome(status=status, reason=None, accepted=0, refused=0)
        citations = [dump(item.citation) for item in candidates]
        labels = [(_kind(citation), item.label) for citation, item in zip(citations, candidates, strict=True)]
        try:
            answer = self._drafting(messages(ask.objective, parts, labels))
            found = accept(answer, parts, citations, self._left(ask, parts, candidates))
        except DraftingFailed as failed:
            return parts, DraftingOutcome(status="failed", reason=failed.reason, accepted=0, refused=0)
        more = {"state": [*parts["state"], *found.state], "next_action": parts["next_action"] or found.next_action}
        outcome = DraftingOutcome(status="proposed", reason=None, accepted=found.accepted, refused=found.refused)
        return {**parts, **more}, outcome

    def _left(self, ask: PrepareHandoffAsk, parts: dict[str, Any], candidates: Sequence[Candidate]) -> int:
        """Bytes of content that the draft without proposals leaves free."""
        plain, _ = drafts.deterministic_draft(ask.objective, ask.disposition, parts, candidates)
        return self._max_bytes - len(canonical_bytes({**dump(plain), "schema": HANDOFF_SCHEMA}))

    def finalize_handoff(self, who: Principal, ask: FinalizeHandoffAsk) -> PreparedHandoff:
        """Check a draft and every citation, and return the prepared handoff on the head of this moment."""
        draft = ask.draft
        with within("draft"):
            parts = drafts.resolve_inline(draft.state, draft.next_action, draft.omissions, {})
            content = drafts.content_of(draft.objective, draft.disposition, parts)

        def work(session: Session) -> PreparedHandoff:
            head = store.head(session, ask.scope_id)
            with within("draft"):
                return self._prepare(session, ask.scope_id, head, content, base=head)

        return self._database.read(work)

    def _prepare(
        self, session: Session, scope_id: str, head: Head | None, content: HandoffContent, *, base: Head | None
    ) -> PreparedHandoff:
        value = dump(content)
        data = content_bytes(value, self._max_bytes)
        require_readable(resolve(session, scope_id, head, cited(value)), placed(value))
        return PreparedHandoff(
            schema=PREPARED_SCHEMA,
            scope_id=scope_id,
            base=_ref(base),
            content=content,
            content_digest=content_digest(data),
        )

    # --- commit ---------------------------------------------------------------------------------------------------

    def commit_handoff(self, who: Principal, ask: PreparedHandoff) -> CommitAnswer:
        """Append the prepared handoff if its base is still the head; a repeated commit answers the first revision."""
        now_us = self._clock.now_us()
        artifact_id = self._ids.new("hnd_")
        return self._database.write(lambda session: self._commit(session, who, ask, now_us, artifact_id))

    def _commit(
        self, session: Session, who: Principal, prepared: PreparedHandoff, now_us: int, new_artifact_id: str
    ) -> CommitAnswer:
        value = dump(prepared.content)
        data = content_bytes(value, self._max_bytes)
        digest = content_digest(data)
        if digest != prepared.content_digest:
            raise PassdownError("prepared_digest_mismatch", expected=prepared.content_digest, actual=digest)
        scope_id = prepared.scope_id
        base = to_head(prepared.base, "base")
        head = store.head(session, scope_id)
        facts = CommitFacts(
            head,
            store.revision_digest(session, scope_id, base.revision) if base else None,
            store.revision_digest(session, scope_id, base.revision + 1 if base else 1),
        )
        decision = decide_commit(base, digest, facts)
        if decision.kind == "conflict":
            raise _conflict(head)
        if head is None and decision.kind == "replayed":
            head = store.head(session, scope_id)  # the first revision came between the statements above
        artifact_id = head.artifact_id if head else new_artifact_id
        if decision.kind == "append":
            citations = cited(value)
            with within("content"):
                require_readable(resolve(session, scope_id, head, citations), placed(value))
            appended = store.append_revision(
                session,
                scope_id,
                base=head,
                new=Head(artifact_id, decision.revision),
                content=data,
                digest=digest,
                references=[reference(citation) for citation in citations],
                now_us=now_us,
                who=who,
            )
            if not appended:
                # Where several writers are let in at once, another one moved the head after it was read. What that
                # means, a conflict or this very handoff committed already, is decided on what is there now.
                return self._commit(session, who, prepared, now_us, new_artifact_id)
        return CommitAnswer(
            handoff_ref=handoff_ref(artifact_id, decision.revision),
            status="unchanged" if decision.kind == "unchanged" else "committed",
            replayed=decision.kind == "replayed",
            content_digest=digest,
        )

    def hand_off_now(self, who: Principal, ask: HandOffNowAsk) -> HandOffNowAnswer:
        """Capture, finalise and commit in one transaction: either all of it is stored or nothing.

        With ``expected_base`` a request whose answer was lost may be sent again: it finds the revision that it made.
        """
        records = inline_records(who, ask.scope_id, ask.evidence)
        now_us = self._clock.now_us()
        artifact_id = self._ids.new("hnd_")

        def work(session: Session) -> HandOffNowAnswer:
            head = store.head(session, ask.scope_id)
            base = _expected(ask, head)
            if base != head and not ask.commit:
                raise _conflict(head)
            captured = capture_inline(session, records, who=who, now_us=now_us, head=head)
            inline = {label: source_citation(item.row) for label, item in captured.items()}
            parts = drafts.resolve_inline(ask.state, ask.next_action, ask.omissions, inline)
            content = drafts.content_of(ask.objective, ask.disposition, parts)
            prepared = self._prepare(session, ask.scope_id, head, content, base=base)
            support = rests_on(dump(content))
            resolved = resolve(session, ask.scope_id, head, support)
            return HandOffNowAnswer(
                prepared=prepared,
                committed=self._commit(session, who, prepared, now_us, artifact_id) if ask.commit else None,
                captured=tuple(ref_of(item.row) for item in captured.values()),
                unproved=is_unproved(content.disposition, map(resolved.assurance, support)),
            )

        return self._database.write(work)

    # --- reading --------------------------------------------------------------------------------------------------

    def get_handoff(self, who: Principal, ask: GetHandoffAsk) -> GetHandoffAnswer:
        """One revision with its content; without a reference the current one. ``handoff_not_found`` otherwise."""

        def work(session: Session) -> tuple[store.RevisionRow, Head, Acknowledgements]:
            head = store.head(session, ask.scope_id)
            if ask.handoff_ref is not None:
                require_own(session, head, ask.handoff_ref, "handoff_ref")
            if head is None:
                raise PassdownError("handoff_not_found")
            wanted = ask.handoff_ref.revision if ask.handoff_ref else head.revision
            row = store.revision(session, ask.scope_id, wanted)
            if row is None:
                raise PassdownError("handoff_not_found")
            receipts = acknowledgements(
                session,
                ask.scope_id,
                digest=row.content_digest,
                revision=row.revision,
                artifact_id=row.artifact_id,
            )
            return row, head, receipts

        row, head, receipts = self._database.read(work)
        return GetHandoffAnswer(
            acknowledgements=receipts,
            handoff=CommittedHandoff(
                scope_id=ask.scope_id,
                handoff_ref=handoff_ref(row.artifact_id, row.revision),
                base=handoff_ref(row.artifact_id, row.base_revision) if row.base_revision else None,
                content=content_value(row),
                content_digest=row.content_digest,
                recorded_at=format_timestamp(row.recorded_us),
                recorded_by=_recorder(row),
                is_current=row.revision == head.revision,
            ),
        )

    def list_handoff_revisions(self, who: Principal, ask: ListRevisionsAsk) -> ListRevisionsAnswer:
        """One page of revisions, newest first."""
        position = unpack("revisions", ask.cursor)
        before = None if position is None else position[0]

        def work(session: Session) -> tuple[list[store.RevisionRow], Tally]:
            rows = store.revisions_before(session, ask.scope_id, before, ask.limit + 1)
            digests = [digest_octets(row.content_digest) for row in rows]
            return rows, acknowledgement_store.tally(session, ask.scope_id, digests)

        rows, receipts = self._database.read(work)
        page = rows[: ask.limit]
        return ListRevisionsAnswer(
            revisions=tuple(_summary(row, receipts) for row in page),
            next_cursor=pack("revisions", page[-1].revision) if len(rows) > ask.limit else None,
        )


def _kind(citation: CitationValue) -> str:
    return str(citation["source_ref"]["source_type"]) if citation["kind"] == "source" else "handoff"


def _recorder(row: store.RevisionRow) -> Recorder:
    return Recorder(principal_id=row.recorded_by, identity=row.recorded_identity)  # type: ignore[arg-type]


def _summary(row: store.RevisionRow, receipts: Tally) -> RevisionSummary:
    content = content_value(row)
    return RevisionSummary(
        handoff_ref=handoff_ref(row.artifact_id, row.revision),
        content_digest=row.content_digest,
        objective=content.objective,
        disposition=content.disposition,
        recorded_at=format_timestamp(row.recorded_us),
        recorded_by=_recorder(row),
        **counted(receipts, row.content_digest, row.revision),
    )


def _ref(head: Head | None) -> ArtifactRef | None:
    return None if head is None else handoff_ref(head.artifact_id, head.revision)


def _expected(ask: HandOffNowAsk, head: Head | None) -> Head | None:
    """The base that the caller saw; without a word about it, what is current now."""
    if ask.expect_first:
        if ask.expected_base is not None:
            errors = [{"field": "expect_first", "rule": "contradicts_expected_base"}]
            raise PassdownError("invalid_request", errors=errors, error_count=1)
        return None
    return head if ask.expected_base is None else to_head(ask.expected_base, "expected_base")


def _conflict(head: Head | None) -> PassdownError:
    current = _ref(head)
    return PassdownError("handoff_conflict", current=None if current is None else dump(current))


def _typed(citations: Iterable[CitationValue]) -> list[SourceCitation | ArtifactCitation]:
    return [
        validate(SourceCitation, citation) if citation["kind"] == "source" else validate(ArtifactCitation, citation)
        for citation in citations
    ]
