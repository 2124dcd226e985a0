"""The guided handoff on a terminal: what Enter keeps, what is picked, what is never written by accident."""

from __future__ import annotations

from typing import Any

import pytest
from cli_support import Session, World, numbers, on_a_terminal, shown
from git_support import Repo

JUNIT = """<testsuite tests="2"><properties><property name="git.commit" value="{oid}"/></properties>
<testcase classname="t" name="a"/><testcase classname="t" name="b"><failure>no</failure></testcase></testsuite>"""


@pytest.fixture
def repo(world: World) -> Repo:
    return world.bound(commits=2)


def guided(world: World, repo: Repo, *answers: tuple[str, bytes]) -> Session:
    return on_a_terminal(world, repo.path, ["handoff"], answers, columns=100)


def content_of(world: World, repo: Repo) -> dict[str, Any]:
    found: dict[str, Any] = world.ok(repo.path, "continue", "--json").json["content"]
    return found


def sources(statement: dict[str, Any]) -> list[str]:
    return [f"{item['source_ref']['source_type']}:{item['source_ref']['source_id']}" for item in statement["citations"]]


def test_enter_all_the_way_makes_the_plain_handoff(world: World, repo: Repo) -> None:
    session = guided(
        world, repo,
        ("Enter takes it, or type another:", b"\n"),
        ("One statement a line", b"\n"),
        ("(c)ontinuable, (b)locked or (d)one? [c]", b"\n"),
        ("Next action (Enter: none):", b"\n"),
        ("Commit this handoff? [Y/n]", b"\n"),
    )  # fmt: skip
    assert session.code == 0
    content = content_of(world, repo)
    assert (content["objective"], content["disposition"], content["next_action"]) == ("Main line", "continuable", None)
    assert [item["text"] for item in content["state"]] == [
        "Committed: Step 2",
        "Committed: Step 1",
        "Nothing is uncommitted.",
    ]


def test_statements_rest_on_exactly_what_was_picked(world: World, repo: Repo) -> None:
    oid = repo.text("rev-parse", "HEAD")
    repo.write("notes.txt", "measured\n")
    repo.write("junit.xml", JUNIT.format(oid=oid))
    session = guided(
        world, repo,
        ("Enter takes it, or type another:", b"Retry once\n"),
        ("One statement a line", b"Half of the tests pass\n"),
        ("rests on (numbers", b"5\n"),
        ("uncommitted): 5", b"Measured by hand\n"),
        ("• Measured by hand", b"4 1\n"),
        ("uncommitted): 4 1", b"\n"),
        ("(c)ontinuable, (b)locked or (d)one? [c]", b"b\n"),
        ("What blocks it?", b"The key is missing\n"),
        ("• The key is missing", b"\n\n"),
        ("Next action (Enter: none):", b"Ask for the key\n"),
        ("Ask for the key", b"2\n"),
        ("Commit this handoff? [Y/n]", b"y\n"),
    )  # fmt: skip
    text = "\n".join(shown(session.screen))
    assert session.code == 0, text
    content = content_of(world, repo)
    assert (content["objective"], content["disposition"]) == ("Retry once", "blocked")
    by_text = {item["text"]: sources(item) for item in content["state"]}
    assert [name.partition(":")[0] for name in by_text["Half of the tests pass"]] == ["test_report"]
    assert [name.partition(":")[0] for name in by_text["Measured by hand"]] == ["git_commit", "file"]
    assert by_text["Measured by hand"][0].startswith(f"git_commit:{oid}")
    assert by_text["Measured by hand"][1].startswith("file:notes.txt@")
    assert {name.partition(":")[0] for name in by_text["The key is missing"]} == {"git_commit", "worktree"}
    first = repo.text("rev-parse", "HEAD~1")
    assert [name.partition("@")[0] for name in sources(content["next_action"])] == [f"git_commit:{first}"]
    commits = [item for item in world.ok(repo.path, "continue", "--json").json["evidence"] if item["checks"]]
    assert [(run["tests"], run["failures"]) for item in commits for run in item["checks"]] == [(2, 1)]


def test_what_was_said_last_time_goes_on_or_is_dropped_by_number(world: World, repo: Repo) -> None:
    world.ok(repo.path, "handoff", "--state", "Still so", "--state", "No longer so", "--next", "Go on")
    repo.commit("Third", {"c": "3"})
    session = guided(
        world, repo,
        ("Enter keeps it, or type another:", b"\n"),
        ("Enter keeps all; numbers drop some", b"2\n"),
        ("One statement a line", b"\n"),
        ("[c]", b"\n"),
        ("Enter keeps it, `-` takes it back, or type another:", b"\n"),
        ("Commit this handoff? [Y/n]", b"\n"),
    )  # fmt: skip
    assert session.code == 0
    content = content_of(world, repo)
    texts = [item["text"] for item in content["state"]]
    assert texts == ["Still so", "Committed: Third", "Nothing is uncommitted."]
    assert content["next_action"]["text"] == "Go on"


def test_a_next_action_can_be_taken_back(world: World, repo: Repo) -> None:
    world.ok(repo.path, "handoff", "--next", "Go on")
    session = guided(
        world, repo,
        ("Enter keeps it, or type another:", b"\n"),
        ("One statement a line", b"\n"),
        ("[c]", b"\n"),
        ("Enter keeps it, `-` takes it back, or type another:", b"-\n"),
        ("Commit this handoff? [Y/n]", b"\n"),
    )  # fmt: skip
    assert "No longer proposed: Go on" in "\n".join(shown(session.screen))
    assert content_of(world, repo)["next_action"] is None


@pytest.mark.parametrize("end", [b"\x04", b"\x03"], ids=["end of input", "interrupt"])
def test_calling_it_off_anywhere_writes_nothing(world: World, repo: Repo, end: bytes) -> None:
    session = guided(world, repo, ("Enter takes it, or type another:", b"\n"), ("One statement a line", end))
    assert session.code == 130
    assert numbers(world.data)["pd_sources"] == 0


def test_a_wrong_number_is_asked_again(world: World, repo: Repo) -> None:
    session = guided(
        world, repo,
        ("Enter takes it, or type another:", b"\n"),
        ("One statement a line", b"It stands\n"),
        ("rests on (numbers", b"9\n"),
        ("Numbers from 1 to 2, please.", b"1\n"),
        ("uncommitted): 1", b"\n"),
        ("[c]", b"x\n"),
        ("[c] x", b"d\n"),
        ("Next action (Enter: none):", b"\n"),
        ("Commit this handoff? [Y/n]", b"n\n"),
    )  # fmt: skip
    assert session.code == 130
    assert "✓ complete" in "\n".join(shown(session.screen))
    assert numbers(world.data)["pd_handoff_revisions"] == 0


def test_without_a_terminal_nothing_is_asked(world: World, repo: Repo) -> None:
    assert world.ok(repo.path, "handoff").out.startswith("Committed as revision 1")
