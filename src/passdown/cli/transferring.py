"""``handoff send`` and ``handoff receive``: a prepared handoff as a file or through a pipe; ``handoff recover``.

Losing the document loses nothing that was saved: its evidence is stored with whoever sends, and no revision is made
before somebody commits it. The digest is checked on receipt.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, now_us, place
from passdown.cli.handoff import (
    Blocked,
    Cite,
    Complete,
    Next,
    Objective,
    OnlyWords,
    State,
    Tests,
    TestsCommit,
    words_from,
)

if TYPE_CHECKING:
    from passdown.handoff.models import PreparedHandoff
    from passdown.kernel.operations import Caller

Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write (else stdout).")]


def send(
    objective: Objective = None,
    state: State = None,
    next_: Next = None,
    blocked: Blocked = None,
    complete: Complete = False,
    cite: Cite = None,
    only_words: OnlyWords = False,
    tests: Tests = None,
    tests_commit: TestsCommit = None,
    output: Output = None,
    data: Data = None,
    as_: As = None,
    json: Annotated[
        bool, typer.Option("--json", help="As it always is: one JSON document.", show_default=False)
    ] = True,
) -> None:
    """Prepare a handoff and write it as a document.

    The evidence is stored here, no revision is made. The receiver runs `passdown handoff receive FILE`.
    """
    from passdown.app.desks import desk, request
    from passdown.cli import composing
    from passdown.cli.files import write_output
    from passdown.cli.previewing import dropped, preview
    from passdown.handoff.host import Checkout
    from passdown.handoff.operations import HAND_OFF_NOW
    from passdown.kernel.canonical import canonical_bytes
    from passdown.kernel.wire import dump

    words = words_from(
        objective=objective,
        state=state,
        next_=next_,
        blocked=blocked,
        complete=complete,
        cite=cite,
        only_words=only_words,
    )
    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call, here.git() as git:
        at = desk(call, Checkout(git), scope_id)
        said = composing.with_reports(at.checkout, words, composing.Reports(tuple(tests or ()), tests_commit))
        ask = request(at, said).model_copy(update={"commit": False})
        prepared = call(HAND_OFF_NOW, ask).prepared
    write_output(output, canonical_bytes(dump(prepared)) + b"\n")
    screen.say(*preview(ask), *dropped(at.last, ask))
    screen.say(f"Prepared {prepared.content_digest[:19]}…; nothing was committed.")


def receive(
    file: Annotated[Path, typer.Argument(help="The prepared handoff; `-` reads stdin.")],
    commit: Annotated[bool, typer.Option("--commit", help="Commit it as the next revision.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Record that you take it.")] = False,
    decline: Annotated[bool, typer.Option("--decline", help="Record that you do not; give a reason.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why, in words for the sender.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Exact times and every piece of evidence.")] = False,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Check a prepared handoff and compare it.

    It is shown as history, not as an order. Only `--commit`, `--accept` and `--decline` write anything.
    """
    from passdown.app.documents import parse_document, require_scope
    from passdown.app.resuming import continue_here
    from passdown.cli.continuing import lines_of, other_worktree
    from passdown.cli.files import read_input
    from passdown.handoff.host import Checkout
    from passdown.handoff.models import PreparedHandoff
    from passdown.kernel import limits
    from passdown.kernel.errors import PassdownError
    from passdown.kernel.wire import dump

    if accept and decline:
        raise typer.BadParameter("a handoff is accepted or declined, not both", param_hint="--decline")
    if decline and commit:
        raise typer.BadParameter("a handoff that you decline is not committed by you", param_hint="--commit")
    if decline and not reason:
        raise typer.BadParameter("say why, for the sender", param_hint="--reason")
    if reason and not (accept or decline):
        raise typer.BadParameter("goes with --accept or --decline", param_hint="--reason")
    prepared = parse_document(read_input(file, limits.REQUEST_BODY_BYTES))
    if not isinstance(prepared, PreparedHandoff):
        guidance = "It is no prepared handoff; words, drafts and sealed requests go to `passdown handoff --from FILE`."
        raise PassdownError("invalid_request", field="file", rule="not_a_prepared_handoff", guidance=guidance)
    here = place(data, as_)
    scope_id = here.require_scope()
    require_scope(scope_id, prepared.scope_id)
    with here.calling() as call, here.git() as git:
        target = {"kind": "prepared", "prepared": dump(prepared)}
        checkout = Checkout(git)
        shown = continue_here(call, checkout, scope_id, target=target)
        other = None if json else other_worktree(call, checkout, shown)
        done = _act(call, prepared, commit=commit, verdict=_verdict(accept, decline), reason=reason)
    if json:
        screen.show_json({"continue": dump(shown), **{name: dump(answer) for name, (answer, _) in done.items()}})
        return
    screen.show(lines_of(shown, now_us(), verbose=verbose, other=other))
    for _, lines in done.values():
        screen.show(lines)
    if not done:
        screen.say("Nothing was written. Next: the same with --commit, --accept, or --decline --reason TEXT")


def _verdict(accept: bool, decline: bool) -> str | None:
    return "accepted" if accept else "declined" if decline else None


def _act(
    call: Caller, prepared: PreparedHandoff, *, commit: bool, verdict: str | None, reason: str | None
) -> dict[str, tuple[Any, list[str]]]:
    """What was asked for beside looking, in the order in which it is safe: the receipt needs no commit."""
    from passdown.cli.previewing import committed_lines
    from passdown.handoff.acknowledgement_operations import ACKNOWLEDGE_HANDOFF, AcknowledgeHandoffAsk
    from passdown.handoff.operations import COMMIT_HANDOFF
    from passdown.kernel.wire import validate

    done: dict[str, tuple[Any, list[str]]] = {}
    if commit:
        committed = call(COMMIT_HANDOFF, prepared)
        done["committed"] = (committed, committed_lines(committed))
    if verdict is not None:
        target: dict[str, Any] = {"kind": "prepared", "content_digest": prepared.content_digest}
        if commit:
            # Once it is a revision, its sender looks for the receipt there.
            target = {"kind": "exact", "handoff_ref": done["committed"][0].handoff_ref.model_dump()}
        ask = {"scope_id": prepared.scope_id, "target": target, "verdict": verdict, "reason": reason}
        answer = call(ACKNOWLEDGE_HANDOFF, validate(AcknowledgeHandoffAsk, ask))
        done["acknowledged"] = (answer, [f"Recorded: {screen.status(verdict)}."])
    return done


def recover(
    objective: Annotated[str | None, typer.Option(help="What the work is for, where no handoff says it.")] = None,
    output: Output = None,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Draft a handoff for an author who could not.

    It has what is on disk and the words of the last handoff. It is never committed by itself: look at it, change it if
    it is wrong, then `passdown handoff --from FILE`.
    """
    from passdown.app.desks import desk
    from passdown.app.recovering import recover_here
    from passdown.cli.files import write_output
    from passdown.cli.previewing import preview
    from passdown.handoff.host import Checkout
    from passdown.kernel.canonical import canonical_bytes
    from passdown.kernel.wire import dump

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call, here.git() as git:
        at = desk(call, Checkout(git), scope_id)
        answer = recover_here(
            call,
            at.checkout,
            scope_id,
            objective=objective or (None if at.last else at.title),
            locale=at.locale,
            recent=at.recent,
        )
    if json or output is not None:
        write_output(output, canonical_bytes(dump(answer)) + b"\n")
    if json and output is None:
        return
    screen.show(["Recovered draft; its author did not write it, and nothing is committed.", *preview(answer.draft)])
    named = screen.plain(str(output)) if output is not None else "FILE"
    first = "" if output is not None else "passdown handoff recover --output FILE, then "
    screen.say(f"Next: {first}passdown handoff --from {named}")
