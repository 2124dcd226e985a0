"""One repository, two terminals: A hands off with uncommitted work, the world moves, B continues and sees how.

Whatever happened is made by git itself or by the file system; what B must see follows from that alone.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_support import World, numbers
from git_support import Repo

ORDER = "Wire the retry queue"


@pytest.fixture
def handed(world: World) -> Repo:
    """A repository of three commits and one file that is only on disk, handed off by A with a next action."""
    repo = world.bound(commits=3)
    repo.write("draft.txt", "half of it\n")
    world.ok(repo.path, "handoff", "--state", "Retries work", "--next", ORDER, PASSDOWN_AGENT="terminal-a")
    return repo


def seen(world: World, cwd: Path) -> tuple[str, dict[str, Any]]:
    """What B sees: the screen and the document."""
    screen = world.ok(cwd, "continue", PASSDOWN_AGENT="terminal-b").out
    document: dict[str, Any] = world.ok(cwd, "continue", "--json", PASSDOWN_AGENT="terminal-b").json
    assert screen.startswith("History, not an order: revision ")
    assert (f"→ {ORDER}" in screen) == document["next_action_usable"]
    return screen, document


def files(document: dict[str, Any]) -> dict[str, Any]:
    """What became of the uncommitted files."""
    found: dict[str, Any] = document["workspace"]["uncommitted"]
    return found


def reasons(document: dict[str, Any]) -> list[str]:
    found: list[str] = document["next_action_reasons"]
    return found


def test_nothing_changed(world: World, handed: Repo) -> None:
    screen, document = seen(world, handed.path)
    assert document["workspace"]["relation"] == "aligned"
    assert (files(document)["present"], files(document)["elsewhere"], reasons(document)) == (1, False, [])
    assert "by terminal-a (asserted)" in screen
    assert "= aligned: HEAD is the cited commit; uncommitted now: draft.txt" in screen
    assert "= Uncommitted then, all 1 still there and unchanged" in screen


def test_a_commit_ahead_leaves_the_order_usable(world: World, handed: Repo) -> None:
    handed.git("add", "draft.txt")
    handed.git("commit", "-q", "-m", "Finish the draft")
    screen, document = seen(world, handed.path)
    assert (document["workspace"]["relation"], document["workspace"]["dirty"]) == ("ahead", False)
    assert (files(document)["present"], reasons(document)) == (1, [])
    assert "ahead: HEAD has newer commits than the handoff cites" in screen


def test_a_reset_behind_is_said(world: World, handed: Repo) -> None:
    handed.git("reset", "-q", "--keep", "HEAD~2")
    screen, document = seen(world, handed.path)
    assert document["workspace"]["relation"] == "behind"
    assert "behind: HEAD lacks commits that the handoff cites" in screen


def test_a_rebase_takes_the_order_away(world: World, handed: Repo) -> None:
    base = handed.text("rev-parse", "HEAD~1")
    handed.git("checkout", "-q", "-b", "elsewhere", "HEAD~2")
    handed.git("commit", "-q", "--allow-empty", "-m", "A new base")
    handed.git("checkout", "-q", "-")
    handed.git("rebase", "-q", "elsewhere")
    assert handed.text("merge-base", base, "HEAD") != base
    screen, document = seen(world, handed.path)
    assert (document["workspace"]["relation"], reasons(document)) == ("diverged", ["diverged"])
    assert "not usable as it stands: this checkout has diverged from it" in screen
    assert f"(it said) {ORDER}" in screen


def test_a_lost_uncommitted_file_takes_the_order_away(world: World, handed: Repo) -> None:
    (handed.path / "draft.txt").unlink()
    screen, document = seen(world, handed.path)
    assert (files(document)["gone"], reasons(document)) == (["draft.txt"], ["uncommitted_files_gone"])
    assert "! Uncommitted then, GONE now: draft.txt" in screen


def test_a_deleted_evidence_source_takes_the_order_away(world: World, handed: Repo) -> None:
    """The store refuses to delete one; somebody who has the file can still take the guard away first."""
    with closing(sqlite3.connect(world.data / "passdown.db")) as connection:
        guards = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'pd_sources'")
        for (name,) in guards.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM pd_sources WHERE source_type = CAST('worktree' AS BLOB)")
        connection.commit()
    screen, document = seen(world, handed.path)
    assert "evidence_unavailable" in reasons(document)
    assert "NOT READABLE" in screen
    checks = {check["claim"]: check["status"] for check in document["evidence_checks"]}
    assert checks["next_action"] == "unavailable"


@pytest.fixture
def second(world: World, handed: Repo) -> Repo:
    """A second worktree of the same repository, at the same commit, on the same workstream."""
    path = world.root / "second"
    handed.git("worktree", "add", "-q", str(path))
    world.ok(path, "switch", "shop/main")
    return Repo(path, create=False)


def test_another_worktree_is_told_where_the_files_lie(world: World, handed: Repo, second: Repo) -> None:
    screen, document = seen(world, second.path)
    assert document["workspace"]["relation"] == "aligned"
    assert (files(document)["elsewhere"], files(document)["gone"]) == (True, ["draft.txt"])
    assert reasons(document) == ["uncommitted_files_elsewhere"]
    flat = " ".join(screen.split())
    assert f"! Written in another worktree, at {handed.path}; compared with what lies here:" in flat
    assert "! Uncommitted then, not in this worktree: draft.txt" in flat
    assert str(handed.path) not in json.dumps(document)  # a place stays on its machine


def test_files_that_were_carried_over_make_the_order_usable_there(world: World, handed: Repo, second: Repo) -> None:
    shutil.copy(handed.path / "draft.txt", second.path / "draft.txt")
    _, document = seen(world, second.path)
    assert (files(document)["present"], reasons(document)) == (1, [])


def test_work_in_a_worktree_that_is_gone_is_not_promised(world: World, handed: Repo, second: Repo) -> None:
    second.write("only-here.txt", "x\n")
    world.ok(second.path, "handoff", "--next", ORDER)
    handed.git("worktree", "remove", "--force", str(second.path))
    screen, document = seen(world, handed.path)
    assert reasons(document) == ["uncommitted_files_elsewhere"]
    assert "which is not in this repository any more" in " ".join(screen.split())
    assert "only-here.txt" in files(document)["gone"]


# --- complaints about tools of this kind ------------------------------------------------------------------------------


def test_a_vaguer_automatic_handoff_does_not_hide_what_was_said(world: World, handed: Repo) -> None:
    world.ok(handed.path, "handoff", "--blocked", "The key is missing", "--next", ORDER)
    handed.commit("Unrelated", {"x.txt": "x"})
    world.ok(handed.path, "handoff", PASSDOWN_AGENT="hook")
    _, document = seen(world, handed.path)
    content = document["content"]
    assert (content["disposition"], content["next_action"]["text"]) == ("blocked", ORDER)
    assert "The key is missing" in [item["text"] for item in content["state"]]
    assert document["selected_revision"]["revision"] == 3


def test_the_wrong_handoff_is_not_resumed(world: World, handed: Repo) -> None:
    """Another workstream is another handoff: what was not chosen here is never shown here."""
    world.ok(handed.path, "start", "Another line")
    assert "No handoff has been committed to this workstream yet." in world.ok(handed.path, "continue").out
    world.ok(handed.path, "switch", "main")
    assert f"→ {ORDER}" in world.ok(handed.path, "continue").out


def test_a_handoff_that_nobody_read_says_so_until_somebody_did(world: World, handed: Repo) -> None:
    assert "not acknowledged yet" in world.ok(handed.path, "handoff", "show").out
    world.ok(handed.path, "handoff", "ack", "--decline", "--reason", "Not mine", PASSDOWN_AGENT="terminal-b")
    shown = world.ok(handed.path, "handoff", "show").out
    assert "declined" in shown
    assert "terminal-b" in shown
    assert "Not mine" in shown


def test_a_commit_that_this_clone_lacks_is_said_with_what_to_do(world: World, handed: Repo) -> None:
    clone = world.root / "clone"
    handed.git("clone", "-q", "--no-local", str(handed.path), str(clone))
    later = handed.commit("Not in the clone", {"later.txt": "1"})
    world.ok(handed.path, "handoff", "--next", ORDER)
    project = world.ok(handed.path, "report", "projects", "--json").json[0]["project_key"]
    world.ok(clone, "init", "--project", project, "--workstream", "main")
    screen, document = seen(world, clone)
    workspace = document["workspace"]
    assert (workspace["relation"], workspace["unknown_because"]) == ("unknown", "commit_missing")
    assert "relation_unknown" in reasons(document)
    assert "git fetch" in screen
    assert later[:12] in screen


def test_a_commit_that_is_only_local_is_never_shown_as_pushed(world: World, handed: Repo) -> None:
    """The words say "pushed"; the evidence beside them says what git knew."""
    world.ok(handed.path, "handoff", "--state", "Everything is pushed", "--only-words")
    screen, document = seen(world, handed.path)
    assert "on no remote-tracking ref when read" in screen
    commits = [item for item in document["evidence"] if item["remote_refs"] is not None]
    assert [item["remote_refs"] for item in commits] == [[]] * len(commits)
    origin = world.root / "origin.git"
    handed.git("init", "-q", "--bare", str(origin))
    handed.git("remote", "add", "origin", str(origin))
    handed.git("push", "-q", "origin", "HEAD:main")
    handed.git("fetch", "-q", "origin")
    world.ok(handed.path, "handoff", "--state", "Now it is", "--only-words")
    assert "on origin/main" in seen(world, handed.path)[0]


def test_a_writer_that_died_before_handing_off_is_recovered(world: World, handed: Repo) -> None:
    handed.commit("Its last commit", {"last.txt": "1"})
    handed.write("unfinished.txt", "…")
    path = world.root / "recovered.json"
    world.ok(handed.path, "handoff", "recover", "--output", str(path))
    assert numbers(world.data)["pd_handoff_revisions"] == 1
    world.ok(handed.path, "handoff", "--from", str(path))
    screen, document = seen(world, handed.path)
    texts = [item["text"] for item in document["content"]["state"]]
    assert texts == ["Retries work", "Committed: Its last commit", "Uncommitted paths (1): unfinished.txt"]
    assert "whoever did this work did not write this handoff" in " ".join(screen.split())


def test_handing_off_and_continuing_leave_the_tree_as_git_sees_it(world: World, handed: Repo) -> None:
    before = handed.git("status", "--porcelain=v2", "--ignored", "-z")
    world.ok(handed.path, "handoff", "--state", "More words")
    world.ok(handed.path, "continue")
    world.ok(handed.path, "handoff", "recover")
    world.ok(handed.path, "handoff", "send", "--output", str(world.root / "sent.json"))
    assert handed.git("status", "--porcelain=v2", "--ignored", "-z") == before


def test_a_commit_whose_answer_was_lost_finds_its_revision_after_three_more(world: World, handed: Repo) -> None:
    """Another process sends the same prepared handoff again."""
    sent = world.ok(handed.path, "handoff", "send", "--state", "Sent once", "--only-words").out.encode()
    first = world.spawn(handed.path, "handoff", "receive", "-", "--commit", "--json", stdin=sent).json["committed"]
    for number in range(3):
        world.ok(handed.path, "handoff", "--state", f"Later {number}")
    again = world.spawn(handed.path, "handoff", "receive", "-", "--commit", "--json", stdin=sent).json["committed"]
    assert (again["handoff_ref"], again["replayed"]) == (first["handoff_ref"], True)
    assert again["handoff_ref"]["revision"] == 2
    assert numbers(world.data)["pd_handoff_revisions"] == 5
