"""``python -m demo PATH``: from a real repository to a cited handoff, to Continue, to a verified report."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

from demo.example import KEY, make
from demo.repository import CloneFailed, clone, environment, one_more_commit
from passdown.app.application import Application, open_application
from passdown.app.citing import Words
from passdown.app.handing import ask_from_checkout
from passdown.app.resuming import continue_here
from passdown.cli.continuing import lines_of
from passdown.cli.init import machine_locale, machine_zone, proposed_key
from passdown.cli.previewing import outcome
from passdown.git.locate import Repository, find_repository
from passdown.git.reader import GitReader
from passdown.git.state import WorktreeState, save_state
from passdown.handoff.host import Checkout
from passdown.handoff.operations import HAND_OFF_NOW
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Caller, Principal
from passdown.kernel.wire import build
from passdown.report.models import GetHandoffReportAsk
from passdown.report.operations import (
    CREATE_PROJECT,
    GET_REPORT,
    REGISTER_WORKSTREAM,
    CreateProjectAsk,
    RegisterWorkstreamAsk,
    RenderedReport,
)
from passdown.report.verify import verify

HOME = Path(__file__).resolve().parent.parent
OUTPUT = HOME / ".demo"


def step(text: str) -> None:
    """Name what is done next."""
    sys.stdout.write(f"\n── {text}\n")
    sys.stdout.flush()


def say(*lines: str) -> None:
    """Print lines."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def report(call: Caller, project_id: str, form: str, locale: str) -> RenderedReport:
    """One projection of the project's report."""
    return call(GET_REPORT, build(GetHandoffReportAsk, project_id=project_id, format=form, locale=locale))


def main(target: str) -> int:
    """Run the demonstration over the repository at ``target``; output goes to ``.demo``, made anew."""
    if not Path(target).is_dir():
        sys.exit(f"There is no folder {target}")
    original = find_repository(Path(target))
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    env = environment(OUTPUT)
    locale = machine_locale(os.environ)
    is_own = original.worktree == HOME
    title = "Passdown" if is_own else original.worktree.name
    with GitReader(original) as read, open_application(OUTPUT / "data", create=True) as application:
        step(f"Cloning {original.worktree} (nothing of it is touched)")
        status = read.status()
        copy = clone(original, OUTPUT / "clone", env, status)
        say(*_what_there_is(read, len(status.entries) + status.omitted_paths))
        call = application.caller(Principal("demo", "asserted", "owner", host=socket.gethostname() or "localhost"))
        step("Making a project with one workstream, and a handoff that says only what git shows")
        project_id, scope_id = _project(call, proposed_key(title), title, locale)
        _bind(application, copy, scope_id)
        ask = ask_from_checkout(call, Checkout(read), scope_id, Words(), title=f"Work on {title}", locale=locale)
        say(*outcome(call(HAND_OFF_NOW, ask)))
        make(call, locale)
        step(f"The report ({locale}); the second project beside it is `{KEY}`")
        page = report(call, project_id, "markdown", locale)
        sys.stdout.flush()
        sys.stdout.buffer.write(page.body)
        step("The same report as canonical JSON, and its digests verified from the file alone")
        _write_and_verify(call, project_id)
        step("What a successor sees in the clone now")
        say(*_continue(application, call, copy, scope_id))
        one_more_commit(copy, env)
        step("… and after one more commit there")
        again = _continue(application, call, copy, scope_id)
        say(*again[: again.index("")], "…")
    step("Look further")
    say(
        "cd .demo/clone && ../../.venv/bin/passdown          what needs attention here",
        f"PASSDOWN_DATA=.demo/data .venv/bin/passdown report --project {KEY}",
        "./run serve                                         the same data over HTTP",
    )
    return 0


def _what_there_is(read: GitReader, uncommitted: int) -> list[str]:
    commits = len(read.commits(1_000, paths=False))
    counted = f"{commits}{' or more' if commits == 1_000 else ''} commit{'' if commits == 1 else 's'}"
    lines = [f"{counted}, {uncommitted} uncommitted path{'' if uncommitted == 1 else 's'}"]
    if commits == 0:
        lines.append("There is no commit yet: the handoff can only say what lies in the worktree.")
    elif read.is_shallow:
        lines.append("The clone at hand is shallow: older history is not available, and the handoff says so.")
    elif commits == 1:
        lines.append("There is a single commit: no history to speak of.")
    return lines


def _project(call: Caller, key: str, title: str, locale: str) -> tuple[str, str]:
    ask = build(CreateProjectAsk, key=key, title=title, default_locale=locale, timezone=machine_zone(os.environ))
    project_id = call(CREATE_PROJECT, ask).project.project_id
    register = build(RegisterWorkstreamAsk, project_id=project_id, key="main", title="Main line")
    return project_id, call(REGISTER_WORKSTREAM, register).workstream.scope_id


def _bind(application: Application, copy: Repository, scope_id: str) -> None:
    save_state(
        copy,
        WorktreeState(workspace_instance_id=application.ids.new("ws_"), scope_id=scope_id, store=str(OUTPUT / "data")),
    )


def _write_and_verify(call: Caller, project_id: str) -> None:
    for form, locale, name in (
        ("json", "en", "report.json"),
        ("markdown", "en", "report.en.md"),
        ("markdown", "zh-CN", "report.zh-CN.md"),
    ):
        answer = report(call, project_id, form, locale)
        (OUTPUT / name).write_bytes(answer.body)
        verdict = verify((OUTPUT / name).read_bytes())
        whole = "report_digest" in verdict.verified
        said = " and ".join(verdict.verified) + (" fit" if whole else " fits, the text is not checked")
        say(f"{'✔' if whole else '~'} .demo/{name}  {len(answer.body)} bytes  {said}")
        if form == "json":
            say(f"    selection {verdict.selection_digest}", f"    report    {verdict.report_digest}")


def _continue(application: Application, call: Caller, copy: Repository, scope_id: str) -> list[str]:
    with GitReader(copy) as git:
        answer = continue_here(call, Checkout(git), scope_id)
    return lines_of(answer, application.clock.now_us())


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else str(HOME)))
    except PassdownError as error:
        sys.exit(f"{error.code}: {error.spec.sentence}\nnext: {error.spec.next_step}")
    except CloneFailed as error:
        sys.exit(f"git could not clone that repository: {error}")
