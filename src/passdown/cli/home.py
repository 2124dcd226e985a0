"""Bare ``passdown``: what is bound here, what needs attention, and the one next command."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from passdown.cli import screen
from passdown.cli.context import Place, now_us, place, siblings
from passdown.kernel.errors import PassdownError
from passdown.overview.home import Row, next_command, rows

if TYPE_CHECKING:
    from passdown.kernel.operations import Caller

_WORDS = {
    "no_handoff": "○ no handoff",
    "unproved": "✓ complete, unproved",
    "evidence_unavailable": "! evidence gone",
}
_MAX_ROWS = 20
_CHOOSE = "passdown init --project KEY, or passdown switch PROJECT/KEY"


def home(data: str | None = None, name: str | None = None, *, json: bool = False) -> None:
    """Print the home screen. Reading only: without a store it says so and makes none."""
    here = place(data, name)
    if here.scope_id is None or here.repository is None:
        _unbound(here, json=json)
        return
    from passdown.app import catalog

    with here.calling() as call:
        try:
            item = catalog.workstream_of(call, here.scope_id)
        except PassdownError as error:
            if error.code != "feature_off":
                raise
            _alone(call, here.scope_id, json=json)
            return
        project_id = item.project_id if item else "prj_ungrouped"
        owner = catalog.project(call, project_id) if item else None
        found, total = _workstreams(call, project_id)
    listed = rows(found)
    has_handoff = any(row.scope_id == here.scope_id and row.need != "no_handoff" for row in listed)
    command = next_command(in_repository=True, bound=True, has_handoff=has_handoff)
    if json:
        screen.show_json(
            {
                "project_id": project_id,
                "scope_id": here.scope_id,
                "workstreams": [_value(row) for row in listed],
                "total_workstreams": total,
                "next_command": command,
            }
        )
        return
    title = f"{owner.project_key}  “{screen.plain(owner.title)}”" if owner else "no project"
    screen.show(
        screen.fields(
            [
                ("Project", title),
                ("Here", f"{item.key or here.scope_id}  “{screen.plain(item.title)}”" if item else here.scope_id),
            ],
            indent=0,
        )
    )
    screen.show([""])
    if total > len(listed):
        screen.show(
            [f"{total} workstreams; too many for one screen. Blocked ones: passdown report --disposition blocked"]
        )
    screen.show(_table(listed[:_MAX_ROWS], here.scope_id, now_us()))
    if len(listed) > _MAX_ROWS:
        screen.show([f"  … {len(listed) - _MAX_ROWS} more: passdown report"])
    sys.stdout.flush()
    screen.say("", f"Next: {command}")


def _alone(call: Caller, scope_id: str, *, json: bool) -> None:
    """Where the report is switched off there are no projects to look at: this workstream and nothing else."""
    from passdown.app.resuming import previous

    last = previous(call, scope_id)
    command = next_command(in_repository=True, bound=True, has_handoff=last is not None)
    if json:
        screen.show_json(
            {
                "project_id": None,
                "scope_id": scope_id,
                "workstreams": [],
                "total_workstreams": 0,
                "next_command": command,
            }
        )
        return
    state = screen.status(last.content.disposition) if last else screen.status("no_handoff")
    pairs = [("Here", scope_id), ("Status", state)]
    if last is not None:
        pairs.append(("Objective", last.content.objective))
    screen.show(screen.fields(pairs, indent=0))
    sys.stdout.flush()
    screen.say("", "The report is switched off here, so other workstreams are not listed.", f"Next: {command}")


def _workstreams(call: Caller, project_id: str) -> tuple[list[dict[str, Any]], int]:
    """The report's workstreams without evidence checks, and how many there are; none when over the report's limit."""
    import orjson

    from passdown.report.models import GetHandoffReportAsk
    from passdown.report.operations import GET_REPORT

    ask = GetHandoffReportAsk(project_id=project_id, format="json", include_evidence_checks=False)
    try:
        report = orjson.loads(call(GET_REPORT, ask).body)
    except PassdownError as error:
        if error.code == "project_not_found":
            return [], 0
        if error.code != "too_many_workstreams":
            raise
        return [], int(error.members["actual"])
    return report["workstreams"], len(report["workstreams"])


def _value(row: Row) -> dict[str, object]:
    return {
        "scope_id": row.scope_id,
        "key": row.key,
        "title": row.title,
        "need": row.need,
        "says": row.says,
        "recorded_at": row.recorded_at,
    }


def _table(listed: list[Row], scope_id: str, now: int) -> list[str]:
    from passdown.kernel.timestamps import ago, parse_timestamp

    lines = [
        (
            "→" if row.scope_id == scope_id else " ",
            screen.short(row.key or row.scope_id, 24),
            _WORDS.get(row.need) or screen.status(row.need),
            ago(parse_timestamp(row.recorded_at), now) if row.recorded_at else "",
            screen.plain(row.says or row.title),
        )
        for row in listed
    ]
    return [screen.coloured(line, row.need) for line, row in zip(screen.table(lines, indent=0), listed, strict=True)]


def _beside(here: Place) -> str | None:
    """The workstream of another worktree of this repository as PROJECT/KEY, if one can be named."""
    if here.repository is None or here.reason != "absent":
        return None
    from passdown.app import catalog

    for state in siblings(here.repository):
        if state.scope_id is None or state.store != here.target.recorded:
            continue
        with suppress(PassdownError), here.calling() as call:
            item = catalog.workstream_of(call, state.scope_id)
            if item is not None and item.key is not None:
                return f"{catalog.project(call, item.project_id).project_key}/{item.key}"
    return None


def _unbound(here: Place, *, json: bool) -> None:
    command = next_command(in_repository=here.repository is not None, bound=False, has_handoff=False)
    other = _beside(here)
    if other is not None:
        command = f"passdown switch {other}"
    if json:
        screen.show_json({"project_id": None, "scope_id": None, "reason": here.reason, "next_command": command})
        return
    if here.repository is None:
        screen.show(["Passdown hands work from one session to the next. This folder is not in a git worktree."])
    elif here.reason == "copied":
        screen.show(["This checkout is a copy of a bound one; it is not bound itself. Choose again."])
        command = _CHOOSE
    elif here.reason == "unreadable":
        screen.show(["What was recorded for this checkout cannot be read, so nothing is assumed. Choose again."])
        command = _CHOOSE
    elif other is not None:
        screen.show([f"This worktree is not bound to a workstream. Another one of this repository is on {other}."])
    else:
        screen.show(["This checkout is not bound to a workstream."])
    sys.stdout.flush()
    screen.say(f"Next: {command}")
