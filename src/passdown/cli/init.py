"""``init``, ``start``, ``switch``: the three commands that choose the current workstream of a worktree.

Every write is named before it is made. An existing project is attached only when its key is given: a folder or remote
of the same name proves nothing.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, Place, Yes, new_instance_id, place
from passdown.kernel.errors import PassdownError

if TYPE_CHECKING:
    from passdown.kernel.operations import Caller
    from passdown.report.models import ProjectDescriptor, WorkstreamDescriptor
    from passdown.report.operations import CreateProjectAsk, RegisterWorkstreamAsk

_FIRST = {"en": "Main line", "zh-CN": "主线"}


def machine_locale(environment: Mapping[str, str]) -> str:
    """``zh-CN`` where this machine speaks Chinese, else ``en``."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environment.get(name):
            return "zh-CN" if environment[name].lower().startswith("zh") else "en"
    return "en"


def machine_zone(environment: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str:
    """The IANA zone of this machine, ``UTC`` where it does not say one."""
    from passdown.kernel.timestamps import is_zone

    name = environment.get("TZ", "").removeprefix(":")
    if not name and localtime.is_symlink():
        _, found, rest = str(localtime.readlink()).partition("zoneinfo/")
        name = rest if found else ""
    # Machines without a place of their own say "Etc/UTC"; one name for one zone reads better on a page.
    return name if name and name != "Etc/UTC" and is_zone(name) else "UTC"


def proposed_key(name: str) -> str:
    """A key made of what a folder name allows; ``project`` when nothing is left."""
    text = unicodedata.normalize("NFC", name).strip().lower()
    kept = "".join(
        char if unicodedata.category(char)[0] in "LN" and unicodedata.category(char) in _KEY_CATEGORIES else "-"
        for char in text
    )
    return re.sub(r"-{2,}", "-", kept).strip("-")[:64] or "project"


_KEY_CATEGORIES = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What ``init`` will do: every request is checked before anything is announced, and made only after consent."""

    project: ProjectDescriptor | None
    new_project: CreateProjectAsk | None
    workstream: WorkstreamDescriptor | None
    new_workstream: dict[str, Any] | None


def init(
    project: Annotated[str | None, typer.Option(help="Attach to the project with this key or id.")] = None,
    key: Annotated[str | None, typer.Option(help="Key of the new project (else from the folder name).")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the new project.")] = None,
    workstream: Annotated[
        str | None, typer.Option(help="Key of an existing workstream, or title of the first new one.")
    ] = None,
    locale: Annotated[str | None, typer.Option(help="Language of reports: zh-CN or en.")] = None,
    timezone: Annotated[str | None, typer.Option(help="IANA time zone of reports.")] = None,
    data: Data = None,
    as_: As = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Bind this checkout to a project and a first workstream.

    Without `--project` a project is made. Every write is named before it is made.
    """
    from passdown.app import catalog
    from passdown.kernel.wire import build
    from passdown.report.operations import CreateProjectAsk

    here = place(data, as_)
    repository = here.require_repository()
    with here.calling(create=True) as call:
        if here.scope_id is not None and project is None and key is None:
            bound = catalog.workstream_of(call, here.scope_id)
            _tell(here, here.scope_id, bound, json=json, written=False)
            return
        language = locale or machine_locale(os.environ)
        folder = repository.worktree.name
        if project is not None:
            found = catalog.project(call, project)
            plan = _attach(call, found, workstream, language)
        else:
            new_key = key or proposed_key(folder)
            asked = build(
                CreateProjectAsk,
                key=new_key,
                title=title or folder.strip() or new_key,
                default_locale=language,
                timezone=timezone or machine_zone(os.environ),
            )
            _refuse_taken_key(call, asked.key)
            plan = _Plan(None, asked, None, {"title": workstream or _FIRST[language], "key": "main"})
        if plan.new_workstream is not None:
            _register(plan, "prj_")
        require_writable(here)
        screen.say(*_announce(here, plan))
        if not screen.confirm("Write this?", assume_yes=yes):
            screen.say("Nothing was written.")
            raise typer.Exit(screen.CANCELLED)
        chosen = _carry_out(call, plan)
        bind(here, chosen.scope_id)
        _tell(here, chosen.scope_id, chosen, json=json, written=True)


def _refuse_taken_key(call: Caller, key: str) -> None:
    """A project of that key may be another one: attaching needs the user's word, so its key is asked for."""
    from passdown.app import catalog

    try:
        catalog.project(call, key)
    except PassdownError as error:
        if error.code != "project_not_found":
            raise
        return
    raise PassdownError(
        "project_conflict",
        field="key",
        rule="taken",
        guidance="To attach this checkout to it: `passdown init --project KEY`; for a new project: `--key OTHER`.",
    )


def _attach(call: Caller, found: ProjectDescriptor, wanted: str | None, language: str) -> _Plan:
    from passdown.app import catalog

    present = list(catalog.workstreams(call, found.project_id))
    for item in present:
        if wanted is not None and wanted in (item.key, item.scope_id):
            return _Plan(found, None, item, None)
    if wanted is None and present:
        raise PassdownError(
            "no_current_workstream",
            rule="choose_one",
            choices=[catalog.name_of(item) for item in present[:20]],
            guidance="Add `--workstream KEY` to go on with one of these, or `--workstream TITLE` to begin another.",
        )
    first = wanted or _FIRST.get(language, _FIRST["en"])
    return _Plan(found, None, None, {"title": first, "key": None if present else "main"})


def _announce(here: Place, plan: _Plan) -> list[str]:
    repository = here.require_repository()
    if plan.new_project is not None:
        new = plan.new_project
        about = f"{new.key}  “{screen.plain(new.title)}”, {new.default_locale}, {new.timezone}  (new)"
    else:
        known = plan.project
        about = "" if known is None else f"{known.project_key}  “{screen.plain(known.title)}”"
    if plan.workstream is not None:
        stream = f"{plan.workstream.key or plan.workstream.scope_id}  “{screen.plain(plan.workstream.title)}”"
    else:
        stream = f"“{screen.plain((plan.new_workstream or {})['title'])}”  (new)"
    return [
        "This will be written:",
        *screen.fields(
            [
                ("project", about),
                ("workstream", stream),
                ("checkout", str(repository.git_dir / "passdown" / "worktree.json")),
                ("store", here.target.recorded),
            ]
        ),
    ]


def _carry_out(call: Caller, plan: _Plan) -> WorkstreamDescriptor:
    from passdown.report.operations import CREATE_PROJECT, REGISTER_WORKSTREAM

    if plan.workstream is not None:
        return plan.workstream
    if plan.new_project is not None:
        owner = call(CREATE_PROJECT, plan.new_project).project
    elif plan.project is not None:
        owner = plan.project
    else:
        raise ValueError("a plan names a project")
    return call(REGISTER_WORKSTREAM, _register(plan, owner.project_id)).workstream


def _register(plan: _Plan, project_id: str) -> RegisterWorkstreamAsk:
    from passdown.kernel.wire import build
    from passdown.report.operations import RegisterWorkstreamAsk

    return build(RegisterWorkstreamAsk, project_id=project_id, **(plan.new_workstream or {}))


def require_writable(here: Place) -> None:
    """``file_not_writable`` where the choice could not be recorded, before anything that it belongs to is made."""
    git_dir = here.require_repository().git_dir
    folder = git_dir / "passdown"
    in_the_way = folder.is_symlink() or (folder.exists() and not folder.is_dir())
    if in_the_way or not os.access(folder if folder.exists() else git_dir, os.W_OK | os.X_OK):
        raise PassdownError("file_not_writable", rule="worktree_state")


def bind(here: Place, scope_id: str) -> None:
    """Record the chosen workstream in this worktree's own git directory; its instance id stays."""
    from passdown.git.state import WorktreeState, save_state

    state = here.state
    save_state(
        here.require_repository(),
        WorktreeState(
            workspace_instance_id=state.workspace_instance_id if state else new_instance_id(),
            scope_id=scope_id,
            store=here.target.recorded,
        ),
    )


def _tell(
    here: Place,
    scope_id: str,
    item: WorkstreamDescriptor | None,
    *,
    json: bool,
    written: bool,
    following: str = "handoff",
) -> None:
    if json:
        from passdown.kernel.wire import dump

        screen.show_json({"scope_id": scope_id, "workstream": dump(item) if item else None, "changed": written})
        return
    name = f"{item.key or scope_id}  “{screen.plain(item.title)}”" if item else f"{scope_id}  (in no project)"
    screen.show([f"{'Bound to' if written else 'Already bound to'} {name}"])
    screen.say(f"Next: passdown {following}")


def start(
    title: Annotated[str, typer.Argument(help="Title of the new workstream.")],
    key: Annotated[str | None, typer.Option(help="Short key to switch by (else made from the title).")] = None,
    kind: Annotated[str, typer.Option(help="feature, bug, refactor, operations, research or other.")] = "other",
    project: Annotated[str | None, typer.Option(help="Key or id of the project (else the current one).")] = None,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Begin a new workstream and work on it from here."""
    from passdown.app import catalog
    from passdown.kernel.wire import build
    from passdown.report.operations import REGISTER_WORKSTREAM, RegisterWorkstreamAsk

    here = place(data, as_)
    here.require_repository()
    with here.calling() as call:
        owner = catalog.project(call, project).project_id if project else _current_project(call, here)
        ask = build(
            RegisterWorkstreamAsk,
            project_id=owner,
            title=title,
            key=key or _free_key(call, owner, proposed_key(title)),
            kind=kind,
        )
        require_writable(here)
        item = call(REGISTER_WORKSTREAM, ask).workstream
        bind(here, item.scope_id)
        _tell(here, item.scope_id, item, json=json, written=True)


def _free_key(call: Caller, project_id: str, wanted: str) -> str:
    from passdown.app import catalog

    taken = {item.key for item in catalog.workstreams(call, project_id)}
    key, number = wanted, 2
    while key in taken:
        suffix = f"-{number}"
        key, number = wanted[: 64 - len(suffix)] + suffix, number + 1
    return key


def _current_project(call: Caller, here: Place) -> str:
    from passdown.app import catalog

    item = catalog.workstream_of(call, here.require_scope())
    if item is None:
        raise PassdownError("project_not_found", rule="current_workstream_is_in_no_project")
    return item.project_id


def switch(
    name: Annotated[str | None, typer.Argument(help="Key, PROJECT/KEY or scope id; without it the choices.")] = None,
    data: Data = None,
    as_: As = None,
    json: Json = False,
) -> None:
    """Choose the workstream of this checkout, or list them."""
    from passdown.app import catalog

    here = place(data, as_)
    here.require_repository()
    with here.calling() as call:
        current = catalog.workstream_of(call, here.scope_id) if here.scope_id else None
        if name is not None:
            item = catalog.workstream(call, name, current.project_id if current else None)
            bind(here, item.scope_id)
            _tell(here, item.scope_id, item, json=json, written=True, following="continue")
            return
        owners = [catalog.project(call, current.project_id)] if current else list(catalog.projects(call))
        choices = [(owner, item) for owner in owners for item in catalog.workstreams(call, owner.project_id)]
    if json:
        from passdown.kernel.wire import dump

        screen.show_json({"current_scope_id": here.scope_id, "workstreams": [dump(item) for _, item in choices]})
        return
    screen.show(
        screen.table(
            [
                (
                    "→" if item.scope_id == here.scope_id else " ",
                    f"{owner.project_key}/{item.key}" if item.key else item.scope_id,
                    screen.plain(item.title),
                )
                for owner, item in choices
            ]
        )
    )
    screen.say("Choose with: passdown switch KEY" if choices else "No workstream yet. Begin with: passdown init")
