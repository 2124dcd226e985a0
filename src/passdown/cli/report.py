"""``report``: the project's page for a person or its canonical JSON for an agent, and checks of exported files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, Place, place
from passdown.cli.files import read_input, write_whole
from passdown.kernel.errors import PassdownError

if TYPE_CHECKING:
    from passdown.kernel.operations import Caller

report_app = typer.Typer(
    help="Print the report of a project, or check an exported one.",
    rich_markup_mode=None,
    invoke_without_command=True,
    no_args_is_help=False,
)
_UNGROUPED = "prj_ungrouped"


@report_app.callback()
def report(
    context: typer.Context,
    project: Annotated[str | None, typer.Option(help="Key or id (else the project of this checkout).")] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="markdown or json (else by the name of --output).")
    ] = None,
    locale: Annotated[str | None, typer.Option(help="zh-CN or en (else the project's).")] = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
    disposition: Annotated[
        list[str] | None, typer.Option(help="Only continuable, blocked, complete or no_handoff; repeatable.")
    ] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind of workstream; repeatable.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only workstreams with this label; repeatable.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Include archived workstreams.")] = False,
    no_checks: Annotated[bool, typer.Option("--no-checks", help="Do not check the evidence.")] = False,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Print the report of a project, or check an exported one."""
    if context.invoked_subcommand is not None:
        return
    from passdown.kernel.wire import validate
    from passdown.report.models import GetHandoffReportAsk
    from passdown.report.operations import GET_REPORT

    here = place(data, as_)
    with here.calling() as call:
        project_id, spoken = _project(call, here, project)
        ask = validate(
            GetHandoffReportAsk,
            {
                "project_id": project_id,
                "format": _format(format_, output, json=json),
                "locale": locale or spoken,
                "include_evidence_checks": not no_checks,
                "filters": {
                    "dispositions": disposition or [],
                    "kinds": kind or [],
                    "labels": label or [],
                    "include_archived": archived,
                },
            },
        )
        answer = call(GET_REPORT, ask)
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(answer.body)
        sys.stdout.buffer.flush()
    else:
        write_whole(output, answer.body)
        screen.say(
            f"Wrote {screen.plain(str(output))}",
            f"  selection {answer.selection_digest}",
            f"  report    {answer.report_digest}",
        )


def _format(given: str | None, output: Path | None, *, json: bool) -> str:
    """The format that was asked for, by option or by the name of the file; Markdown where nothing says."""
    if given is not None and not json:
        return given
    return "json" if json or (output is not None and output.suffix == ".json") else "markdown"


def _project(call: Caller, here: Place, named: str | None) -> tuple[str, str | None]:
    """The project to report and the language to ask for. An unbound checkout sees the ungrouped scopes."""
    from passdown.app import catalog
    from passdown.cli.init import machine_locale

    if named is not None:
        found = catalog.project(call, named)
        return found.project_id, machine_locale(os.environ) if found.project_id == _UNGROUPED else None
    item = catalog.workstream_of(call, here.scope_id) if here.scope_id else None
    if item is not None:
        return item.project_id, None
    if here.repository is not None and here.scope_id is None:
        screen.say("This checkout is not bound: these are the scopes in no project. To bind it: passdown init")
    return _UNGROUPED, machine_locale(os.environ)


@report_app.command()
def verify(
    files: Annotated[list[Path], typer.Argument(help="Exported reports; `-` reads stdin.")], json: Json = False
) -> None:
    """Check the digests of exported reports, from the files alone."""
    from passdown.report.verify import FILE_BYTES
    from passdown.report.verify import verify as check

    worst: PassdownError | None = None
    verdicts = []
    for path in files:
        try:
            verdict = check(read_input(path, FILE_BYTES))
        except PassdownError as error:
            worst = worst or error
            verdicts.append({"file": str(path), "ok": False, **error.problem()})
            if not json:
                detail = error.members.get("digest") or error.members.get("rule") or ""
                screen.show([f"✘ {screen.plain(str(path))}  {error.code} {detail}".rstrip()])
                screen.say(f"  {error.spec.sentence}", f"  next: {error.spec.next_step}")
            continue
        verdicts.append(
            {
                "file": str(path),
                "ok": True,
                "format": verdict.format,
                "project_id": verdict.project_id,
                "verified": list(verdict.verified),
                "selection_digest": verdict.selection_digest,
                "report_digest": verdict.report_digest,
                "note": verdict.note,
            }
        )
        if not json:
            whole = "report_digest" in verdict.verified
            said = " and ".join(verdict.verified) + (" fit" if whole else " fits; the TEXT IS NOT CHECKED")
            screen.show([f"{'✔' if whole else '~'} {screen.plain(str(path))}  {said}"])
            screen.say(f"  {verdict.note}")
    if json:
        screen.show_json(verdicts)
    if worst is not None:
        raise typer.Exit(worst.spec.exit_code)


@report_app.command()
def selection(
    file: Annotated[Path, typer.Argument(help="Exported report; `-` reads stdin.")],
    json: Annotated[
        bool, typer.Option("--json", help="As it always is: one JSON document.", show_default=False)
    ] = True,
) -> None:
    """Print the exact selection of an exported report.

    It is canonical JSON; its digest is the report's selection digest.
    """
    from passdown.report.verify import FILE_BYTES, selection_of

    screen.show_json(selection_of(read_input(file, FILE_BYTES)))


@report_app.command()
def projects(data: Data = None, as_: As = None, json: Json = False) -> None:
    """List the projects."""
    from passdown.app import catalog

    here = place(data, as_)
    with here.calling() as call:
        found = list(catalog.projects(call))
    if json:
        from passdown.kernel.wire import dump

        screen.show_json([dump(item) for item in found])
        return
    screen.show(screen.table([(item.project_key, item.project_id, screen.plain(item.title)) for item in found]))
    if not found:
        screen.say("No project yet. Begin with: passdown init")
