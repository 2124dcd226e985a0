"""``handoff show``, ``history``, ``diff`` and ``ack``: looking at what was handed off, and saying that it was read.

A revision is named by its number, by ``latest``, or by ``prev`` (the one before the current).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, Listed, Onward, Place, now_us, place

if TYPE_CHECKING:
    from passdown.handoff.acknowledgement_operations import Acknowledgements
    from passdown.handoff.diff_operations import DiffHandoffsAnswer
    from passdown.handoff.models import ArtifactRef
    from passdown.handoff.operations import ContinueAnswer, ListRevisionsAnswer
    from passdown.kernel.operations import Caller

Named = Annotated[str | None, typer.Argument(help="Revision: a number, `latest` or `prev` (else the current one).")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Exact times and every piece of evidence.")]
_KINDS = {
    "same": "=",
    "moved": "↕",
    "text_changed": "~",
    "citations_changed": "≈",
    "replaced": "~",
    "added": "+",
    "removed": "-",
    "none": " ",
}
_WORDS = {
    "same": "same",
    "moved": "moved",
    "text_changed": "other words, same evidence",
    "citations_changed": "same words, other evidence",
    "replaced": "replaced",
    "added": "added",
    "removed": "removed",
}


def revision_ref(call: Caller, scope_id: str, named: str | None) -> ArtifactRef | None:
    """The reference of a named revision; None for the current one. ``invalid_request`` for another word."""
    from passdown.handoff.models import handoff_ref
    from passdown.handoff.operations import GET_HANDOFF, GetHandoffAsk
    from passdown.kernel.errors import PassdownError

    if named is None or named == "latest":
        return None
    is_number = named.isascii() and named.isdigit() and len(named) <= 15 and int(named) > 0
    if not is_number and named != "prev":
        raise PassdownError("invalid_request", field="revision", rule="a_number_or_latest_or_prev")
    current = call(GET_HANDOFF, GetHandoffAsk(scope_id=scope_id)).handoff.handoff_ref
    wanted = int(named) if is_number else current.revision - 1
    if wanted < 1:
        raise PassdownError("handoff_not_found", field="revision")
    return handoff_ref(current.artifact_id, wanted)


def show(
    revision: Named = None, verbose: Verbose = False, data: Data = None, as_: As = None, json: Json = False
) -> None:
    """Show a handoff as it was written, and who took it.

    Nothing is compared with the checkout; for that there is `passdown continue`.
    """
    from passdown.kernel.wire import dump

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call:
        answer = _exact(call, scope_id, revision_ref(call, scope_id, revision))
    if json:
        screen.show_json(dump(answer))
        return
    screen.show(shown(answer, now_us(), verbose=verbose))


def _exact(call: Caller, scope_id: str, ref: ArtifactRef | None) -> ContinueAnswer:
    from passdown.handoff.operations import CONTINUE_HANDOFF, ContinueHandoffAsk
    from passdown.kernel.errors import PassdownError
    from passdown.kernel.wire import dump, validate

    target = {"kind": "latest"} if ref is None else {"kind": "exact", "handoff_ref": dump(ref)}
    ask = {"scope_id": scope_id, "confirm_scope": scope_id, "target": target}
    answer = call(CONTINUE_HANDOFF, validate(ContinueHandoffAsk, ask))
    if answer.content is None:
        raise PassdownError("handoff_not_found")
    return answer


def shown(answer: ContinueAnswer, now: int, *, verbose: bool) -> list[str]:
    """A handoff as one screen: what it says, what it rests on, who took it."""
    from passdown.cli.continuing import recorded
    from passdown.cli.evidencing import bulleted, evidence_lines, marks, numbered, statement_lines

    content, ref = answer.content, answer.selected_revision
    if content is None or ref is None:
        return []
    markers = numbered(answer.evidence)
    which = "the current one" if answer.is_current else f"current is {_number(answer.current_revision)}"
    lines = screen.flowing(f"Revision {ref.revision} ({which}), {recorded(answer, now, verbose=verbose)}", 0)
    state = screen.status(content.disposition) + ("  unproved: rests on words alone" if answer.unproved else "")
    lines += screen.fields(
        [("Objective", content.objective), ("Status", state), ("Digest", answer.content_digest or "")], indent=0
    )
    lines += ["", "State"]
    for statement in content.state:
        lines += statement_lines(statement, markers)
    lines.append("Next action, as it was proposed then")
    lines += statement_lines(content.next_action, markers) if content.next_action else ["  none"]
    if content.omissions:
        lines.append("Omissions")
        for omission in content.omissions:
            lines += bulleted(omission.text, "•", marks([omission.citation] if omission.citation else [], markers))
    lines.append("Evidence")
    lines += evidence_lines(answer.evidence, verbose=verbose)
    lines += receipts(answer.acknowledgements, now, verbose=verbose)
    return [line.rstrip() for line in lines]


def _number(ref: ArtifactRef | None) -> str:
    return "none" if ref is None else str(ref.revision)


def receipts(found: Acknowledgements | None, now: int, *, verbose: bool) -> list[str]:
    """Who took it and who did not, newest first."""
    from passdown.kernel.timestamps import ago, parse_timestamp

    if found is None or not found.newest:
        return ["Receipts", "  not acknowledged yet"]
    lines = ["Receipts"]
    for item in found.newest:
        when = item.recorded_at if verbose else ago(parse_timestamp(item.recorded_at), now)
        who = f"{screen.plain(item.recorded_by.principal_id)} ({item.recorded_by.identity})"
        reason = f": {item.reason}" if item.reason else ""
        lines += screen.flowing(f"{screen.status(item.verdict)} by {who}, {when}{reason}", 2)
        checked = [check for check in item.checks if check.result != "not_checked"]
        lines += [line for check in checked for line in screen.flowing(_checked(check), 4)]
    more = found.accepted + found.declined - len(found.newest)
    return [*lines, f"  … and {more} earlier ones"] if more > 0 else lines


def _checked(check: Any) -> str:
    where = "next action" if check.claim == "next_action" else f"statement {check.state_index + 1}"
    return f"{where} {check.result}" + (f": {check.note}" if check.note else "")


def history(
    limit: Listed = 20,
    cursor: Onward = None,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """List the revisions of this workstream, newest first."""
    from passdown.handoff.operations import LIST_HANDOFF_REVISIONS, ListRevisionsAsk
    from passdown.kernel.wire import build, dump

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call:
        page = call(LIST_HANDOFF_REVISIONS, build(ListRevisionsAsk, scope_id=scope_id, cursor=cursor, limit=limit))
    if json:
        screen.show_json(dump(page))
        return
    screen.show(listed(page, now_us()))
    if page.next_cursor:
        screen.say(f"More: passdown handoff history --cursor {page.next_cursor}")
    elif not page.revisions:
        screen.say("Next: passdown handoff")


def listed(page: ListRevisionsAnswer, now: int) -> list[str]:
    """One line for each revision."""
    from passdown.kernel.timestamps import ago, parse_timestamp

    if not page.revisions:
        return ["No handoff has been committed to this workstream yet."]
    rows = []
    for item in page.revisions:
        taken = f"{item.accepted} accepted" if item.accepted else ""
        refused = f"{item.declined} declined" if item.declined else ""
        rows.append(
            (
                str(item.handoff_ref.revision),
                screen.status(item.disposition),
                ago(parse_timestamp(item.recorded_at), now),
                screen.short(item.recorded_by.principal_id, 20),
                ", ".join(filter(None, (taken, refused))) or "not acknowledged",
                screen.plain(item.objective),
            )
        )
    return screen.table(rows, indent=0)


def diff(
    before: Annotated[str | None, typer.Argument(help="Older revision (else the one before the newer).")] = None,
    after: Annotated[str | None, typer.Argument(help="Newer revision (else the current one).")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Show what is the same, too.")] = False,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Compare two revisions, statement by statement."""
    from passdown.handoff.diff_operations import DIFF_HANDOFFS, DiffHandoffsAsk
    from passdown.kernel.wire import dump

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call:
        ask = DiffHandoffsAsk(
            scope_id=scope_id,
            before=_current(here, call, scope_id) if before == "latest" else revision_ref(call, scope_id, before),
            after=revision_ref(call, scope_id, after),
        )
        answer = call(DIFF_HANDOFFS, ask)
    if json:
        screen.show_json(dump(answer))
        return
    screen.show(compared(answer, everything=all_))


def compared(answer: DiffHandoffsAnswer, *, everything: bool) -> list[str]:
    """What differs, as lines that begin with a sign and tell it in words."""
    lines = [f"Revision {_number(answer.before)} → {_number(answer.after)}"]
    if answer.identical and not everything:
        return [*lines, "  They say the same."]
    for label, change in (("Objective", answer.objective), ("Disposition", answer.disposition)):
        if change.changed:
            lines.append(label)
            lines += _pair(change.before, change.after)
    if answer.next_action.kind not in ("same", "none") or (everything and answer.next_action.kind == "same"):
        lines.append("Next action")
        lines += _statement(answer.next_action)
    changes = [item for item in answer.state if everything or item.kind != "same"]
    if changes:
        lines.append("State")
        lines += [line for item in changes for line in _statement(item)]
    omissions = [item for item in answer.omissions if everything or item.kind != "same"]
    if omissions:
        lines.append("Omissions")
        for omission in omissions:
            lines += screen.flowing(f"{_KINDS[omission.kind]} {omission.omission.text}", 2)
    left = answer.counts["same"]
    if left and not everything:
        lines.append(f"  {left} statements are the same; --all shows them")
    return lines


def _pair(before: str | None, after: str | None) -> list[str]:
    lines = [] if before is None else screen.flowing(f"- {before}", 2)
    return lines + ([] if after is None else screen.flowing(f"+ {after}", 2))


def _statement(change: Any) -> list[str]:
    before = change.before.text if change.before else None
    after = change.after.text if change.after else None
    if change.kind in ("text_changed", "replaced"):
        return [*screen.flowing(f"{_KINDS[change.kind]} {_WORDS[change.kind]}", 2), *_deeper(_pair(before, after))]
    shown = after if after is not None else before
    word = "" if change.kind in ("added", "removed", "same") else f"  ({_WORDS[change.kind]})"
    return screen.flowing(f"{_KINDS[change.kind]} {shown}{word}", 2)


def _deeper(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


def ack(
    revision: Named = None,
    accept: Annotated[bool, typer.Option("--accept", help="You take it.")] = False,
    decline: Annotated[bool, typer.Option("--decline", help="You do not; give a reason.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why, in words for the sender.")] = None,
    confirm: Annotated[
        list[int] | None, typer.Option(help="Statement that you found true, by its number; repeatable.", min=1)
    ] = None,
    refute: Annotated[
        list[int] | None, typer.Option(help="Statement that you found untrue, by its number; repeatable.", min=1)
    ] = None,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Say that you took a handoff, or did not.

    The sender sees it; nothing else changes.
    """
    from passdown.handoff.acknowledgement_operations import ACKNOWLEDGE_HANDOFF, AcknowledgeHandoffAsk
    from passdown.kernel.wire import dump, validate

    if accept == decline:
        raise typer.BadParameter("say one of --accept and --decline", param_hint="--accept")
    if decline and not reason:
        raise typer.BadParameter("say why, for the sender", param_hint="--reason")
    here = place(data, as_)
    scope_id = here.require_scope()
    checks = [_check(number, "confirmed") for number in confirm or ()]
    checks += [_check(number, "refuted") for number in refute or ()]
    with here.calling() as call:
        ref = revision_ref(call, scope_id, revision) or _current(here, call, scope_id)
        ask = {
            "scope_id": scope_id,
            "target": {"kind": "exact", "handoff_ref": dump(ref)},
            "verdict": "accepted" if accept else "declined",
            "reason": reason,
            "checks": checks,
        }
        answer = call(ACKNOWLEDGE_HANDOFF, validate(AcknowledgeHandoffAsk, ask))
    if json:
        screen.show_json(dump(answer))
        return
    again = " already" if answer.replayed else ""
    screen.show([f"Revision {ref.revision}: {screen.status(answer.acknowledgement.verdict)}{again}"])


def _current(here: Place, call: Caller, scope_id: str) -> ArtifactRef:
    from passdown.handoff.operations import GET_HANDOFF, GetHandoffAsk

    return call(GET_HANDOFF, GetHandoffAsk(scope_id=scope_id)).handoff.handoff_ref


def _check(number: int, result: str) -> dict[str, Any]:
    return {"claim": "state", "state_index": number - 1, "result": result}
