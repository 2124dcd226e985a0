"""``handoff``: write down where the work stands, cited, in one command; and the group of what is done with handoffs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from passdown.cli import screen
from passdown.cli.commands import HANDOFF, Commands
from passdown.cli.context import As, Data, Json, Yes, place

if TYPE_CHECKING:
    from passdown.app.citing import Words

Objective = Annotated[str | None, typer.Option(help="What this work is for (else as last time).")]
State = Annotated[list[str] | None, typer.Option(help="A statement about where it stands; repeatable.")]
Next = Annotated[str | None, typer.Option("--next", help="The next action to propose.")]
Blocked = Annotated[list[str] | None, typer.Option(help="What blocks it; repeatable.")]
Complete = Annotated[bool, typer.Option("--complete", help="The objective is reached.")]
Cite = Annotated[
    list[str] | None, typer.Option(help="Commit or file that your statements rest on, beside HEAD; repeatable.")
]
OnlyWords = Annotated[
    bool, typer.Option("--only-words", help="Leave out the statements made from git; evidence stays.")
]
Tests = Annotated[list[Path] | None, typer.Option(help="JUnit XML report that your statements rest on; repeatable.")]
TestsCommit = Annotated[
    str | None, typer.Option(help="The commit that those reports ran on, where they do not say it themselves.")
]


class _Handoffs(TyperGroup):
    """The commands below ``handoff``, each made when it is first asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(HANDOFF)  # type: ignore[assignment]  # read only; nothing adds to it

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


handoff_app = typer.Typer(
    cls=_Handoffs,
    help="Commit a handoff: what git shows, and what you add.",
    rich_markup_mode=None,
    invoke_without_command=True,
    no_args_is_help=False,
)


@handoff_app.callback()
def handoff(
    context: typer.Context,
    objective: Objective = None,
    state: State = None,
    next_: Next = None,
    blocked: Blocked = None,
    complete: Complete = False,
    cite: Cite = None,
    only_words: OnlyWords = False,
    tests: Tests = None,
    tests_commit: TestsCommit = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="A document instead of options: words, a draft, a prepared or sealed handoff."),
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Let the drafting provider propose statements; see PASSDOWN_DRAFTING_URL.")
    ] = False,
    to_file: Annotated[
        Path | None, typer.Option(help="Write the sealed request to this file instead of the store; for `--from`.")
    ] = None,
    data: Data = None,
    as_: As = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Commit a handoff: what git shows, and what you add.

    It cites the commits since the last handoff of the current workstream and what is uncommitted. On a terminal and
    without words it asks for them.
    """
    if context.invoked_subcommand is not None:
        return
    from passdown.app.desks import desk
    from passdown.cli import composing
    from passdown.handoff.host import Checkout

    words = words_from(
        objective=objective,
        state=state,
        next_=next_,
        blocked=blocked,
        complete=complete,
        cite=cite,
        only_words=only_words,
    )
    reports = composing.Reports(tuple(tests or ()), tests_commit)
    has_words = words is not None or bool(reports.files) or tests_commit is not None
    if from_ is not None and has_words:
        raise typer.BadParameter("the document has the words; leave out the other options", param_hint="--from")
    if draft and (from_ is not None or to_file is not None):
        raise typer.BadParameter("needs the store and no document", param_hint="--draft")
    if draft and not yes and not screen.is_interactive():
        raise typer.BadParameter(
            "nobody is here to read what is proposed; commit it unread with --yes", param_hint="--draft"
        )
    here = place(data, as_)
    scope_id = here.require_scope()
    if to_file is not None:
        composing.write_sealed(here, scope_id, words, reports, source=from_, target=to_file)
        return
    with here.calling() as call, here.git() as git:
        at = desk(call, Checkout(git), scope_id)
        if from_ is not None:
            proposal = composing.from_document(at, from_)
        elif not has_words and not (yes or json or draft) and screen.is_interactive():
            from passdown.cli.guided import ask

            proposal = composing.from_words(at, ask(at))
        else:
            said = composing.with_reports(at.checkout, words, reports)
            proposal = composing.drafted(at, said) if draft else composing.from_words(at, said)
        if not json:
            screen.say(*proposal.lines)
        if not screen.confirm("Commit this handoff?", assume_yes=yes):
            screen.say("Nothing was written.")
            raise typer.Exit(screen.CANCELLED)
        answer, lines = proposal.commit()
    if json:
        from passdown.kernel.wire import dump

        screen.show_json(dump(answer))
        return
    screen.show(lines)
    screen.say("Next: passdown continue, passdown report")


def words_from(
    *,
    objective: str | None,
    state: list[str] | None,
    next_: str | None,
    blocked: list[str] | None,
    complete: bool,
    cite: list[str] | None,
    only_words: bool,
) -> Words | None:
    """The words of the options, or None where there are none; a contradiction is a usage error."""
    from passdown.app.citing import Words

    if blocked and complete:
        raise typer.BadParameter("a handoff is blocked or complete, not both", param_hint="--complete")
    if only_words and not (state or blocked or complete or next_):
        raise typer.BadParameter("needs words: --state, --next, --blocked or --complete", param_hint="--only-words")
    words = Words(
        objective=objective,
        state=state or (),
        blocked=blocked or (),
        complete=complete,
        next_action=next_,
        cite=cite or (),
        only_words=only_words,
    )
    return None if words == Words() else words
