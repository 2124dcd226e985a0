"""``handoff``: one command, cited by itself; what is announced, what is refused, what a refusal leaves behind."""

from __future__ import annotations

import hashlib
import json
import subprocess

import pytest
from cli_support import PASSDOWN, World, numbers, on_a_terminal, shown


def citations(content: dict[str, object]) -> list[dict[str, object]]:
    """Everything that the statements of a handoff cite."""
    statements = [*content["state"], *([content["next_action"]] if content["next_action"] else [])]  # type: ignore[misc]
    return [citation for statement in statements for citation in statement["citations"]]


def test_a_plain_handoff_cites_every_commit_and_the_worktree(world: World) -> None:
    repo = world.bound(commits=3)
    repo.write("draft.txt", "not yet\n")
    answer = world.ok(repo.path, "handoff", "--json").json
    content = answer["prepared"]["content"]
    oids = repo.text("log", "--format=%H").split()
    cited = {
        citation["source_ref"]["source_id"].partition("@")[0]
        for citation in citations(content)
        if citation["source_ref"]["source_type"] == "git_commit"
    }
    assert cited == set(oids)
    assert {citation["source_ref"]["source_type"] for citation in citations(content)} == {"git_commit", "worktree"}
    assert content["next_action"] is None
    assert answer["committed"]["handoff_ref"]["revision"] == 1


def test_a_second_handoff_restates_only_what_is_new_and_names_the_one_before(world: World) -> None:
    repo = world.bound(commits=2)
    world.ok(repo.path, "handoff")
    new = repo.commit("Third", {"c": "3"})
    content = world.ok(repo.path, "handoff", "--json").json["prepared"]["content"]
    commits = [ref for ref in citations(content) if ref["source_ref"]["source_type"] == "git_commit"]  # type: ignore[index]
    assert [ref["source_ref"]["source_id"].partition("@")[0] for ref in commits] == [new]  # type: ignore[index]
    assert content["omissions"][-1]["citation"]["artifact_ref"]["revision"] == 1


def test_a_handoff_with_nothing_new_makes_no_revision(world: World) -> None:
    repo = world.bound()
    world.ok(repo.path, "handoff")
    again = world.ok(repo.path, "handoff", "--json").json["committed"]
    assert (again["status"], again["handoff_ref"]["revision"]) == ("unchanged", 1)
    assert world.ok(repo.path, "handoff").out == "Unchanged: the same content is revision 1 already.\n"
    assert numbers(world.data)["pd_handoff_revisions"] == 1


def test_words_become_statements_that_cite_head_the_worktree_and_what_is_named(world: World) -> None:
    repo = world.bound()
    repo.write("notes.txt", "measure first\n")
    answer = world.ok(
        repo.path, "handoff", "--state", "It works", "--next", "Ship it", "--objective", "Retry", "--cite", "notes.txt",
        "--only-words", "--json",
    )  # fmt: skip
    content = answer.json["prepared"]["content"]
    assert content["objective"] == "Retry"
    assert [item["text"] for item in content["state"]] == ["It works"]
    assert content["next_action"]["text"] == "Ship it"
    refs = {ref["source_ref"]["source_type"]: ref["source_ref"]["source_id"] for ref in citations(content)}  # type: ignore[index]
    assert refs["file"] == f"notes.txt@{hashlib.sha256(b'measure first' + bytes([10])).hexdigest()}"
    assert refs["git_commit"].startswith(repo.text("rev-parse", "HEAD"))
    assert refs["worktree"].startswith(repo.text("rev-parse", "HEAD"))


def test_blocked_and_complete_set_the_disposition(world: World) -> None:
    repo = world.bound()
    blocked = world.ok(repo.path, "handoff", "--blocked", "No key", "--json").json["prepared"]["content"]
    complete = world.ok(repo.path, "handoff", "--complete", "--json").json["prepared"]["content"]
    assert (blocked["disposition"], blocked["state"][0]["text"]) == ("blocked", "No key")
    assert complete["disposition"] == "complete"


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["--cite", "deadbeef" * 5], "git_object_not_found", 4),
        (["--cite", "no-such-file"], "git_object_not_found", 4),
        (["--cite", "../outside"], "git_object_not_found", 4),
        (["--state", "s" * 4097], "invalid_request", 2),
        (["--state", "  "], "invalid_request", 2),
        (["--state", b"\xff"], "invalid_request", 2),
        (["--objective", "o" * 8193], "invalid_request", 2),
        ([f"--state={number}" for number in range(65)], "invalid_request", 2),
        ([f"--state={number}{'界' * 1500}" for number in range(8)], "handoff_too_large", 2),
    ],
)
def test_a_refused_handoff_stores_neither_sources_nor_a_revision(
    world: World, arguments: list[str], code: str, exit_code: int
) -> None:
    repo = world.bound()
    answer = world.refused(code, exit_code, repo.path, "handoff", "--json", *arguments)
    found = numbers(world.data)
    assert (found["pd_sources"], found["pd_handoff_revisions"]) == (0, 0)
    assert "deadbeef" not in answer.err


def test_a_statement_at_the_limit_is_kept_whole(world: World) -> None:
    repo = world.bound()
    text = "界" * 4096
    content = world.ok(repo.path, "handoff", "--state", text, "--only-words", "--json").json["prepared"]["content"]
    assert content["state"][0]["text"] == text


def test_blocked_and_complete_at_once_is_a_usage_error(world: World) -> None:
    repo = world.bound()
    answer = world.run(repo.path, "handoff", "--blocked", "x", "--complete")
    assert (answer.code, answer.out) == (2, "")
    assert numbers(world.data)["pd_handoff_revisions"] == 0


def test_the_answer_no_on_a_terminal_writes_nothing(world: World) -> None:
    repo = world.bound()
    before = world.everything()
    session = on_a_terminal(world, repo.path, ["handoff", "--next", "Go on"], [("Commit this handoff? [Y/n]", b"n\n")])
    assert session.code == 130
    assert "Next action  Go on" in "\n".join(shown(session.screen))
    assert shown(session.screen)[-1] == "Nothing was written."
    assert world.everything() == before


def test_the_preview_shows_what_each_statement_cites(world: World) -> None:
    repo = world.bound()
    answer = world.ok(repo.path, "handoff")
    assert f"cites {repo.text('rev-parse', 'HEAD')[:12]} (on no remote-tracking ref when read)" in answer.err
    assert "cites the worktree as read now" in answer.err
    assert answer.out.startswith("Committed as revision 1  sha256:")


def test_an_unborn_repository_can_be_handed_off(world: World) -> None:
    repo = world.repo(commits=0)
    repo.write("first.txt", "one\n")
    world.ok(repo.path, "init")
    content = world.ok(repo.path, "handoff", "--next", "Make the first commit", "--json").json["prepared"]["content"]
    assert {ref["source_ref"]["source_type"] for ref in citations(content)} == {"worktree"}  # type: ignore[index]
    assert [item["text"] for item in content["omissions"]] == ["The repository has no commit yet."]


def test_a_shallow_clone_says_what_it_lacks(world: World) -> None:
    repo = world.repo("origin", commits=5)
    repo.git("clone", "-q", "--depth", "2", repo.path.as_uri(), "../shallow")
    clone = world.root / "shallow"
    world.ok(clone, "init")
    content = world.ok(clone, "handoff", "--json").json["prepared"]["content"]
    assert [item["text"] for item in content["omissions"]] == [
        "The clone is shallow: history before its oldest commit was not available."
    ]


def test_a_detached_head_is_handed_off_by_its_commit(world: World) -> None:
    repo = world.bound(commits=2)
    first = repo.text("rev-parse", "HEAD~1")
    repo.git("checkout", "-q", "--detach", first)
    world.ok(repo.path, "handoff", "--next", "Look at the second step")
    answer = world.ok(repo.path, "continue", "--json").json
    assert answer["workspace"]["relation"] == "aligned"
    assert answer["workspace"]["head"] == first


def test_who_handed_off_is_what_the_caller_asserts(world: World) -> None:
    repo = world.bound()
    said = []
    for arguments, changes in (
        (["--as", "codex-2"], {"PASSDOWN_AGENT": "other"}),
        ([], {"PASSDOWN_AGENT": "claude"}),
        ([], {}),
    ):
        repo.commit("More")
        world.ok(repo.path, "handoff", *arguments, **changes)
        said.append(world.ok(repo.path, "continue", "--json").json["recorded_by"])
    assert said == [{"identity": "asserted", "principal_id": name} for name in ("codex-2", "claude", "grace")]


def test_of_many_handoffs_at_once_one_wins_and_the_others_are_told(world: World) -> None:
    repo = world.bound()
    children = [
        subprocess.Popen(
            [PASSDOWN, "handoff", "--yes", "--json", "--state", f"From writer {number}"],
            cwd=repo.path, env=world.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for number in range(4)
    ]  # fmt: skip
    outcomes = [(*child.communicate(timeout=120), child.returncode) for child in children]
    won = [json.loads(out)["committed"]["handoff_ref"]["revision"] for out, _, code in outcomes if code == 0]
    assert sorted(won) == list(range(1, len(won) + 1))
    assert won
    for _, err, code in outcomes:
        assert code == 0 or (code == 3 and err.startswith(b"handoff_conflict: "))
    assert numbers(world.data)["pd_handoff_revisions"] == len(won)


def test_without_a_choice_or_a_repository_nothing_is_handed_off(world: World) -> None:
    repo = world.repo()
    world.refused("no_current_workstream", 4, repo.path, "handoff")
    world.refused("not_a_repository", 4, world.root, "handoff")


def test_a_store_of_a_newer_version_is_left_alone(world: World) -> None:
    import sqlite3
    from contextlib import closing

    repo = world.bound()
    with closing(sqlite3.connect(world.data / "passdown.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999_from_tomorrow'")
    world.refused("schema_too_new", 5, repo.path, "handoff")


def test_a_file_that_is_no_store_is_never_written(world: World) -> None:
    repo = world.bound()
    (world.data / "passdown.db").write_bytes(b"my diary, not a database" * 100)
    world.refused("store_not_readable", 5, repo.path, "handoff")
    assert (world.data / "passdown.db").read_bytes() == b"my diary, not a database" * 100
