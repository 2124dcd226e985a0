"""Bare ``passdown``: what is bound here, what needs attention first, and the one next command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from subprocess import PIPE, Popen, run

import pytest
from cli_support import PASSDOWN, World, on_a_terminal, screen_of, shown

from passdown.kernel.escape import display_width


def test_outside_a_repository_home_says_so_and_writes_nothing(bare_world: World) -> None:
    before = bare_world.everything()
    answer = bare_world.ok(bare_world.root)
    assert "not in a git worktree" in answer.out
    assert answer.err == "Next: cd into a repository, then: passdown init\n"
    assert bare_world.everything() == before
    assert not bare_world.data.exists()


def test_in_an_unbound_repository_the_next_command_is_init_and_no_store_is_made(bare_world: World) -> None:
    repo = bare_world.repo()
    answer = bare_world.ok(repo.path, "--json")
    assert answer.json == {"next_command": "passdown init", "project_id": None, "reason": "absent", "scope_id": None}
    assert not bare_world.data.exists()


def test_home_of_a_bound_checkout_without_its_store_says_what_is_missing(world: World) -> None:
    repo = world.bound()
    shutil.rmtree(world.data)
    answer = world.refused("store_not_readable", 5, repo.path)
    assert "passdown init" in answer.err
    assert not world.data.exists()


def test_the_next_command_follows_from_what_is_there(world: World) -> None:
    repo = world.bound()
    assert world.ok(repo.path, "--json").json["next_command"] == "passdown handoff"
    world.ok(repo.path, "handoff")
    assert world.ok(repo.path, "--json").json["next_command"] == "passdown continue"


def test_what_needs_somebody_stands_first(world: World) -> None:
    repo = world.bound()
    world.ok(repo.path, "handoff", "--next", "Go on with the main line")
    world.ok(repo.path, "start", "Done", "--key", "done")
    world.ok(repo.path, "handoff", "--complete")
    world.ok(repo.path, "start", "New", "--key", "new")
    world.ok(repo.path, "start", "Stuck", "--key", "stuck")
    world.ok(repo.path, "handoff", "--blocked", "Nobody decided the zone")
    found = world.ok(repo.path, "--json").json
    assert [(row["key"], row["need"]) for row in found["workstreams"]] == [
        ("stuck", "blocked"),
        ("new", "no_handoff"),
        ("main", "continuable"),
        ("done", "complete"),
    ]
    lines = world.ok(repo.path).out.splitlines()
    rows = lines[lines.index("") + 1 :]
    assert rows[0].startswith("→  stuck  ■ blocked")
    assert rows[0].endswith("Nobody decided the zone")
    assert [row.split()[0] for row in rows[1:]] == ["new", "main", "done"]


def test_home_writes_nothing_at_all(world: World) -> None:
    repo = world.bound()
    world.ok(repo.path, "handoff")
    before = world.everything()
    world.ok(repo.path)
    world.ok(repo.path, "--json")
    assert world.everything() == before


def test_a_workstream_without_a_handoff_says_no_handoff_and_not_no_work(world: World) -> None:
    repo = world.bound()
    assert "○ no handoff" in world.ok(repo.path).out


@pytest.mark.parametrize(
    ("home", "xdg"), [(None, None), ("", None), ("", ""), (None, "relative/folder")], ids=lambda value: repr(value)
)
def test_without_a_home_the_commands_still_answer(bare_world: World, home: str | None, xdg: str | None) -> None:
    repo = bare_world.repo()
    answer = bare_world.ok(repo.path, "--json", HOME=home, XDG_DATA_HOME=xdg, PASSDOWN_DATA=None)
    assert answer.json["next_command"] == "passdown init"
    assert list(bare_world.root.rglob("*.db")) == []


def test_the_data_directory_is_below_the_home_of_the_user(bare_world: World) -> None:
    repo = bare_world.repo()
    bare_world.ok(repo.path, "init", PASSDOWN_DATA=None)
    assert (bare_world.home / ".local/share/passdown/passdown.db").is_file()
    assert (bare_world.home / ".local/share/passdown").stat().st_mode & 0o777 == 0o700


def test_an_absolute_xdg_data_home_is_used(bare_world: World) -> None:
    repo = bare_world.repo()
    bare_world.ok(repo.path, "init", PASSDOWN_DATA=None, XDG_DATA_HOME=str(bare_world.root / "xdg"))
    assert (bare_world.root / "xdg/passdown/passdown.db").is_file()
    assert not (bare_world.home / ".local").exists()


def test_a_home_of_nobody_is_refused_as_input(bare_world: World) -> None:
    answer = bare_world.refused("invalid_request", 2, bare_world.root, "report", "projects", "--data", "~nobody-here/x")
    assert "nobody-here" not in answer.err


def test_a_current_folder_that_was_removed_is_no_fault_of_ours(world: World) -> None:
    gone = world.root / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && exec "$2" --json'
    done = run(
        ["sh", "-c", script, "sh", str(gone), PASSDOWN], capture_output=True, env=world.environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert b'"project_id":null' in done.stdout


# --- terminals --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy(new_world: Callable[[], World]) -> World:
    world = new_world()
    repo = world.bound("a-shop-with-a-rather-long-folder-name")
    world.ok(repo.path, "handoff", "--next", "Wire the retry queue into the worker, 然后重新运行所有的测试, and tell")
    world.ok(repo.path, "start", "A second workstream whose title alone fills a narrow screen")
    world.ok(repo.path, "handoff", "--blocked", "Nobody has decided which zone counts for buyers without an address")
    return world


@pytest.mark.parametrize("arguments", [[], ["continue"], ["continue", "--verbose"], ["switch"]], ids=" ".join)
def test_on_a_narrow_terminal_no_line_is_wider_than_it(busy: World, arguments: list[str]) -> None:
    repo = busy.root / "a-shop-with-a-rather-long-folder-name"
    out = busy.ok(repo, *arguments, COLUMNS="40").out
    wide = [line for line in out.splitlines() if display_width(line) > 40]
    assert wide == []
    # The terminal itself agrees: nothing was wrapped by it, so it shows as many lines as were sent.
    rows = len(out.splitlines()) + 5
    assert shown(screen_of(out, 40, rows)) == [line.rstrip() for line in out.rstrip().splitlines()]


def test_what_does_not_fit_beside_stands_below_and_is_all_there(busy: World) -> None:
    repo = busy.root / "a-shop-with-a-rather-long-folder-name"
    out = busy.ok(repo, "switch", COLUMNS="40").out
    joined = "".join(out.split())
    assert "a-shop-with-a-rather-long-folder-name/main" in joined
    assert "Mainline" in joined


def test_a_pipe_gets_no_colour_and_a_terminal_does(busy: World) -> None:
    repo = busy.root / "a-shop-with-a-rather-long-folder-name"
    assert "\x1b" not in busy.ok(repo).out
    assert b"\x1b[31m" in on_a_terminal(busy, repo, []).sent
    assert b"\x1b" not in on_a_terminal(busy, repo, [], NO_COLOR="1").sent


def test_a_terminal_of_80_columns_shows_the_screen_unbroken(busy: World) -> None:
    repo = busy.root / "a-shop-with-a-rather-long-folder-name"
    session = on_a_terminal(busy, repo, [], columns=80)
    lines = shown(session.screen)
    assert lines[0].startswith("Project")
    assert lines[-1] == "Next: passdown continue"
    assert sum("blocked" in line for line in lines) == 1


def test_an_output_that_cannot_show_a_character_still_ends_well(busy: World) -> None:
    repo = busy.root / "a-shop-with-a-rather-long-folder-name"
    answer = busy.spawn(repo, PYTHONIOENCODING="ascii")
    assert answer.code == 0
    assert "\\u25a0 blocked" in answer.out
    assert busy.spawn(repo, "--json", PYTHONIOENCODING="latin-1").json["workstreams"][1]["says"].startswith("Wire")


def test_a_full_disk_under_the_output_is_told_as_such(busy: World) -> None:
    repo = busy.root / "a-shop-with-a-rather-long-folder-name"
    with open("/dev/full", "w") as full:
        done = run([PASSDOWN], cwd=repo, stdout=full, stderr=PIPE, env=busy.environment(), check=False)
    assert done.returncode == 5
    assert done.stderr.decode().splitlines()[-3].startswith("file_not_writable: ")


@pytest.mark.parametrize("arguments", [[], ["report"], ["continue", "--json"]], ids=" ".join)
def test_a_reader_that_went_away_ends_the_command_quietly(busy: World, arguments: list[str]) -> None:
    repo = busy.root / "a-shop-with-a-rather-long-folder-name"
    reading, writing = os.pipe()
    os.close(reading)
    with Popen([PASSDOWN, *arguments], cwd=repo, stdout=writing, stderr=PIPE, env=busy.environment()) as child:
        os.close(writing)
        assert child.stderr is not None
        said = child.stderr.read().decode()
    assert child.returncode == 0
    assert "rror" not in said
    assert "Traceback" not in said


def test_closed_standard_streams_do_not_reach_the_store(world: World) -> None:
    repo = world.bound()
    script = 'exec "$1" handoff --yes <&- >&- 2>&-'
    done = run(["sh", "-c", script, "sh", PASSDOWN], cwd=repo.path, env=world.environment(), check=False)
    assert done.returncode == 0
    assert world.ok(repo.path, "continue", "--json").json["selected_revision"]["revision"] == 1


def test_an_unbound_worktree_is_told_what_another_one_of_the_repository_is_on(world: World) -> None:
    """Nothing is chosen for it: it is offered the one command that chooses the same."""
    repo = world.bound()
    second = world.root / "second"
    repo.git("worktree", "add", "-q", str(second))
    answer = world.ok(second)
    assert "Another one of this repository is on shop/main." in answer.out
    assert answer.err == "Next: passdown switch shop/main\n"
    assert world.ok(second, "--json").json["scope_id"] is None
    world.ok(second, "switch", "shop/main")
    assert world.ok(second, "--json").json["scope_id"] == world.ok(repo.path, "--json").json["scope_id"]


def test_a_second_worktree_finds_the_store_of_the_first_without_naming_it(world: World) -> None:
    repo = world.repo()
    elsewhere = str(world.root / "elsewhere")
    world.ok(repo.path, "--data", elsewhere, "init", PASSDOWN_DATA=None)
    second = world.root / "second"
    repo.git("worktree", "add", "-q", str(second))
    assert "switch shop/main" in world.ok(second, PASSDOWN_DATA=None).err
    world.ok(second, "switch", "shop/main", PASSDOWN_DATA=None)


def test_a_worktree_that_was_removed_is_not_offered(world: World) -> None:
    repo = world.repo()
    second = world.root / "second"
    repo.git("worktree", "add", "-q", str(second))
    world.ok(second, "init")
    assert "passdown switch" in world.ok(repo.path).err
    repo.git("worktree", "remove", str(second))
    assert world.ok(repo.path).err == "Next: passdown init\n"
