"""``continue``: history compared with this checkout; an order only where it still fits."""

from __future__ import annotations

import pytest
from cli_support import World
from git_support import Repo


@pytest.fixture
def repo(world: World) -> Repo:
    """Bound, with two commits and a next action handed off at the second."""
    repo = world.bound(commits=2)
    repo.write("draft.txt", "half done\n")
    world.ok(repo.path, "handoff", "--next", "Wire the retry queue")
    return repo


def answered(world: World, repo: Repo) -> dict[str, object]:
    found: dict[str, object] = world.ok(repo.path, "continue", "--json").json
    return found


def order(out: str) -> list[str]:
    """The lines of the section "Next action"."""
    lines = out.splitlines()
    start = lines.index("Next action") + 1
    stop = next(number for number in range(start, len(lines)) if not lines[number].startswith(" "))
    return lines[start:stop]


def test_the_first_line_says_history_and_not_an_order(world: World, repo: Repo) -> None:
    assert world.ok(repo.path, "continue").out.startswith("History, not an order: revision 1, stored ")


def test_an_aligned_checkout_shows_the_next_action_as_one(world: World, repo: Repo) -> None:
    out = world.ok(repo.path, "continue").out
    assert order(out)[0].startswith("  → Wire the retry queue [")
    assert "= aligned: HEAD is the cited commit" in out


def test_newer_commits_leave_it_usable_and_are_said(world: World, repo: Repo) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "Later")
    found = answered(world, repo)
    assert (found["workspace"]["relation"], found["next_action_usable"]) == ("ahead", True)  # type: ignore[index]


def test_a_checkout_behind_is_said(world: World, repo: Repo) -> None:
    repo.git("checkout", "-q", "--detach", "HEAD~1")
    assert answered(world, repo)["workspace"]["relation"] == "behind"  # type: ignore[index]


def test_a_diverged_checkout_never_shows_the_order_as_one(world: World, repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "other", "HEAD~1")
    repo.commit("Another way", {"other.txt": "x"})
    out = world.ok(repo.path, "continue").out
    assert "! diverged" in out
    assert order(out)[0].startswith("  not usable as it stands: this checkout has diverged from it")
    assert "→ Wire" not in out
    assert "(it said) Wire the retry queue" in out


def test_an_unrelated_history_is_diverged_and_a_usable_action_can_be_required(world: World, repo: Repo) -> None:
    repo.git("checkout", "-q", "--orphan", "alone")
    repo.commit("Alone")
    assert answered(world, repo)["workspace"]["relation"] == "diverged"  # type: ignore[index]
    world.refused("workspace_diverged", 3, repo.path, "continue", "--require-usable")


def test_a_clone_that_lacks_the_commit_cannot_decide_and_says_so(world: World, repo: Repo) -> None:
    first = repo.text("rev-parse", "HEAD~1")
    repo.git("clone", "-q", "--no-local", ".", "../clone")
    clone = Repo(world.root / "clone", create=False)
    clone.git("checkout", "-q", "--detach", first)
    clone.git("update-ref", "-d", "refs/heads/main")
    clone.git("update-ref", "-d", "refs/remotes/origin/main")
    clone.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD", ok=(0, 1))
    clone.git("reflog", "expire", "--expire=now", "--all")
    clone.git("gc", "-q", "--prune=now")
    world.ok(clone.path, "switch", "shop/main")
    out = world.ok(clone.path, "continue").out
    assert "? unknown: cannot be decided here" in out
    assert "→ Wire" not in out


def test_a_changed_file_is_named_and_a_committed_one_is_still_there(world: World, repo: Repo) -> None:
    repo.write("draft.txt", "half done, and more\n")
    assert "~ Uncommitted then, changed since: draft.txt" in world.ok(repo.path, "continue").out
    repo.write("draft.txt", "half done\n")
    repo.commit("Commit the draft")
    assert "= Uncommitted then, all 1 still there and unchanged" in world.ok(repo.path, "continue").out


def test_a_workstream_without_a_handoff_says_so(world: World) -> None:
    repo = world.bound()
    answer = world.ok(repo.path, "continue")
    assert answer.out.splitlines()[0] == "No handoff has been committed to this workstream yet."
    assert world.ok(repo.path, "continue", "--json").json["status"] == "empty"


def test_continue_writes_nothing(world: World, repo: Repo) -> None:
    before = world.everything()
    world.ok(repo.path, "continue")
    world.ok(repo.path, "continue", "--json", "--objective", "Something else")
    assert world.everything() == before


def test_a_different_objective_is_reported_and_not_adopted(world: World, repo: Repo) -> None:
    out = world.ok(repo.path, "continue", "--objective", "Something else").out
    assert "it was not adopted" in out
    assert "Something else" not in out


def test_exact_times_only_on_request(world: World, repo: Repo) -> None:
    recorded = str(answered(world, repo)["recorded_at"])
    assert recorded not in world.ok(repo.path, "continue").out
    assert recorded in world.ok(repo.path, "continue", "--verbose").out


def test_more_than_twelve_pieces_of_evidence_are_counted_and_shown_on_request(world: World) -> None:
    repo = world.bound(commits=10)
    for number in range(5):
        repo.write(f"note-{number}.txt", f"{number}\n")
    cites = [part for number in range(5) for part in ("--cite", f"note-{number}.txt")]
    world.ok(repo.path, "handoff", "--state", "All of it", *cites)
    assert "… 4 more with --verbose" in world.ok(repo.path, "continue").out
    assert "note-4.txt" in world.ok(repo.path, "continue", "--verbose").out


@pytest.mark.parametrize("flag", ["--require-usable", "--json"])
def test_unbound_checkouts_have_nothing_to_continue(world: World, flag: str) -> None:
    repo = world.repo()
    world.refused("no_current_workstream", 4, repo.path, "continue", flag)
    world.refused("not_a_repository", 4, world.root, "continue", flag)
