"""Help, usage errors, JSON everywhere, and the parity of operations and commands."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from cli_support import World

from passdown.app.application import Local
from passdown.app.operations import OPERATIONS
from passdown.cli.main import app, run
from passdown.kernel.operations import Op

LEFT_TO_HTTP = {
    "prepare_handoff": "the command line has the checkout and hands off in one step",
    "list_handoff_report_revisions": "the command line shows the current revision; history is read over HTTP",
    "list_handoff_report_known_scopes": "`report --project ungrouped` shows the scopes in no project",
    "update_handoff_report_project": "changes of the catalog name a version that a program has read",
    "update_handoff_report_workstream": "changes of the catalog name a version that a program has read",
}
"""Operations without a command in this version, each with the reason."""


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every command with its path, groups included."""
    group = group or typer.main.get_command(app)
    found = [(path, group)]
    for name, command in getattr(group, "commands", {}).items():
        found += commands(command, (*path, name))
    return found


COMMANDS = commands()


@pytest.mark.parametrize(
    ("path", "command"), COMMANDS, ids=lambda value: " ".join(value) if type(value) is tuple else ""
)
def test_every_command_and_every_option_says_what_it_is(path: tuple[str, ...], command: Any) -> None:
    assert command.help
    for parameter in command.params:
        assert parameter.help, (path, parameter.name)
        assert len(parameter.help) > 4


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_help_fits_80_columns_and_cuts_no_sentence(bare_world: World, path: tuple[str, ...]) -> None:
    for option in ("--help", "-h"):
        answer = bare_world.ok(bare_world.root, *path, option, COLUMNS="80")
        assert answer.out.startswith(f"Usage: passdown {' '.join(path)}".rstrip())
        assert [line for line in answer.out.splitlines() if len(line) > 80] == []
        # The usage line says with dots what may be repeated; a sentence that ends so was cut.
        assert [line for line in answer.out.splitlines()[1:] if line.endswith("...")] == []
        assert answer.err == ""
    assert not bare_world.data.exists()


def test_help_lists_the_commands_in_the_order_of_a_day(bare_world: World) -> None:
    out = bare_world.ok(bare_world.root, "--help").out
    listed = re.findall(r"^  ([a-z]+) {2,}\S", out.split("Commands:")[1], re.MULTILINE)
    assert listed[:7] == ["init", "start", "switch", "handoff", "continue", "report", "serve"]
    assert sorted(listed) == sorted(path[0] for path, _ in COMMANDS if len(path) == 1)


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["--nonsense"], ["start"], ["report", "verify"], ["token", "create"], ["handoff", "--next"]],
    ids=" ".join,
)
def test_a_usage_error_is_exit_code_2_with_words_on_stderr(bare_world: World, arguments: list[str]) -> None:
    answer = bare_world.run(bare_world.root, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(("Usage: passdown", "Error: "))
    assert not bare_world.data.exists()


@pytest.mark.parametrize("argument", ["\x1b[31m", "--\x1b]0;x\x07", "\u202etxt"], ids=["command", "option", "bidi"])
def test_a_usage_error_sends_no_control_character_to_the_terminal(bare_world: World, argument: str) -> None:
    answer = bare_world.run(bare_world.root, argument)
    assert answer.code == 2
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", answer.err)


def test_the_version_is_that_of_the_package(bare_world: World) -> None:
    from passdown import __version__

    assert bare_world.ok(bare_world.root, "--version").out == f"passdown {__version__}\n"


def test_json_is_the_only_thing_on_stdout_of_every_command(world: World) -> None:
    repo = world.repo()
    steps: list[tuple[str, ...]] = [
        ("init", "--json"),
        ("--json",),
        ("start", "Two", "--json"),
        ("switch", "--json"),
        ("switch", "main", "--json"),
        ("handoff", "--json"),
        ("continue", "--json"),
        ("report", "--json"),
        ("report", "projects", "--json"),
        ("token", "create", "t", "--principal", "p", "--json"),
        ("token", "list", "--json"),
        ("handoff", "show", "--json"),
        ("handoff", "history", "--json"),
        ("handoff", "diff", "--json"),
        ("handoff", "ack", "--accept", "--json"),
        ("handoff", "send", "--json"),
        ("handoff", "recover", "--json"),
        ("handoff", "export", "--json"),
        ("source", "add", "--text", "Seen by eye", "--json"),
        ("source", "show", "url:https://example.com", "--json"),
        ("source", "list", "--json"),
    ]
    world.ok(repo.path, "init", "--yes")
    world.ok(repo.path, "source", "add", "--url", "https://example.com")
    answers = [world.ok(repo.path, *step) for step in steps]
    for step, answer in zip(steps, answers, strict=True):
        assert answer.json is not None, step
        assert answer.out.rstrip("\n").count("\n") == 0, step
    page = world.root / "report.json"
    page.write_text(answers[7].out)
    tokens = answers[10].json
    prepared, exported = world.root / "prepared.json", world.root / "exported.json"
    prepared.write_text(answers[15].out)
    exported.write_text(answers[17].out)
    last: list[tuple[str, ...]] = [
        ("handoff", "receive", str(prepared), "--json"),
        ("handoff", "verify", str(exported), "--json"),
        ("report", "verify", str(page), "--json"),
        ("report", "selection", str(page), "--json"),
        ("token", "revoke", tokens[0]["token_id"], "--json"),
        ("db", "check", "--json"),
        ("db", "upgrade", "--json"),
        ("db", "backup", str(world.root / "backup.db"), "--json"),
        ("db", "restore", str(world.root / "backup.db"), "--data", str(world.root / "restored"), "--json"),
    ]
    for step in last:
        assert world.ok(repo.path, *step).json is not None
    leaves = [path for path, command in COMMANDS if path and not getattr(command, "commands", None)]
    untried = [path for path in leaves if not any(step[: len(path)] == path for step in [*steps, *last])]
    assert untried == [("serve",)], "serve prints its one line when it is ready"


@pytest.mark.parametrize("arguments", [["continue"], ["report"], ["report", "projects"], ["switch"], ["token", "list"]])
def test_json_before_the_command_is_json_of_the_command(world: World, arguments: list[str]) -> None:
    repo = world.bound()
    before, after = (world.ok(repo.path, *form) for form in (["--json", *arguments], [*arguments, "--json"]))
    assert type(before.json) is type(after.json)


# --- parity -----------------------------------------------------------------------------------------------------------


def test_every_operation_has_a_command_or_a_reason(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs the daily commands in this process and notes which operations they really call."""
    called: set[str] = set()
    call = Local.__call__

    def noting(self: Local, op: Op[Any, Any], ask: Any) -> Any:
        called.add(op.name)
        return call(self, op, ask)

    monkeypatch.setattr(Local, "__call__", noting)
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    repo = world.repo()
    repo.write("draft.txt", "x")
    monkeypatch.chdir(repo.path)
    for arguments in (
        ["init", "--yes"], ["start", "Two"], ["switch", "main"], ["handoff", "--yes"], ["continue"], ["report"],
        ["report", "projects"], ["handoff", "history"], ["handoff", "diff"], ["handoff", "ack", "--accept"],
        ["handoff", "recover", "--output", "draft.json"], ["handoff", "--from", "draft.json", "--yes"],
        ["handoff", "export"], ["source", "list"], ["source", "add", "--text", "Seen by eye"],
    ):  # fmt: skip
        assert run(arguments) == 0, capsys.readouterr().err
    every = {op.name for op in OPERATIONS}
    assert called | LEFT_TO_HTTP.keys() == every
    assert called & LEFT_TO_HTTP.keys() == set(), "an operation that has a command needs no excuse"
