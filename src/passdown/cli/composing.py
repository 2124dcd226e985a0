"""Putting a handoff together: from words, from a document, into the store or into a file. Shows nothing itself.

A :class:`Proposal` is a handoff that is not committed yet, with the lines that tell what it will say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passdown.app.citing import Words
from passdown.app.desks import Desk, desk, request
from passdown.app.documents import (
    DraftDocument,
    Script,
    SealedRequest,
    opened,
    parse_document,
    require_scope,
    seal,
    words_of,
)
from passdown.app.handing import compose
from passdown.cli import screen
from passdown.cli.files import read_input, write_output
from passdown.cli.previewing import committed_lines, dropped, outcome, preview
from passdown.handoff.host import Checkout
from passdown.handoff.models import Draft, PreparedHandoff
from passdown.handoff.operations import (
    COMMIT_HANDOFF,
    FINALIZE_HANDOFF,
    HAND_OFF_NOW,
    PREPARE_HANDOFF,
    FinalizeHandoffAsk,
    HandOffNowAsk,
    PrepareHandoffAsk,
)
from passdown.kernel import limits
from passdown.kernel.canonical import canonical_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import Wire, dump, validate

if TYPE_CHECKING:
    from passdown.cli.context import Place

_NO_STORE = ("store_not_readable", "store_not_writable", "store_busy", "server_not_reachable")


@dataclass(frozen=True, slots=True)
class Reports:
    """Test reports that the words rest on, and the commit that a person says they ran on."""

    files: tuple[Path, ...] = ()
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would be committed; ``commit`` does it and returns the answer with the lines that tell it."""

    lines: list[str]
    commit: Callable[[], tuple[Wire, list[str]]]


def with_reports(checkout: Checkout, words: Words | None, reports: Reports) -> Words:
    """The words, resting on the test reports too."""
    found = words or Words()
    if not reports.files:
        if reports.commit is not None:
            raise PassdownError("invalid_request", field="tests_commit", rule="needs_tests")
        return found
    from passdown.app.test_reports import report_evidence

    evidence = [report_evidence(checkout, path, reports.commit) for path in reports.files]
    return replace(found, reports=evidence)


def from_words(at: Desk, words: Words) -> Proposal:
    """A handoff of what git shows and what somebody says."""
    return _of_request(at, request(at, words))


def drafted(at: Desk, words: Words) -> Proposal:
    """A handoff with what the drafting provider proposes; without one, or where it fails, as it is without."""
    ask = request(at, words)
    members = {name: value for name, value in dump(ask).items() if name in PrepareHandoffAsk.model_fields}
    answer = at.call(PREPARE_HANDOFF, validate(PrepareHandoffAsk, {**members, "propose": True}))
    if answer.drafting.status != "proposed":
        why = answer.drafting.reason or "no provider is set up, see PASSDOWN_DRAFTING_URL"
        plain = _of_request(at, ask)
        return replace(plain, lines=[f"Nothing was proposed: {why}.", *plain.lines])
    counts = f"{answer.drafting.accepted} proposals by the drafting provider, {answer.drafting.refused} refused"
    found = of_prepared(at, _finalized(at, _based(at, answer.draft)))
    return replace(found, lines=[f"{counts}: read them before you commit.", *found.lines])


def from_document(at: Desk, path: Path) -> Proposal:
    """A handoff of a document, see :mod:`passdown.app.documents`."""
    document = parse_document(read_input(path, limits.REQUEST_BODY_BYTES, field="from"))
    if isinstance(document, Script):
        return from_words(at, words_of(document, at.checkout))
    if isinstance(document, SealedRequest):
        require_scope(at.scope_id, document.request.scope_id)
        return _of_request(at, opened(document, at.checkout))
    if isinstance(document, DraftDocument):
        require_scope(at.scope_id, document.scope_id)
        return of_prepared(at, _finalized(at, document))
    require_scope(at.scope_id, document.scope_id)
    return of_prepared(at, document)


def _based(at: Desk, draft: Draft) -> DraftDocument:
    """The draft on the head that was seen, so that one that moved meanwhile is a conflict."""
    return DraftDocument(scope_id=at.scope_id, base=at.last.ref if at.last else None, is_on_base=True, draft=draft)


def _finalized(at: Desk, document: DraftDocument) -> PreparedHandoff:
    prepared = at.call(FINALIZE_HANDOFF, FinalizeHandoffAsk(scope_id=at.scope_id, draft=document.draft))
    if document.is_on_base and prepared.base != document.base:
        raise PassdownError("handoff_conflict", current=dump(prepared.base) if prepared.base else None)
    return prepared


def _of_request(at: Desk, ask: HandOffNowAsk) -> Proposal:
    def commit() -> tuple[Wire, list[str]]:
        answer = at.call(HAND_OFF_NOW, ask)
        return answer, outcome(answer)

    return Proposal([*preview(ask), *dropped(at.last, ask)], commit)


def of_prepared(at: Desk, prepared: PreparedHandoff) -> Proposal:
    """A handoff that is finalised already."""

    def commit() -> tuple[Wire, list[str]]:
        answer = at.call(COMMIT_HANDOFF, prepared)
        return answer, committed_lines(answer)

    return Proposal([*preview(prepared.content), *dropped(at.last, prepared.content)], commit)


def write_sealed(
    here: Place, scope_id: str, words: Words | None, reports: Reports, *, source: Path | None, target: Path
) -> None:
    """Write the sealed request to a file. No store is written, and none is needed.

    Where one can be read, the request goes on from its last handoff and will be refused if that has moved. Where none
    can be, an objective is needed, and the request is committed on whatever is current then.
    """
    taken_back: list[str] = []
    try:
        with here.calling() as call, here.git() as git:
            at = desk(call, Checkout(git), scope_id)
            ask = _sealed_request(at, words, reports, source)
            taken_back = dropped(at.last, ask)
    except PassdownError as error:
        if error.code not in _NO_STORE:
            raise
        ask = _blind_request(here, scope_id, words, reports, source)
    write_output(target, canonical_bytes(seal(ask)) + b"\n")
    screen.say(*preview(ask), *taken_back)
    screen.say("Nothing was committed. Whoever can write the store runs: passdown handoff --from FILE")


def _sealed_request(at: Desk, words: Words | None, reports: Reports, source: Path | None) -> HandOffNowAsk:
    return request(at, with_reports(at.checkout, _script(at.checkout, source) if source else words, reports))


def _script(checkout: Checkout, source: Path) -> Words:
    document = parse_document(read_input(source, limits.REQUEST_BODY_BYTES, field="from"))
    if not isinstance(document, Script):
        raise PassdownError("invalid_request", field="from", rule="is_a_handoff_already")
    return words_of(document, checkout)


def _blind_request(
    here: Place, scope_id: str, words: Words | None, reports: Reports, source: Path | None
) -> HandOffNowAsk:
    with here.git() as git:
        checkout = Checkout(git)
        said = with_reports(checkout, _script(checkout, source) if source else words, reports)
        if said.objective is None:
            guidance = "The store cannot be read, so last time's objective is unknown: give one with `--objective`."
            raise PassdownError("invalid_request", field="objective", rule="missing", guidance=guidance)
        return compose(None, checkout, scope_id, said, title=said.objective, locale="en", is_blind=True)
