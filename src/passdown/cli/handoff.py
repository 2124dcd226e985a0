"""``handoff``: write down where the work stands, cited, in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, Yes, place

if TYPE_CHECKING:
    from passdown.app.handing import Previous
    from passdown.handoff.operations import HandOffNowAnswer, HandOffNowAsk
    from passdown.kernel.operations import Caller
    from passdown.report.models import WorkstreamDescriptor


def handoff(
    objective: Annotated[str | None, typer.Option(help="What this work is for (else as last time).")] = None,
    state: Annotated[list[str] | None, typer.Option(help="A statement about where it stands; repeatable.")] = None,
    next_: Annotated[str | None, typer.Option("--next", help="The next action to propose.")] = None,
    blocked: Annotated[list[str] | None, typer.Option(help="What blocks it; repeatable.")] = None,
    complete: Annotated[bool, typer.Option("--complete", help="The objective is reached.")] = False,
    cite: Annotated[
        list[str] | None, typer.Option(help="Commit or file that your statements rest on, beside HEAD; repeatable.")
    ] = None,
    only_words: Annotated[
        bool, typer.Option("--only-words", help="Leave out the statements made from git; evidence stays.")
    ] = False,
    data: Data = None,
    as_: As = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Commit a handoff: what git shows, and what you add.

    It cites the commits since the last handoff of the current workstream and what is uncommitted.
    """
    from passdown.app.handing import RECENT_COMMITS, Words, ask_from_checkout, previous
    from passdown.cli import catalog
    from passdown.handoff.host import Checkout
    from passdown.handoff.operations import HAND_OFF_NOW

    if blocked and complete:
        raise typer.BadParameter("a handoff is blocked or complete, not both", param_hint="--complete")
    if only_words and not (state or blocked or complete or next_):
        raise typer.BadParameter("needs words: --state, --next, --blocked or --complete", param_hint="--only-words")
    here = place(data, as_)
    scope_id = here.require_scope()
    words = Words(
        objective=objective,
        state=state or (),
        blocked=blocked or (),
        complete=complete,
        next_action=next_,
        cite=cite or (),
        only_words=only_words,
    )
    with here.calling() as call, here.git() as git:
        item = catalog.workstream_of(call, scope_id)
        locale = catalog.project(call, item.project_id).default_locale if item else "en"
        title = item.title if item else scope_id
        last = previous(call, scope_id)
        # The history of the repository belongs to the workstream that was there first; another one begins at HEAD.
        recent = 1 if item and last is None and _has_siblings(call, item) else RECENT_COMMITS
        ask = ask_from_checkout(call, Checkout(git), scope_id, words, title=title, locale=locale, recent=recent)
        if not json:
            screen.say(*preview(ask), *dropped(last, ask))
        if not screen.confirm("Commit this handoff?", assume_yes=yes):
            screen.say("Nothing was written.")
            raise typer.Exit(screen.CANCELLED)
        answer = call(HAND_OFF_NOW, ask)
    if json:
        from passdown.kernel.wire import dump

        screen.show_json(dump(answer))
        return
    screen.show(outcome(answer))
    screen.say("Next: passdown continue, passdown report")


def preview(ask: HandOffNowAsk) -> list[str]:
    """The handoff as it will be committed, with what each statement cites."""
    labels = {item.label: item for item in ask.evidence}
    lines = screen.fields(
        [
            ("Objective", ask.objective),
            ("Disposition", screen.status(ask.disposition)),
            ("Next action", ask.next_action.text if ask.next_action else "none proposed"),
        ],
        indent=0,
    )
    lines.append("State")
    for statement in ask.state:
        wrapped = screen.wrapped(statement.text, 4)
        lines.append("  • " + wrapped[0])
        lines += ["    " + line for line in wrapped[1:]]
        lines += screen.flowing("cites " + ", ".join(_cited(citation, labels) for citation in statement.citations), 6)
    if ask.omissions:
        lines.append("Omissions")
        lines += [line for omission in ask.omissions for line in screen.flowing(f"• {omission.text}", 2)]
    return lines


def _has_siblings(call: Caller, item: WorkstreamDescriptor) -> bool:
    from passdown.cli import catalog

    return any(other.scope_id != item.scope_id for other in catalog.workstreams(call, item.project_id))


def dropped(last: Previous | None, ask: HandOffNowAsk) -> list[str]:
    """What the handoff before this one said and this one takes back, so that nothing is unblocked by silence."""
    if last is None:
        return []
    before, lines = last.content, []
    if before.disposition != ask.disposition:
        lines.append(f"! Was {screen.status(before.disposition)}, is now {screen.status(ask.disposition)}")
    if before.next_action is not None and ask.next_action is None:
        lines += screen.flowing(f"! No longer proposed: {before.next_action.text}", 0)
    return lines


def _cited(citation: Any, labels: dict[str, Any]) -> str:
    label = str(getattr(citation, "label", ""))
    item = labels.get(label) if label else None
    if item is None and citation.kind == "source":
        return screen.plain(f"{citation.source_ref.source_type} {citation.source_ref.source_id[:12]}, as before")
    if item is None:
        return "the handoff before"
    facts = item.descriptor or {}
    if item.source_type == "git_commit":
        return f"{facts['oid'][:12]} ({held(facts['remote_refs'])})"
    if item.source_type == "worktree":
        return "the worktree as read now"
    return screen.plain(facts.get("path", label))


def held(remote_refs: Any) -> str:
    """Which remote-tracking refs held a commit when it was read, in words."""
    if remote_refs is None:
        return "remote-tracking refs not read"
    if not remote_refs:
        return "on no remote-tracking ref when read"
    named = ", ".join(screen.plain(name) for name in remote_refs[:3])
    return f"on {named}" + (f" and {len(remote_refs) - 3} more" if len(remote_refs) > 3 else "")


def outcome(answer: HandOffNowAnswer) -> list[str]:
    """One or two lines about what was stored."""
    committed = answer.committed
    if committed is None:
        return ["Prepared; nothing was committed."]
    revision = committed.handoff_ref.revision
    if committed.status == "unchanged":
        return [f"Unchanged: the same content is revision {revision} already."]
    lines = [f"Committed as revision {revision}  {committed.content_digest[:19]}…"]
    if answer.unproved:
        lines.append("Unproved: nothing that it cites was read by Passdown itself.")
    return lines
