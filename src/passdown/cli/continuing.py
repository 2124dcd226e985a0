"""``continue``: what this checkout is continuing, whether it is still true here, and what may be done next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from passdown.cli import screen
from passdown.cli.comparing import named, not_read, why_unknown
from passdown.cli.context import As, Data, Json, now_us, place
from passdown.cli.evidencing import bulleted, evidence_lines, marks, numbered, statement_lines

if TYPE_CHECKING:
    from passdown.handoff.host import Checkout
    from passdown.handoff.operations import ContinueAnswer, Workspace
    from passdown.kernel.operations import Caller

_RELATIONS = {
    "aligned": "HEAD is the cited commit",
    "ahead": "HEAD has newer commits than the handoff cites",
    "behind": "HEAD lacks commits that the handoff cites",
    "diverged": "HEAD and the cited commits have gone separate ways",
    "unknown": "cannot be decided here",
}
_REASONS = {
    "no_next_action": "the handoff proposes none",
    "evidence_unavailable": "evidence that it cites cannot be read",
    "superseded": "a newer handoff exists",
    "workspace_not_given": "nobody compared the checkout",
    "relation_unknown": "how this checkout stands to it cannot be decided",
    "diverged": "this checkout has diverged from it",
    "uncommitted_files_gone": "uncommitted files that it rests on are gone",
    "uncommitted_files_elsewhere": "uncommitted files that it rests on lie in another worktree",
}


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
    from passdown.app.resuming import continue_here
    from passdown.handoff.host import Checkout

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call, here.git() as git:
        checkout = Checkout(git)
        answer = continue_here(call, checkout, scope_id, objective=objective, require_usable=require_usable)
        other = None if json else other_worktree(call, checkout, answer)
    if json:
        from passdown.kernel.wire import dump

        screen.show_json(dump(answer))
        return
    screen.show(lines_of(answer, now_us(), verbose=verbose, other=other))


def other_worktree(call: Caller, checkout: Checkout, answer: ContinueAnswer) -> str | None:
    """Where the worktree lies that the handoff was written in, if that is another one: a path, or that it is gone.

    The path stays on this machine; it is no part of the answer.
    """
    from passdown.app.resuming import recorded_worktree
    from passdown.git.state import find_worktree

    then = answer.workspace.uncommitted if answer.workspace else None
    if then is None or not then.elsewhere or answer.content is None:
        return None
    recorded = recorded_worktree(call, answer.scope_id, answer.content)
    named = recorded.workspace_instance_id if recorded else None
    found = find_worktree(checkout.git.repository, named) if named else None
    return f"at {screen.plain(str(found))}" if found else "which is not in this repository any more"


def lines_of(answer: ContinueAnswer, now: int, *, verbose: bool = False, other: str | None = None) -> list[str]:
    """The answer as one screen: warnings first, orders last and only if they are usable.

    ``other`` says where the worktree is that the handoff was written in, if that is not this one.
    """
    content = answer.content
    if content is None:
        return ["No handoff has been committed to this workstream yet.", "Next: passdown handoff"]
    markers = numbered(answer.evidence)
    lines = screen.flowing(f"History, not an order: {_which(answer)}, {recorded(answer, now, verbose=verbose)}", 0)
    state = screen.status(content.disposition) + ("  unproved: rests on words alone" if answer.unproved else "")
    pairs = [("Objective", content.objective), ("Status", state)]
    if answer.objective_relation == "different":
        pairs.append(("Note", "your objective differs from the handoff's; it was not adopted"))
    if answer.workspace is not None:
        pairs.append(("Checkout", _checkout(answer.workspace)))
    lines += screen.fields(pairs, indent=0)
    if answer.workspace is not None:
        lines += _uncommitted(answer.workspace, other) + not_read(answer.workspace)
    lines += ["", "State"]
    for statement in content.state:
        lines += statement_lines(statement, markers)
    lines.append("Next action")
    if answer.next_action_usable and content.next_action is not None:
        lines += statement_lines(content.next_action, markers, bullet="→")
    elif content.next_action is None:
        lines.append("  none proposed")
    else:
        reasons = "; ".join(_REASONS[reason] for reason in answer.next_action_reasons)
        lines += screen.flowing(f"not usable as it stands: {reasons}", 2)
        lines += statement_lines(content.next_action, markers, bullet="(it said)")
    if content.omissions:
        lines.append("Omissions")
        for omission in content.omissions:
            lines += bulleted(omission.text, "•", marks([omission.citation] if omission.citation else [], markers))
    lines += screen.flowing(
        "Evidence (readable says that the reference resolves, not that the statement still holds)", 0
    )
    lines += evidence_lines(answer.evidence, verbose=verbose)
    return [line.rstrip() for line in lines]


def _which(answer: ContinueAnswer) -> str:
    if answer.selected_revision is not None:
        return f"revision {answer.selected_revision.revision}"
    return f"prepared handoff {(answer.content_digest or '')[:19]}…"


def recorded(answer: ContinueAnswer, now: int, *, verbose: bool) -> str:
    """When and by whom it was stored here."""
    from passdown.kernel.timestamps import ago, parse_timestamp

    if answer.recorded_at is None or answer.recorded_by is None:
        return "not committed"
    when = ago(parse_timestamp(answer.recorded_at), now)
    who = screen.plain(answer.recorded_by.principal_id)
    return f"stored {f'{answer.recorded_at} ({when})' if verbose else when} by {who} ({answer.recorded_by.identity})"


def _checkout(workspace: Workspace) -> str:
    text = f"{screen.status(workspace.relation)}: {_RELATIONS[workspace.relation]}"
    text += why_unknown(workspace)
    if workspace.dirty:
        shown = ", ".join(named(workspace.changed_paths[:5], workspace.remarks))
        more = len(workspace.changed_paths) - 5
        text += f"; uncommitted now: {shown}" + (f" and {more} more" if more > 0 else "")
    return text


def _uncommitted(workspace: Workspace, other: str | None) -> list[str]:
    then = workspace.uncommitted
    if then is None:
        return []
    lines = []
    if then.elsewhere:
        where = f"another worktree, {other}" if other else "another worktree"
        lines += screen.flowing(f"! Written in {where}; compared with what lies here:", 0)
    if then.gone:
        word = "not in this worktree" if then.elsewhere else "GONE now"
        lines += screen.flowing(f"! Uncommitted then, {word}: {', '.join(map(screen.plain, then.gone))}", 0)
    if then.changed:
        shown = ", ".join(named(then.changed, then.remarks))
        lines += screen.flowing(f"~ Uncommitted then, changed since: {shown}", 0)
    if then.present and not then.gone and not then.changed:
        lines += screen.flowing(f"= Uncommitted then, all {then.present} still there and unchanged", 0)
    if then.not_recorded:
        lines += screen.flowing(f"? Uncommitted then, cannot be compared (no digest): {then.not_recorded}", 0)
    return lines
