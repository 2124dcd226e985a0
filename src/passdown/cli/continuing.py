"""``continue``: what this checkout is continuing, whether it is still true here, and what may be done next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, now_us, place
from passdown.cli.handoff import held

if TYPE_CHECKING:
    from passdown.handoff.operations import ContinueAnswer, Workspace

_RELATIONS = {
    "aligned": "HEAD is the cited commit",
    "ahead": "HEAD has newer commits than the handoff cites",
    "behind": "HEAD lacks commits that the handoff cites",
    "diverged": "HEAD and the cited commits have gone separate ways",
    "unknown": "cannot be decided here: no commit is cited, or this clone lacks it",
}
_REASONS = {
    "no_next_action": "the handoff proposes none",
    "evidence_unavailable": "evidence that it cites cannot be read",
    "superseded": "a newer handoff exists",
    "workspace_not_given": "nobody compared the checkout",
    "relation_unknown": "how this checkout stands to it cannot be decided",
    "diverged": "this checkout has diverged from it",
    "uncommitted_files_gone": "uncommitted files that it rests on are gone",
}
_ASSURANCE = {"caller_supplied": "said, not read", "referenced": "reference only"}


def continue_(
    objective: Annotated[
        str | None, typer.Option(help="Your objective now; a different one is reported, not adopted.")
    ] = None,
    require_usable: Annotated[
        bool, typer.Option("--require-usable", help="Fail when the next action is not usable here.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Exact times and every piece of evidence.")] = False,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Show the current handoff, compared with this checkout.

    It is shown as history, not as an order. Nothing is executed and nothing is written.
    """
    from passdown.app.handing import continue_here
    from passdown.handoff.host import Checkout

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call, here.git() as git:
        answer = continue_here(call, Checkout(git), scope_id, objective=objective, require_usable=require_usable)
    if json:
        from passdown.kernel.wire import dump

        screen.show_json(dump(answer))
        return
    screen.show(lines_of(answer, now_us(), verbose=verbose))


def lines_of(answer: ContinueAnswer, now: int, *, verbose: bool = False) -> list[str]:
    """The answer as one screen: warnings first, orders last and only if they are usable."""
    content = answer.content
    if content is None or answer.selected_revision is None:
        return ["No handoff has been committed to this workstream yet.", "Next: passdown handoff"]
    markers = {_key(item.citation): index for index, item in enumerate(answer.evidence, 1)}
    lines = screen.flowing(
        f"History, not an order: revision {answer.selected_revision.revision}, {_recorded(answer, now, verbose)}", 0
    )
    state = screen.status(content.disposition) + ("  unproved: rests on words alone" if answer.unproved else "")
    pairs = [("Objective", content.objective), ("Status", state)]
    if answer.objective_relation == "different":
        pairs.append(("Note", "your objective differs from the handoff's; it was not adopted"))
    if answer.workspace is not None:
        pairs.append(("Checkout", _checkout(answer.workspace)))
    lines += screen.fields(pairs, indent=0)
    if answer.workspace is not None and answer.workspace.uncommitted is not None:
        lines += _uncommitted(answer.workspace)
    lines += ["", "State"]
    for statement in content.state:
        lines += _statement(statement, markers)
    lines.append("Next action")
    if answer.next_action_usable and content.next_action is not None:
        lines += _statement(content.next_action, markers, bullet="→")
    elif content.next_action is None:
        lines.append("  none proposed")
    else:
        reasons = "; ".join(_REASONS[reason] for reason in answer.next_action_reasons)
        lines += screen.flowing(f"not usable as it stands: {reasons}", 2)
        lines += _statement(content.next_action, markers, bullet="(it said)")
    if content.omissions:
        lines.append("Omissions")
        for omission in content.omissions:
            lines += _bullet(omission.text, "•", _markers([omission.citation] if omission.citation else [], markers))
    lines += screen.flowing(
        "Evidence (readable says that the reference resolves, not that the statement still holds)", 0
    )
    lines += _evidence(answer, verbose)
    return [line.rstrip() for line in lines]


def _key(citation: Any) -> str:
    from passdown.kernel.wire import dump

    return repr(sorted(dump(citation).items(), key=str))


def _recorded(answer: ContinueAnswer, now: int, verbose: bool) -> str:
    from passdown.kernel.timestamps import ago, parse_timestamp

    if answer.recorded_at is None or answer.recorded_by is None:
        return "not committed"
    when = ago(parse_timestamp(answer.recorded_at), now)
    who = screen.plain(answer.recorded_by.principal_id)
    return f"stored {f'{answer.recorded_at} ({when})' if verbose else when} by {who} ({answer.recorded_by.identity})"


def _checkout(workspace: Workspace) -> str:
    text = f"{screen.status(workspace.relation)}: {_RELATIONS[workspace.relation]}"
    if workspace.dirty:
        shown = ", ".join(screen.plain(path) for path in workspace.changed_paths[:5])
        more = len(workspace.changed_paths) - 5
        text += f"; uncommitted now: {shown}" + (f" and {more} more" if more > 0 else "")
    return text


def _uncommitted(workspace: Workspace) -> list[str]:
    then = workspace.uncommitted
    if then is None:
        return []
    lines = []
    if then.gone:
        lines += screen.flowing(f"! Uncommitted then, GONE now: {', '.join(map(screen.plain, then.gone))}", 0)
    if then.changed:
        lines += screen.flowing(f"~ Uncommitted then, changed since: {', '.join(map(screen.plain, then.changed))}", 0)
    if then.present and not then.gone and not then.changed:
        lines += screen.flowing(f"= Uncommitted then, all {then.present} still there and unchanged", 0)
    if then.not_recorded:
        lines += screen.flowing(f"? {then.not_recorded} uncommitted paths were counted then but not recorded", 0)
    return lines


def _markers(citations: Sequence[Any], markers: dict[str, int]) -> str:
    return "".join(f"[{markers[_key(citation)]}]" for citation in citations)


def _bullet(text: str, bullet: str, marks: str) -> list[str]:
    indent = len(bullet) + 3
    wrapped = screen.wrapped(f"{text} {marks}".rstrip(), indent)
    return [f"  {bullet} {wrapped[0]}", *(" " * indent + line for line in wrapped[1:])]


def _statement(statement: Any, markers: dict[str, int], bullet: str = "•") -> list[str]:
    return _bullet(statement.text, bullet, _markers(statement.citations, markers))


def _evidence(answer: ContinueAnswer, verbose: bool) -> list[str]:
    rows = []
    for index, item in enumerate(answer.evidence, 1):
        kind = item.citation.source_ref.source_type if item.citation.kind == "source" else "handoff"
        if item.assurance == "host_read":
            word = f"read by {screen.plain(item.read_by or '')}"
        else:
            word = _ASSURANCE.get(item.assurance or "", "stored here" if item.readable else "")
        if kind == "git_commit":
            word += f", {held(item.remote_refs)}"
        mark = "readable" if item.readable else "NOT READABLE"
        rows.append((f"[{index}]", mark, _KINDS.get(kind, kind), screen.plain(item.label), word))
    shown = rows if verbose else rows[:_EVIDENCE_ROWS]
    lines = []
    for number, mark, kind, label, word in shown:
        lines += [*screen.flowing(f"{number} {kind} {label}", 2), *screen.flowing(f"{mark}, {word}", 6)]
    if len(shown) < len(rows):
        lines.append(f"  … {len(rows) - len(shown)} more with --verbose")
    return lines


_KINDS = {"git_commit": "commit", "content": "note", "worktree": "uncommitted files at", "handoff": "earlier"}
_EVIDENCE_ROWS = 12
