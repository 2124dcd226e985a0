"""``source`` and ``handoff --tests``: evidence as a person adds it and sees it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from cli_support import World, numbers
from git_support import Repo

CASES = '<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><skipped/></testcase>'


def junit(*, commit: str | None = None, cases: str = CASES) -> str:
    named = f'<properties><property name="git.commit" value="{commit}"/></properties>' if commit else ""
    return f"<testsuite>{named}{cases}</testsuite>"


@pytest.fixture
def repo(world: World) -> Repo:
    return world.bound(commits=2)


def added(world: World, repo: Repo, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = world.ok(repo.path, "source", "add", "--json", *options).json["source"]
    return found


def test_each_kind_is_added_listed_and_shown(world: World, repo: Repo) -> None:
    repo.write("notes.txt", "measured\n")
    digest = hashlib.sha256(b"measured\n").hexdigest()
    oid = repo.text("rev-parse", "HEAD~1")
    assert added(world, repo, "--file", "notes.txt")["source_ref"]["source_id"] == f"notes.txt@{digest}"
    assert added(world, repo, "--commit", "HEAD~1")["source_ref"]["source_id"].startswith(oid)
    assert added(world, repo, "--document", "notes.txt", "--role", "PRD")["label"] == f"PRD notes.txt@{digest[:12]}"
    assert added(world, repo, "--url", "https://example.com/a")["assurance"] == "referenced"
    assert added(world, repo, "--text", "Seen by eye", "--name", "Eye")["label"] == "Eye"
    listed = world.ok(repo.path, "source", "list")
    assert "reference only  just now  https://example.com/a" in " ".join(listed.out.split("\n")).replace("   ", "  ")
    shown = world.ok(repo.path, "source", "show", f"file:notes.txt@{digest}").out
    assert f'"sha256": "{digest}"' in shown
    assert world.ok(repo.path, "source", "add", "--text", "Seen by eye", "--name", "Eye").out.startswith(
        "There already"
    )


def test_a_note_comes_from_a_pipe_within_its_limit(world: World, repo: Repo) -> None:
    whole = b"x" * 262_144
    assert world.ok(repo.path, "source", "add", "--note", "-", "--json", stdin=whole).json["source"]["size"] == 262_144
    world.refused("source_too_large", 2, repo.path, "source", "add", "--note", "-", stdin=whole + b"x")
    world.refused("invalid_request", 2, repo.path, "source", "add", "--note", "-", stdin=b"\xff")


@pytest.mark.parametrize(
    "options",
    [[], ["--text", "a", "--file", "b"], ["--document", "x"], ["--role", "PRD", "--text", "a"],
     ["--tests-commit", "HEAD", "--text", "a"]],
)  # fmt: skip
def test_what_is_not_one_thing_is_a_usage_error(world: World, repo: Repo, options: list[str]) -> None:
    assert world.run(repo.path, "source", "add", *options).code == 2
    assert numbers(world.data)["pd_sources"] == 0


def test_what_is_not_there_is_said(world: World, repo: Repo) -> None:
    world.refused("git_file_not_found", 4, repo.path, "source", "add", "--file", "no.txt")
    world.refused("file_not_readable", 4, repo.path, "source", "add", "--tests", "no.xml")
    world.refused("source_not_found", 4, repo.path, "source", "show", "content:none")
    assert world.run(repo.path, "source", "show", "none").code == 2


# --- test reports -----------------------------------------------------------------------------------------------------


def checked(world: World, repo: Repo) -> str:
    """What Continue says of HEAD."""
    lines = world.ok(repo.path, "continue").out.replace("\n        ", " ").splitlines()
    return next(line for line in lines if "remote-tracking" in line)


def test_statements_rest_on_a_report_and_its_commit_is_shown_as_checked(world: World, repo: Repo) -> None:
    repo.write("out/junit.xml", junit(commit=repo.text("rev-parse", "HEAD")))
    world.ok(repo.path, "handoff", "--tests", "out/junit.xml", "--state", "One test fails")
    assert checked(world, repo).endswith("checked: 1 of 2 tests FAILED, 1 skipped")
    content = world.ok(repo.path, "continue", "--json").json["content"]
    assert "test_report" in [item["source_ref"]["source_type"] for item in content["state"][0]["citations"]]


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ('<testcase name="a"/><testcase name="b"/>', "checked: 2 tests passed"),
        ('<testcase name="a"/><testcase name="b"><skipped/></testcase>', "checked: 1 tests passed, 1 skipped"),
        ('<testcase name="b"><skipped/></testcase>', "checked: no test ran, 1 skipped"),
        ("", "checked: no test ran"),
    ],
)
def test_only_what_ran_and_passed_is_said_to_have_passed(world: World, repo: Repo, cases: str, words: str) -> None:
    repo.write("junit.xml", junit(commit=repo.text("rev-parse", "HEAD"), cases=cases))
    world.ok(repo.path, "handoff", "--tests", "junit.xml", "--state", "See the report")
    assert checked(world, repo).endswith(words)


def test_a_commit_that_only_a_person_named_is_said_so(world: World, repo: Repo) -> None:
    repo.write("junit.xml", junit())
    world.ok(repo.path, "handoff", "--tests", "junit.xml", "--state", "See the report")
    assert checked(world, repo).endswith("no test report names it")
    world.ok(repo.path, "handoff", "--tests", "junit.xml", "--tests-commit", "HEAD", "--state", "See it again")
    assert checked(world, repo).endswith("that it ran on this commit is said, not read")


def test_a_report_and_a_person_that_name_different_commits_are_refused(world: World, repo: Repo) -> None:
    repo.write("junit.xml", junit(commit=repo.text("rev-parse", "HEAD")))
    answer = world.refused(
        "invalid_request", 2, repo.path, "handoff", "--json", "--tests", "junit.xml", "--tests-commit", "HEAD~1"
    )  # fmt: skip
    assert "the_report_names_another_commit" in answer.err
    assert numbers(world.data)["pd_handoff_revisions"] == 0


def test_a_hostile_report_is_refused_and_the_places_of_this_machine_are_not_kept(
    world: World, repo: Repo, tmp_path: Path
) -> None:
    repo.write("bad.xml", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite name="&a;"/>')
    world.refused("test_report_refused", 2, repo.path, "handoff", "--json", "--tests", "bad.xml")
    outside = tmp_path / "outside.xml"
    outside.write_text(junit())
    found = added(world, repo, "--tests", str(outside))
    assert found["descriptor"]["path"] == "outside.xml"
    assert str(tmp_path) not in str(found)
