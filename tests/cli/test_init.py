"""``init`` and ``start``: what is written, what is named before, and what a refusal leaves behind."""

from __future__ import annotations

import json
import os
import stat

import pytest
from cli_support import World, numbers, on_a_terminal, shown


def test_init_makes_a_project_a_workstream_a_store_and_the_choice_and_nothing_else(bare_world: World) -> None:
    repo = bare_world.repo()
    before = set(bare_world.everything())
    answer = bare_world.ok(repo.path, "init")
    assert answer.out == "Bound to main  “Main line”\n"
    new = set(bare_world.everything()) - before
    assert new == {str(bare_world.data / "passdown.db"), str(repo.path / ".git/passdown/worktree.json")}
    assert repo.text("status", "--porcelain") == ""
    assert stat.S_IMODE(bare_world.data.stat().st_mode) == 0o700
    assert stat.S_IMODE((bare_world.data / "passdown.db").stat().st_mode) == 0o600


def test_init_names_every_write_on_stderr(world: World) -> None:
    repo = world.repo("billing")
    answer = world.ok(
        repo.path, "init", "--title", "Billing service", "--timezone", "Asia/Shanghai", "--locale", "zh-CN"
    )
    for part in ("billing", "“Billing service”", "zh-CN", "Asia/Shanghai", "“主线”", str(world.data)):
        assert part in answer.err
    assert str(repo.path / ".git" / "passdown" / "worktree.json") in answer.err


def test_the_answer_no_on_a_terminal_writes_nothing(world: World) -> None:
    repo = world.repo()
    before = world.everything()
    session = on_a_terminal(world, repo.path, ["init"], [("Write this? [Y/n]", b"n\n")])
    assert session.code == 130
    assert shown(session.screen)[-1] == "Nothing was written."
    assert world.everything() == before


@pytest.mark.parametrize("typed", [b"\x04", b"\x03", b"maybe\n"], ids=["end of input", "interrupt", "another word"])
def test_whatever_is_no_yes_on_a_terminal_writes_nothing(world: World, typed: bytes) -> None:
    repo = world.repo()
    before = world.everything()
    session = on_a_terminal(world, repo.path, ["init"], [("[Y/n]", typed)])
    assert session.code == 130
    assert world.everything() == before


@pytest.mark.parametrize("typed", [b"\n", b"y\n", b"YES\n"])
def test_yes_or_just_return_on_a_terminal_writes(world: World, typed: bytes) -> None:
    repo = world.repo()
    session = on_a_terminal(world, repo.path, ["init"], [("[Y/n]", typed)])
    assert session.code == 0
    assert numbers(world.data) == {
        "pc_handoff_report_projects": 1,
        "pc_handoff_report_workstreams": 1,
        "pd_handoff_revisions": 0,
        "pd_sources": 0,
    }


def test_yes_as_an_option_asks_nothing_on_a_terminal(world: World) -> None:
    repo = world.repo()
    session = on_a_terminal(world, repo.path, ["init", "--yes"])
    assert session.code == 0
    assert b"[Y/n]" not in session.sent


def test_init_a_second_time_changes_nothing(world: World) -> None:
    repo = world.bound()
    before = world.everything()
    answer = world.ok(repo.path, "init", "--json")
    assert answer.json["changed"] is False
    assert world.everything() == before


def test_a_taken_key_is_not_attached_to_silently(world: World) -> None:
    world.bound("shop")
    other = world.repo("elsewhere/shop")
    answer = world.refused("project_conflict", 3, other.path, "init")
    assert "passdown init --project KEY" in answer.err
    assert not (other.path / ".git/passdown").exists()


def test_attaching_to_a_project_with_workstreams_asks_which_one(world: World) -> None:
    world.bound("shop")
    other = world.repo("elsewhere/shop")
    answer = world.refused("no_current_workstream", 4, other.path, "init", "--project", "shop")
    assert "choices: main" in answer.err
    attached = world.ok(other.path, "init", "--project", "shop", "--workstream", "main", "--json")
    assert attached.json["workstream"]["key"] == "main"
    assert numbers(world.data)["pc_handoff_report_workstreams"] == 1


def test_attaching_with_another_title_begins_a_workstream_in_the_same_project(world: World) -> None:
    world.bound("shop")
    other = world.repo("elsewhere")
    attached = world.ok(other.path, "init", "--project", "shop", "--workstream", "Second checkout", "--json").json
    first = world.ok(world.root / "shop", "switch", "--json").json["workstreams"][0]
    assert attached["workstream"]["title"] == "Second checkout"
    assert attached["workstream"]["project_id"] == first["project_id"]


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["--project", "nobody"], "project_not_found", 4),
        (["--key", "a b/c"], "invalid_request", 2),
        (["--title", "t" * 257], "invalid_request", 2),
        (["--title", " \t"], "invalid_request", 2),
        (["--workstream", "w" * 257], "invalid_request", 2),
        (["--locale", "fr"], "unsupported_report_locale", 2),
        (["--timezone", "Mars/Olympus"], "invalid_request", 2),
        (["--key", "ungrouped"], "project_conflict", 3),
        (["--as", "two\nlines"], "invalid_request", 2),
        (["--title", b"\xff\xfe"], "invalid_request", 2),
    ],
)
def test_a_refused_init_leaves_no_half_made_project(
    world: World, arguments: list[str], code: str, exit_code: int
) -> None:
    repo = world.repo()
    answer = world.refused(code, exit_code, repo.path, "init", *arguments)
    assert numbers(world.data)["pc_handoff_report_projects"] == 0
    assert not (repo.path / ".git/passdown").exists()
    assert "Olympus" not in answer.err.split("This will be written")[0]


def test_titles_at_the_limit_are_kept_whole(world: World) -> None:
    repo = world.repo()
    title, stream = "界" * 256, "w" * 256
    world.ok(repo.path, "init", "--key", "k" * 64, "--title", title, "--workstream", stream)
    project = world.ok(repo.path, "report", "projects", "--json").json[0]
    assert (project["project_key"], project["title"]) == ("k" * 64, title)
    assert world.ok(repo.path, "switch", "--json").json["workstreams"][0]["title"] == stream


@pytest.mark.parametrize(
    ("folder", "key"),
    [("My Shop!", "my-shop"), ("支付 服务", "支付-服务"), ("---", "project"), ("A" * 80, "a" * 64)],
)
def test_the_key_is_made_of_what_the_folder_name_allows(world: World, folder: str, key: str) -> None:
    repo = world.repo(folder)
    world.ok(repo.path, "init")
    assert world.ok(repo.path, "report", "projects", "--json").json[0]["project_key"] == key


def test_a_git_directory_that_takes_no_choice_is_said(world: World) -> None:
    repo = world.repo()
    (repo.path / ".git/passdown").write_text("in the way")
    world.refused("file_not_writable", 5, repo.path, "init", "--yes")
    assert (repo.path / ".git/passdown").read_text() == "in the way"


def test_outside_a_repository_init_writes_nothing(bare_world: World) -> None:
    bare_world.refused("not_a_repository", 4, bare_world.root, "init")
    assert not bare_world.data.exists()


def test_in_a_bare_repository_init_writes_nothing(bare_world: World) -> None:
    repo = bare_world.repo()
    repo.git("clone", "-q", "--bare", ".", "../bare.git")
    bare_world.refused("not_a_repository", 4, bare_world.root / "bare.git", "init")
    assert not bare_world.data.exists()


# --- start ------------------------------------------------------------------------------------------------------------


def test_start_makes_a_workstream_of_the_current_project_and_moves_there(world: World) -> None:
    repo = world.bound()
    made = world.ok(repo.path, "start", "Retry queue", "--kind", "feature", "--json").json["workstream"]
    assert (made["key"], made["kind"], made["title"]) == ("retry-queue", "feature", "Retry queue")
    state = json.loads((repo.path / ".git/passdown/worktree.json").read_text())
    assert state["scope_id"] == made["scope_id"]


def test_start_finds_a_free_key_for_an_equal_title(world: World) -> None:
    repo = world.bound()
    keys = [world.ok(repo.path, "start", "Retry queue", "--json").json["workstream"]["key"] for _ in range(3)]
    assert keys == ["retry-queue", "retry-queue-2", "retry-queue-3"]


def test_start_keeps_the_instance_id_of_the_worktree(world: World) -> None:
    repo = world.bound()
    path = repo.path / ".git/passdown/worktree.json"
    before = json.loads(path.read_text())
    world.ok(repo.path, "start", "Other")
    after = json.loads(path.read_text())
    assert after["workspace_instance_id"] == before["workspace_instance_id"]
    assert after["scope_id"] != before["scope_id"]


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["T", "--key", "main"], "workstream_conflict", 3),
        (["T", "--kind", "epic"], "invalid_request", 2),
        (["T", "--project", "nobody"], "project_not_found", 4),
        (["t" * 257], "invalid_request", 2),
        (["  "], "invalid_request", 2),
    ],
)
def test_a_refused_start_leaves_the_old_choice(world: World, arguments: list[str], code: str, exit_code: int) -> None:
    repo = world.bound()
    path = repo.path / ".git/passdown/worktree.json"
    before = path.read_bytes()
    world.refused(code, exit_code, repo.path, "start", *arguments)
    assert path.read_bytes() == before
    assert numbers(world.data)["pc_handoff_report_workstreams"] == 1


def test_start_in_an_unbound_checkout_needs_a_project(world: World) -> None:
    repo = world.bound()
    other = world.repo("other")
    world.refused("no_current_workstream", 4, other.path, "start", "T")
    world.ok(other.path, "start", "T", "--project", "shop")
    assert len(world.ok(repo.path, "switch", "--json").json["workstreams"]) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_said(bare_world: World) -> None:
    repo = bare_world.repo()
    bare_world.data.mkdir(mode=0o500)
    bare_world.refused("store_not_writable", 5, repo.path, "init")
