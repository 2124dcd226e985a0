"""``switch`` and which workstream a checkout is on: chosen by a person, kept when moved, asked for when copied."""

from __future__ import annotations

import json
import shutil

import pytest
from cli_support import World


def current(world: World, cwd: object) -> str | None:
    return world.ok(cwd, "switch", "--json").json["current_scope_id"]  # type: ignore[arg-type]


def test_switch_lists_the_workstreams_with_the_current_one_marked(world: World) -> None:
    repo = world.bound()
    world.ok(repo.path, "start", "Retry queue")
    answer = world.ok(repo.path, "switch")
    assert answer.out == "     shop/main         Main line\n  →  shop/retry-queue  Retry queue\n"
    assert answer.err == "Choose with: passdown switch KEY\n"


def test_switch_goes_back_by_key_by_project_and_key_and_by_scope_id(world: World) -> None:
    repo = world.bound()
    first = current(world, repo.path)
    second = world.ok(repo.path, "start", "Retry queue", "--json").json["scope_id"]
    for name, scope_id in (("main", first), ("shop/retry-queue", second), (str(first), first)):
        world.ok(repo.path, "switch", name)
        assert current(world, repo.path) == scope_id


@pytest.mark.parametrize("name", ["Retry queue", "retry", "nobody/main", "RETRY-QUEUE", "", "shop/"])
def test_a_title_a_prefix_or_another_case_chooses_nothing(world: World, name: str) -> None:
    repo = world.bound()
    world.ok(repo.path, "start", "Retry queue")
    before = (repo.path / ".git/passdown/worktree.json").read_bytes()
    answer = world.run(repo.path, "switch", name)
    assert answer.code in (2, 4)
    assert answer.err.split(":")[0] in ("workstream_not_found", "project_not_found", "invalid_request")
    assert (repo.path / ".git/passdown/worktree.json").read_bytes() == before


def test_a_copied_checkout_is_not_bound_and_asks_again(world: World) -> None:
    repo = world.bound()
    shutil.copytree(repo.path, world.root / "copy", symlinks=True)
    answer = world.ok(world.root / "copy")
    assert "copy of a bound one" in answer.out
    world.refused("no_current_workstream", 4, world.root / "copy", "continue")
    world.refused("no_current_workstream", 4, world.root / "copy", "handoff")
    world.ok(world.root / "copy", "switch", "shop/main")
    copied, original = (
        json.loads((folder / ".git/passdown/worktree.json").read_text()) for folder in (world.root / "copy", repo.path)
    )
    assert copied["workspace_instance_id"] != original["workspace_instance_id"]


def test_a_moved_checkout_keeps_its_workstream(world: World) -> None:
    repo = world.bound()
    before = current(world, repo.path)
    repo.path.rename(world.root / "renamed")
    assert current(world, world.root / "renamed") == before
    world.ok(world.root / "renamed", "handoff", "--yes")


def test_linked_worktrees_are_on_workstreams_of_their_own(world: World) -> None:
    repo = world.bound()
    repo.git("worktree", "add", "-q", "../linked", "-b", "side")
    linked = world.root / "linked"
    world.refused("no_current_workstream", 4, linked, "continue")
    second = world.ok(linked, "start", "Side", "--project", "shop", "--json").json["scope_id"]
    assert current(world, linked) == second
    assert current(world, repo.path) not in (None, second)


DAMAGED = {
    "empty": b"",
    "not JSON": b"{",
    "another schema": b'{"schema": "passdown.worktree.v9"}',
    "cut off": b'{"schema": "passdown.worktree.v1", "scope_id": "scp_',
    "binary": bytes(range(256)),
    "too large": b" " * 70_000,
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_choice_is_never_guessed_at_and_can_be_made_anew(world: World, data: bytes) -> None:
    repo = world.bound()
    path = repo.path / ".git/passdown/worktree.json"
    path.write_bytes(data)
    assert "cannot be read" in world.ok(repo.path).out
    world.refused("no_current_workstream", 4, repo.path, "continue")
    assert path.read_bytes() == data
    world.ok(repo.path, "switch", "shop/main")
    assert json.loads(path.read_text())["schema"] == "passdown.worktree.v1"
    world.ok(repo.path, "handoff")


def test_commands_that_need_no_choice_work_beside_a_damaged_one(world: World) -> None:
    repo = world.bound()
    (repo.path / ".git/passdown/worktree.json").write_bytes(b"{")
    assert [item["project_key"] for item in world.ok(repo.path, "report", "projects", "--json").json] == ["shop"]
    assert world.ok(repo.path, "report", "--project", "shop", "--json").json["project"]["project_key"] == "shop"


def test_a_store_that_is_named_wins_over_the_recorded_one(world: World) -> None:
    repo = world.bound()
    other = world.root / "other-data"
    world.ok(repo.path, "init", "--key", "elsewhere", "--data", str(other))
    assert json.loads((repo.path / ".git/passdown/worktree.json").read_text())["store"] == str(other)
    named = {"option": ["report", "projects", "--data", str(world.data)], "none": ["report", "projects"]}
    keys = {
        name: [item["project_key"] for item in world.ok(repo.path, *arguments, "--json", PASSDOWN_DATA=None).json]
        for name, arguments in named.items()
    }
    assert keys == {"option": ["shop"], "none": ["elsewhere"]}
    by_environment = world.ok(repo.path, "report", "projects", "--json", PASSDOWN_DATA=str(world.data)).json
    assert [item["project_key"] for item in by_environment] == ["shop"]


def test_an_option_before_the_command_names_the_store_too(world: World) -> None:
    repo = world.bound()
    answer = world.ok(repo.path, "--data", str(world.data), "--json", "report", "projects", PASSDOWN_DATA=None)
    assert [item["project_key"] for item in answer.json] == ["shop"]


def test_without_any_workstream_switch_says_how_to_begin(world: World) -> None:
    repo = world.repo()
    answer = world.ok(repo.path, "switch")
    assert (answer.out, answer.err) == ("", "No workstream yet. Begin with: passdown init\n")
