"""``source``: the evidence of the current workstream: list it, look at a piece, add one.

A source is named as ``TYPE:ID``, as ``source list --json`` has both.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, Listed, Onward, now_us, place

if TYPE_CHECKING:
    from passdown.handoff.source_operations import CaptureSourceAnswer, ListSourcesAnswer, Source
    from passdown.kernel.operations import Caller

source_app = typer.Typer(help="The evidence of the current workstream.", rich_markup_mode=None, no_args_is_help=True)
_READ_LIMIT = 256 * 1024


@source_app.command("list")
def list_(
    limit: Listed = 50,
    cursor: Onward = None,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """List the sources, those of earlier revisions first."""
    from passdown.handoff.source_operations import LIST_SOURCES, ListSourcesAsk
    from passdown.kernel.wire import build, dump

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call:
        page = call(LIST_SOURCES, build(ListSourcesAsk, scope_id=scope_id, cursor=cursor, limit=limit))
    if json:
        screen.show_json(dump(page))
        return
    screen.show(_listed(page))
    if page.next_cursor:
        screen.say(f"More: passdown source list --cursor {page.next_cursor}")
    elif not page.sources:
        screen.say("No source yet. `passdown handoff` captures what it cites; or add one: passdown source add")


def _listed(page: ListSourcesAnswer) -> list[str]:
    from passdown.kernel.timestamps import ago, parse_timestamp

    now = now_us()
    rows = [
        (
            item.source_ref.source_type,
            _ASSURANCE[item.assurance],
            ago(parse_timestamp(item.recorded_at), now),
            screen.plain(item.label),
        )
        for item in page.sources
    ]
    return screen.table(rows, indent=0)


_ASSURANCE = {"host_read": "read by a host", "caller_supplied": "said, not read", "referenced": "reference only"}


@source_app.command()
def show(
    named: Annotated[str, typer.Argument(metavar="SOURCE", help="TYPE:ID, as `source list --json` has them.")],
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Show one source with its body."""
    from passdown.handoff.models import SourceRef
    from passdown.handoff.source_operations import GET_SOURCE, GetSourceAsk
    from passdown.kernel.wire import build, dump

    kind, colon, source_id = named.partition(":")
    if not colon:
        raise typer.BadParameter("is not TYPE:ID, such as content:NAME", param_hint="SOURCE")
    here = place(data, as_)
    scope_id = here.require_scope()
    ref = build(SourceRef, source_type=kind, source_id=source_id)
    with here.calling() as call:
        found = call(GET_SOURCE, GetSourceAsk(scope_id=scope_id, source_ref=ref)).source
    if json:
        screen.show_json(dump(found))
        return
    screen.show(_shown(found))


def _shown(source: Source) -> list[str]:
    from passdown.kernel.escape import terminal

    read = f"read by {source.read_by}" if source.read_by else _ASSURANCE[source.assurance]
    pairs = [
        ("Source", f"{source.source_ref.source_type}:{source.source_ref.source_id}"),
        ("Label", source.label),
        ("Assurance", read),
        ("Stored", f"{source.recorded_at} by {source.recorded_by.principal_id} ({source.recorded_by.identity})"),
        ("Digest", f"sha256:{source.sha256}, {source.size} bytes"),
    ]
    if source.description:
        pairs.insert(2, ("Description", source.description))
    lines = screen.fields(pairs, indent=0)
    if isinstance(source.content, str):
        return [*lines, "", *terminal(source.content, keep_newlines=True).split("\n")]
    return [*lines, "", *_json_lines(source.descriptor if source.descriptor is not None else source.content)]


def _json_lines(value: Any) -> list[str]:
    import orjson

    from passdown.kernel.escape import terminal

    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return terminal(text, keep_newlines=True).split("\n")


@source_app.command()
def add(
    text: Annotated[str | None, typer.Option(help="A note in words.")] = None,
    note: Annotated[Path | None, typer.Option(help="A note from a file; `-` reads stdin.")] = None,
    file: Annotated[str | None, typer.Option(help="A file of this worktree: its path and digest.")] = None,
    commit: Annotated[str | None, typer.Option(help="A commit of this repository: its header.")] = None,
    tests: Annotated[Path | None, typer.Option(help="A test report in JUnit's XML: its counts.")] = None,
    tests_commit: Annotated[str | None, typer.Option(help="The commit that those tests ran on.")] = None,
    url: Annotated[str | None, typer.Option(help="An address; it is never fetched.")] = None,
    document: Annotated[str | None, typer.Option(help="An adopted document of this worktree; needs --role.")] = None,
    role: Annotated[str | None, typer.Option(help="The role of that document, such as PRD.")] = None,
    name: Annotated[str | None, typer.Option(help="What to call it.")] = None,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Store one piece of evidence to cite."""
    from passdown.kernel.wire import dump

    given = [option for option in (text, note, file, commit, tests, url, document) if option is not None]
    if len(given) != 1:
        raise typer.BadParameter("name exactly one thing to add", param_hint="--text")
    if (document is None) != (role is None):
        raise typer.BadParameter("goes with --document", param_hint="--role")
    if tests_commit is not None and tests is None:
        raise typer.BadParameter("goes with --tests", param_hint="--tests-commit")
    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call, here.git() as git:
        from passdown.handoff.host import Checkout

        checkout = Checkout(git)
        if text is not None or note is not None:
            item: dict[str, Any] = {"source_type": "content", "content": text if note is None else _note(note)}
        elif url is not None:
            item = {"source_type": "url", "descriptor": {"url": url}}
        elif commit is not None:
            item = {"source_type": "git_commit", "descriptor": checkout.commit(commit)}
        elif tests is not None:
            from passdown.app.test_reports import report_evidence

            found = report_evidence(checkout, tests, tests_commit)
            item = {"source_type": "test_report", "descriptor": found["descriptor"]}
        elif document is not None:
            facts = checkout.file(document)
            item = {
                "source_type": "document",
                "descriptor": {"role": role, "path": facts["path"], "sha256": facts["sha256"], "size": facts["size"]},
            }
        else:
            item = {"source_type": "file", "descriptor": checkout.file(file or "")}
        answer = _capture(call, {"scope_id": scope_id, "name": name, **item})
    if json:
        screen.show_json(dump(answer))
        return
    ref = answer.source.source_ref
    word = "There already" if answer.replayed else "Stored"
    screen.show([f"{word}: {screen.plain(f'{ref.source_type}:{ref.source_id}')}"])


def _note(path: Path) -> str:
    from passdown.cli.files import read_input
    from passdown.kernel.errors import PassdownError

    data = read_input(path, _READ_LIMIT, field="note")
    if len(data) > _READ_LIMIT:
        raise PassdownError("source_too_large", limit=_READ_LIMIT, actual=len(data))
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise PassdownError("invalid_request", field="note", rule="utf8") from None


def _capture(call: Caller, members: dict[str, Any]) -> CaptureSourceAnswer:
    from passdown.handoff.source_operations import CAPTURE_SOURCE, CaptureSourceAsk
    from passdown.kernel.wire import validate

    return call(CAPTURE_SOURCE, validate(CaptureSourceAsk, members))
