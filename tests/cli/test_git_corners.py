"""Corners of git, from ``handoff`` to ``continue``: the relation is git's own, and what cannot be known says why.

Catches: an answer that is guessed where history is cut off, missing or of another kind, an order shown there, a fetch,
and a repository that is refused without a word about what to do.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_support import World
from git_support import Repo


def hand_off(world: World, repo: Repo, *words: str) -> Any:
    return world.ok(repo.path, "handoff", "--next", "Go on", *words, "--json").json["prepared"]["content"]


def answered(world: World, repo: Repo) -> Any:
    return world.ok(repo.path, "continue", "--json").json


def screen_text(world: World, repo: Repo) -> str:
    """The screen of ``continue`` in one line, so that a sentence is found wherever it was broken."""
    return " ".join(world.ok(repo.path, "continue").out.split())


def as_git_says(repo: Repo, cited: str) -> str:
    """The relation from two questions to git."""
    head = repo.text("rev-parse", "HEAD")
    if cited == head:
        return "aligned"
    if repo.text("rev-list", "--max-count=1", cited, f"^{head}") == "":
        return "ahead"
    return "behind" if repo.text("rev-list", "--max-count=1", head, f"^{cited}") == "" else "diverged"


def cloned(world: World, repo: Repo, *options: str, name: str = "clone") -> Repo:
    """A clone over the protocol, bound to the same workstream."""
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("clone", "-q", *options, f"file://{repo.path}", str(world.root / name))
    clone = Repo(world.root / name, create=False)
    world.ok(clone.path, "switch", "shop/main")
    return clone


def objects(repo: Repo) -> list[str]:
    found = repo.text("cat-file", "--batch-check", "--batch-all-objects", "--unordered")
    return sorted(found.split("\n"))


# --- kinds of repositories --------------------------------------------------------------------------------------------


def test_a_sha256_repository_is_handed_off_and_continued_by_its_own_ids(world: World) -> None:
    repo = Repo(world.root / "shop", object_format="sha256")
    oid = repo.commit("First", {"a.txt": "1"})
    assert len(oid) == 64
    world.ok(repo.path, "init")
    content = hand_off(world, repo)
    cited = [item["source_ref"]["source_id"] for item in content["next_action"]["citations"]]
    assert [name.split("@")[0] for name in cited] == [oid]
    assert answered(world, repo)["workspace"]["relation"] == as_git_says(repo, oid) == "aligned"
    head = repo.commit("Second")
    found = answered(world, repo)
    assert (found["workspace"]["head"], found["workspace"]["relation"]) == (head, as_git_says(repo, oid))
    assert found["next_action_usable"] is True
    other = world.repo("other")  # of the other kind of ids: no fetch could bring that commit
    world.ok(other.path, "switch", "shop/main")
    assert answered(world, other)["workspace"]["unknown_because"] == "commit_missing"


def test_two_worktrees_of_one_repository_are_compared_each_with_its_own_head_and_files(world: World) -> None:
    repo = world.bound()
    repo.write("draft.txt", "half done\n")
    cited = repo.text("rev-parse", "HEAD")
    hand_off(world, repo)
    repo.git("worktree", "add", "-q", "-b", "side", str(world.root / "linked"))
    linked = Repo(world.root / "linked", create=False)
    linked.commit("On the side", {"side.txt": "s"})
    linked.write("only-here.txt", "x")
    world.ok(linked.path, "switch", "shop/main")
    here, there = answered(world, repo)["workspace"], answered(world, linked)["workspace"]
    assert (here["relation"], here["changed_paths"]) == (as_git_says(repo, cited), ["draft.txt"])
    assert (there["relation"], there["changed_paths"]) == (as_git_says(linked, cited), ["only-here.txt"])
    assert (here["uncommitted"]["elsewhere"], here["uncommitted"]["present"]) == (False, 1)
    assert (there["uncommitted"]["elsewhere"], there["uncommitted"]["gone"]) == (True, ["draft.txt"])


def test_a_worktree_whose_git_directory_is_gone_says_how_to_mend_it(world: World) -> None:
    repo = world.bound()
    repo.git("worktree", "add", "-q", str(world.root / "linked"))
    linked = Repo(world.root / "linked", create=False)
    shutil.rmtree(repo.path / ".git" / "worktrees" / "linked")
    refused = world.refused("not_a_repository", 4, linked.path, "handoff")
    assert "git worktree repair" in refused.err
    hand_off(world, repo)
    assert answered(world, repo)["workspace"]["relation"] == "aligned"


def test_in_a_bare_repository_there_is_nothing_to_continue_and_the_way_on_is_said(world: World) -> None:
    repo = world.repo()
    repo.git("clone", "-q", "--bare", ".", str(world.root / "bare.git"))
    for command in (["handoff"], ["continue"], ["init", "--yes"]):
        assert "git worktree add" in world.refused("not_a_repository", 4, world.root / "bare.git", *command).err


def test_a_reftable_repository_is_refused_as_unsupported_with_the_way_on(world: World) -> None:
    repo = world.repo()
    (repo.path / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (repo.path / ".git" / "reftable").mkdir()
    with (repo.path / ".git" / "config").open("a") as config:
        config.write("[core]\n repositoryFormatVersion = 1\n[extensions]\n refStorage = reftable\n")
    for command in (["handoff"], ["continue"], ["init", "--yes"]):
        refused = world.refused("git_unsupported", 2, repo.path, *command)
        assert "does not support" in refused.err
        assert "feature reftable" in refused.err
        assert "git refs migrate --ref-format=files" in refused.err


def test_without_a_commit_a_handoff_cites_what_lies_there_and_there_is_nothing_to_compare(world: World) -> None:
    repo = Repo(world.root / "shop")
    world.ok(repo.path, "init")
    repo.write("a.txt", "1")
    hand_off(world, repo)
    workspace = answered(world, repo)["workspace"]
    assert (workspace["head"], workspace["relation"], workspace["unknown_because"]) == (
        None, "unknown", "no_commit_cited",
    )  # fmt: skip
    assert workspace["uncommitted"]["present"] == 1
    assert "cites no commit to compare HEAD with" in screen_text(world, repo)


def test_an_unborn_branch_cannot_be_compared_with_a_commit(world: World) -> None:
    hand_off(world, world.bound())
    empty = Repo(world.root / "empty")
    world.ok(empty.path, "switch", "shop/main")
    workspace = answered(world, empty)["workspace"]
    assert (workspace["relation"], workspace["unknown_because"]) == ("unknown", "no_head")
    text = screen_text(world, empty)
    assert "there is no commit here yet" in text
    assert "→ Go on" not in text


def test_a_detached_head_is_compared_like_any_other(world: World) -> None:
    repo = world.bound(commits=3)
    repo.git("checkout", "-q", "--detach", "HEAD~1")
    cited = repo.text("rev-parse", "HEAD")
    hand_off(world, repo)
    for name in (cited, f"{cited}~1", "main"):
        repo.git("checkout", "-q", "--detach", name)
        workspace = answered(world, repo)["workspace"]
        assert (workspace["head"], workspace["relation"]) == (
            repo.text("rev-parse", "HEAD"), as_git_says(repo, cited),
        )  # fmt: skip
    repo.git("checkout", "-q", "--detach", f"{cited}~1")
    assert answered(world, repo)["workspace"]["relation"] == "behind"


# --- histories that are not whole -------------------------------------------------------------------------------------


def test_a_shallow_clone_decides_where_it_can_and_else_says_how_to_get_the_rest(world: World) -> None:
    repo = world.bound(commits=2)
    cited = repo.text("rev-parse", "HEAD")
    hand_off(world, repo)
    repo.commit("Third")
    repo.commit("Fourth")
    deep = cloned(world, repo, "--depth", "3", name="deep")
    assert answered(world, deep)["workspace"]["relation"] == as_git_says(repo, cited) == "ahead"
    flat = cloned(world, repo, "--depth", "2", name="flat")
    found = answered(world, flat)
    assert (found["workspace"]["relation"], found["workspace"]["unknown_because"]) == ("unknown", "shallow")
    assert found["next_action_reasons"] == ["relation_unknown"]
    assert "`git fetch --unshallow`" in screen_text(world, flat)
    flat.git("fetch", "-q", "--unshallow")
    workspace = answered(world, flat)["workspace"]
    assert (workspace["relation"], workspace["unknown_because"]) == (as_git_says(flat, cited), None)


def test_a_clone_that_lacks_the_commit_says_that_a_fetch_may_bring_it_and_then_knows(world: World) -> None:
    repo = world.bound()
    clone = cloned(world, repo)
    cited = repo.commit("Not pushed yet")
    hand_off(world, repo)
    workspace = answered(world, clone)["workspace"]
    assert (workspace["relation"], workspace["unknown_because"]) == ("unknown", "commit_missing")
    assert "`git fetch` may bring it" in screen_text(world, clone)
    clone.git("fetch", "-q")
    assert answered(world, clone)["workspace"]["relation"] == as_git_says(clone, cited) == "behind"


@pytest.mark.parametrize("kind", ["blob:none", "tree:0"])
def test_in_a_partial_clone_all_is_told_and_nothing_is_fetched(world: World, kind: str) -> None:
    repo = world.bound(commits=3)
    repo.commit("Change", {"file-1.txt": "other\n"})
    hand_off(world, repo)
    clone = cloned(world, repo, f"--filter={kind}")
    before = objects(clone)
    marker = world.root / "fetched"
    clone.git("config", "remote.origin.uploadpack", f"touch {marker} && git-upload-pack")
    assert answered(world, clone)["workspace"]["relation"] == "aligned"
    clone.commit("Here", {"here.txt": "here\n"})
    here = objects(clone)
    hand_off(world, clone)
    assert answered(world, clone)["workspace"]["relation"] == "aligned"
    assert not marker.exists()
    assert set(before) < set(here)
    assert objects(clone) == here
    clone.git("cat-file", "-p", "HEAD~2:file-1.txt")  # git itself would fetch, so the trap is live
    assert marker.exists()


def test_a_partial_clone_without_the_tree_of_head_says_so(world: World) -> None:
    repo = world.bound()
    hand_off(world, repo)
    clone = cloned(world, repo, "--filter=tree:0", "--no-checkout")
    refused = world.refused("git_failed", 5, clone.path, "continue")
    assert "rule content_not_fetched" in refused.err
    assert "Passdown fetches nothing" in refused.err
    clone.git("checkout", "-q", "main")
    assert answered(world, clone)["workspace"]["relation"] == "aligned"


def loose(repo: Repo, name: str) -> Path:
    oid = repo.text("rev-parse", name)
    return repo.path / ".git" / "objects" / oid[:2] / oid[2:]


@pytest.mark.parametrize("damage", [b"", b"not an object"])
@pytest.mark.parametrize("name", ["HEAD", "HEAD^{tree}"])
def test_a_damaged_object_is_an_error_that_names_git_fsck_and_nothing_is_stored(
    world: World, name: str, damage: bytes
) -> None:
    repo = world.bound()
    hand_off(world, repo)
    path = loose(repo, name)
    path.chmod(0o644)
    path.write_bytes(damage)
    before = world.everything()
    for command in (["handoff", "--state", "More"], ["continue"]):
        assert "git fsck" in world.refused("git_failed", 5, repo.path, *command).err
    assert world.everything() == before


def test_a_damaged_commit_between_head_and_the_cited_one_is_a_missing_commit(world: World) -> None:
    repo = world.bound()
    hand_off(world, repo)
    repo.commit("Between")
    repo.commit("Now")
    loose(repo, "HEAD~1").unlink()
    found = answered(world, repo)
    assert (found["workspace"]["relation"], found["workspace"]["unknown_because"]) == ("unknown", "commit_missing")
    assert found["next_action_usable"] is False
