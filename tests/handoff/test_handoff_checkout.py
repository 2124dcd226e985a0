"""The live checkout: real repositories, read by the host, compared by content and ancestry."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from git_support import Repo
from handoff_support import HOST, SCOPE, Desk, cite, hostile_cases, say, sha256, stored

from passdown.app.resuming import recorded_worktree
from passdown.handoff.host import Checkout, commit_descriptor, worktree_descriptor
from passdown.handoff.models import HandoffContent
from passdown.handoff.relation import combine, deciding_commits
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import dump, validate

MakeRepo = Callable[..., Repo]


@contextmanager
def checkout(repo: Repo) -> Iterator[Checkout]:
    with repo.reader() as git:
        yield Checkout(git)


def read_commit(desk: Desk, repo: Repo, name: str = "HEAD") -> Any:
    with checkout(repo) as here:
        facts = here.commit(name)
    found = desk.call("capture_source", scope_id=SCOPE, source_type="git_commit", descriptor=facts)
    return cite(found["source"]["source_ref"])


def read_worktree(desk: Desk, repo: Repo) -> Any:
    with checkout(repo) as here:
        facts = worktree_descriptor(here.git.status())
    found = desk.call("capture_source", scope_id=SCOPE, source_type="worktree", descriptor=facts)
    return cite(found["source"]["source_ref"])


def compared(desk: Desk, repo: Repo) -> Any:
    """What Continue answers for this checkout."""
    value = desk.latest()["content"]
    recorded = recorded_worktree(desk.application.caller(HOST), SCOPE, validate(HandoffContent, value))
    with checkout(repo) as here:
        workspace = dump(here.workspace(value, recorded))
    return desk.latest(workspace=workspace)


# --- what is read -----------------------------------------------------------------------------------------------------


def test_a_commit_is_captured_as_git_itself_shows_it(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("First", {"a.txt": "1\n2\n", "b.bin": b"\0\1"})
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    oid = repo.commit("Fix the tail — 尾\n\nBody text", {"a.txt": "1\n", "c d.txt": "x\n"})
    ref = read_commit(desk, repo)["source_ref"]
    source = desk.call("get_source", scope_id=SCOPE, source_ref=ref)["source"]
    facts = source["descriptor"]
    shown = repo.text("log", "-1", "--format=%H%n%P%n%an%n%at%n%cn%n%ct%n%s").split("\n")
    assert [facts["oid"], " ".join(facts["parents"])] == shown[:2]
    assert [facts["author"]["name"], str(facts["author"]["time"])] == shown[2:4]
    assert [facts["committer"]["name"], str(facts["committer"]["time"])] == shown[4:6]
    assert facts["subject"] == shown[6]
    assert facts["subject_chars"] == len(shown[6])
    assert facts["author"]["offset_minutes"] == 330
    numstat = repo.text("show", "--numstat", "--format=", oid).split("\n")
    assert [f"{item['added']}\t{item['deleted']}\t{item['path']}" for item in facts["paths"]] == numstat
    assert facts["paths_total"] == 2
    assert facts["remote_refs"] == []
    assert "@example.com" not in str(source)
    assert "Body text" not in str(source)
    first = desk.call("get_source", scope_id=SCOPE, source_ref=read_commit(desk, repo, "HEAD~1")["source_ref"])
    assert first["source"]["descriptor"]["remote_refs"] == ["origin/main"]
    assert [item for item in first["source"]["descriptor"]["paths"] if item["path"] == "b.bin"] == [
        {"path": "b.bin", "added": None, "deleted": None}
    ]


def test_a_commit_captured_before_and_after_a_push_is_two_sources(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    oid = repo.commit("First", {"a.txt": "1"})
    before = read_commit(desk, repo)["source_ref"]["source_id"]
    assert read_commit(desk, repo)["source_ref"]["source_id"] == before
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    after = read_commit(desk, repo)["source_ref"]["source_id"]
    assert before != after
    assert before.startswith(f"{oid}@")
    assert after.startswith(f"{oid}@")


@pytest.mark.parametrize("name", ["1f" * 20, "HEAD~9", "no-such-branch", "--all", "", "HEAD\nHEAD", ":/First"])
def test_an_invented_commit_has_nothing_to_read(make_repo: MakeRepo, name: str) -> None:
    """Catches an id that becomes evidence without an object behind it."""
    repo = make_repo()
    repo.commit("First", {"a.txt": "1"})
    with checkout(repo) as here, pytest.raises(PassdownError) as caught:
        here.commit(name)
    assert caught.value.code == "git_object_not_found"


def test_a_file_is_captured_by_path_digest_and_commit(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    oid = repo.commit("First", {"src/a b.txt": "one\n"})
    repo.write("src/a b.txt", "two\n")
    with checkout(repo) as here:
        facts = here.file("src/a b.txt")
        for missing in ("src/none.txt", "../outside", "src", ".git/config"):
            with pytest.raises(PassdownError) as caught:
                here.file(missing)
            assert caught.value.code == "git_file_not_found"
    assert facts == {"path": "src/a b.txt", "sha256": sha256(b"two\n"), "size": 4, "commit": oid}
    found = desk.call("capture_source", scope_id=SCOPE, source_type="file", descriptor=facts)["source"]
    assert found["source_ref"]["source_id"] == "src/a b.txt@" + sha256(b"two\n")


def test_a_worktree_is_captured_with_every_changed_path_and_no_content(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    oid = repo.commit("First", {"kept.txt": "k", "changed.txt": "1", "deleted.txt": "d", "unindexed.txt": "u"})
    repo.write("changed.txt", "secret-2")
    repo.write("new/untracked.txt", "secret-3")
    os.unlink(repo.path / "deleted.txt")
    repo.git("rm", "-q", "--cached", "unindexed.txt")
    ref = read_worktree(desk, repo)["source_ref"]
    source = desk.call("get_source", scope_id=SCOPE, source_ref=ref)["source"]
    facts = source["descriptor"]
    assert (facts["head"], facts["omitted_paths"], facts["omitted_bytes"]) == (oid, 0, 0)
    found = {item["path"]: (item["status"], item["sha256"]) for item in facts["entries"]}
    assert found == {
        "changed.txt": ("modified", sha256(b"secret-2")),
        "deleted.txt": ("deleted", None),
        "unindexed.txt": ("deleted", sha256(b"u")),
        "new/untracked.txt": ("untracked", sha256(b"secret-3")),
    }
    assert "secret" not in str(source)


def test_what_does_not_fit_a_descriptor_is_counted(make_repo: MakeRepo) -> None:
    """Catches a descriptor that is larger than a source may be, and a list that is cut without a number."""
    repo = make_repo()
    repo.commit("First", {"a.txt": "1"})
    name = "日" * 60
    repo.commit("Many", {f"{name}/{name}/{name}/{name}/{number:04}": str(number) for number in range(600)})
    with checkout(repo) as here:
        commit = here.git.commit("HEAD")
    refs = ["r" * 1_000] * 200
    facts = commit_descriptor(commit, refs)
    assert facts["paths_total"] == 600
    assert 0 < len(facts["paths"]) < 500
    assert [item["path"] for item in facts["paths"]] == [item.path for item in commit.paths[: len(facts["paths"])]]
    assert 0 < len(facts["remote_refs"]) <= 100
    assert facts["remote_refs_total"] == 200
    repo.git("reset", "-q", "--soft", "HEAD~1")
    with checkout(repo) as here:
        worktree = worktree_descriptor(here.git.status())
    assert 0 < len(worktree["entries"]) < 600
    assert worktree["omitted_paths"] == 600 - len(worktree["entries"])


@pytest.mark.parametrize(("parents", "refs"), [(256, 100), (257, 101)])
def test_parents_and_remote_refs_past_their_limits_are_counted(
    desk: Desk, make_repo: MakeRepo, parents: int, refs: int
) -> None:
    """Catches a list that is cut without a number, and a count that changes the identity of what was never cut."""
    repo = make_repo()
    tree = repo.text("rev-parse", f"{repo.commit('First', {'a.txt': '1'})}^{{tree}}")
    found = [repo.text("commit-tree", tree, "-m", str(number)) for number in range(parents)]
    many = repo.text("commit-tree", tree, "-m", "Many", *(part for oid in found for part in ("-p", oid)))
    repo.git("update-ref", "refs/heads/main", many)
    for number in range(refs):
        repo.git("update-ref", f"refs/remotes/origin/b{number:03}", many)
    ref = read_commit(desk, repo)["source_ref"]
    facts = desk.call("get_source", scope_id=SCOPE, source_ref=ref)["source"]["descriptor"]
    assert facts["parents"] == repo.text("log", "-1", "--format=%P").split()[:256]
    assert facts["remote_refs"] == [f"origin/b{number:03}" for number in range(min(refs, 100))]
    counts = {name: facts[name] for name in ("parents_total", "remote_refs_total") if name in facts}
    assert counts == ({} if refs == 100 else {"parents_total": 257, "remote_refs_total": 101})


def test_the_largest_descriptors_fit_into_a_source(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("First", {"a.txt": "1"})
    name = "\x01" * 200
    repo.commit("\x01" * 2_000, {f"{name}/{name}/{name}/{number:04}": str(number) for number in range(600)})
    with checkout(repo) as here:
        facts = commit_descriptor(here.git.commit("HEAD"), ["r" * 1_000] * 200)
        found = desk.call("capture_source", scope_id=SCOPE, source_type="git_commit", descriptor=facts)
    assert 262_144 - 8_192 < found["source"]["size"] <= 262_144
    assert facts["subject_chars"] == 2_000


# --- the relation -----------------------------------------------------------------------------------------------------


def ancestry(repo: Repo, cited: str, head: str) -> str:
    """The relation by git's own answer, asked one pair at a time."""
    if cited == head:
        return "aligned"
    if _is_ancestor(repo, cited, head):
        return "ahead"
    return "behind" if _is_ancestor(repo, head, cited) else "diverged"


def _is_ancestor(repo: Repo, one: str, other: str) -> bool:
    return repo.text("rev-list", "--max-count=1", one, f"^{other}") == ""


def test_the_relation_is_the_one_that_git_shows(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    one = repo.commit("One", {"a.txt": "1"})
    two = repo.commit("Two", {"a.txt": "2"})
    repo.git("checkout", "-q", "-b", "side", one)
    side = repo.commit("Side", {"b.txt": "1"})
    repo.git("checkout", "-q", "--orphan", "root")
    root = repo.commit("Root", {"c.txt": "1"})
    repo.git("checkout", "-q", "side")
    for cited in (one, two, side, root):
        citation = read_commit(desk, repo, cited)
        desk.commit(state=[say("It stands.", citation)], next_action=say("Go on.", citation), objective=cited)
        for branch in ("main", "side", "root", one):
            repo.git("checkout", "-q", branch)
            answer = compared(desk, repo)
            head = repo.text("rev-parse", "HEAD")
            expected = ancestry(repo, cited, head)
            assert (answer["workspace"]["relation"], answer["workspace"]["head"]) == (expected, head)
            assert answer["next_action_usable"] is (expected != "diverged")


def test_branch_names_take_no_part(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    desk.commit(state=[say("It stands.", read_commit(desk, repo))])
    repo.git("branch", "-q", "-m", "main", "renamed")
    assert compared(desk, repo)["workspace"]["relation"] == "aligned"
    repo.git("checkout", "-q", "--detach")
    assert compared(desk, repo)["workspace"]["relation"] == "aligned"


def test_an_aligned_checkout_with_changes_is_dirty_and_names_them(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    desk.commit(state=[say("It stands.", read_commit(desk, repo))])
    assert compared(desk, repo)["workspace"] == {
        "head": repo.text("rev-parse", "HEAD"),
        "dirty": False,
        "relation": "aligned",
        "changed_paths": [],
        "uncommitted": None,
        "unknown_because": None,
        "remarks": [],
        "notes": [],
    }
    repo.write("a.txt", "2")
    repo.write("neu.txt", "x")
    found = compared(desk, repo)["workspace"]
    assert (found["relation"], found["dirty"], found["changed_paths"]) == ("aligned", True, ["a.txt", "neu.txt"])


def test_the_commits_of_the_next_action_decide_before_those_of_the_state(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    old = read_commit(desk, repo)
    repo.commit("Two", {"a.txt": "2"})
    new = read_commit(desk, repo)
    desk.commit(state=[say("It stands.", old)], next_action=say("Go on.", new))
    assert compared(desk, repo)["workspace"]["relation"] == "aligned"
    desk.commit(state=[say("It stands.", new)], next_action=say("Go on.", old))
    assert compared(desk, repo)["workspace"]["relation"] == "ahead"
    desk.commit(state=[say("It stands.", new)], next_action=say("Go on.", desk.note()))
    assert compared(desk, repo)["workspace"]["relation"] == "aligned"


def test_without_a_cited_commit_or_without_its_object_the_relation_is_unknown(desk: Desk, make_repo: MakeRepo) -> None:
    """Catches an object that is missing taken for a history that went elsewhere, or for agreement."""
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    desk.commit(state=[say("It stands.", desk.note())])
    assert compared(desk, repo)["workspace"]["relation"] == "unknown"
    missing = desk.commit_fact("1f" * 20)
    desk.commit(state=[say("It stands.", missing)], next_action=say("Go on.", missing))
    answer = compared(desk, repo)
    assert answer["workspace"]["relation"] == "unknown"
    assert answer["next_action_reasons"] == ["relation_unknown"]
    empty = make_repo("unborn")
    assert compared(desk, empty)["workspace"]["head"] is None
    assert compared(desk, empty)["workspace"]["relation"] == "unknown"


def test_a_shallow_clone_that_cannot_decide_says_so(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    old = read_commit(desk, repo)
    repo.commit("Two", {"a.txt": "2"})
    repo.commit("Three", {"a.txt": "3"})
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(repo.path.parent / "shallow"))
    desk.commit(state=[say("It stands.", old)])
    shallow = make_repo("shallow", create=False)
    assert compared(desk, repo)["workspace"]["relation"] == "ahead"
    assert compared(desk, shallow)["workspace"]["relation"] == "unknown"


@pytest.mark.parametrize(
    ("words", "relation", "cause"),
    [
        ([], "unknown", "no_commit_cited"),
        (["same"], "aligned", None),
        (["ahead"], "ahead", None),
        (["same", "ahead"], "aligned", None),
        (["ahead", "behind"], "behind", None),
        (["same", "behind"], "behind", None),
        (["no_head", "no_head"], "unknown", "no_head"),
        (["same", "shallow"], "unknown", "shallow"),
        (["behind", "commit_missing"], "unknown", "commit_missing"),
        (["shallow", "commit_missing"], "unknown", "commit_missing"),
        (["same", "commit_missing", "diverged"], "diverged", None),
    ],
)
def test_of_several_cited_commits_the_most_careful_answer_wins(
    words: list[Any], relation: str, cause: str | None
) -> None:
    assert combine(words) == (relation, cause)
    assert combine(words[::-1]) == (relation, cause)


@pytest.mark.parametrize("source_id", ["x", "1f" * 19 + "@x", "1F" * 20 + "@x", "", f"note {'1f' * 20}@x"])
def test_a_citation_whose_id_is_no_commit_decides_nothing(source_id: str) -> None:
    value = {"next_action": None, "state": [say("x", cite({"source_type": "git_commit", "source_id": source_id}))]}
    assert deciding_commits(value) == []


# --- what became of uncommitted files ---------------------------------------------------------------------------------


@pytest.fixture
def dirty(make_repo: MakeRepo) -> Repo:
    repo = make_repo()
    repo.commit("One", {"tracked.txt": "1", "deleted.txt": "d", "unindexed.txt": "u"})
    repo.write("tracked.txt", "2")
    repo.write("new.txt", "n")
    repo.write("other.txt", "o")
    os.unlink(repo.path / "deleted.txt")
    repo.git("rm", "-q", "--cached", "unindexed.txt")
    return repo


def became(**members: Any) -> dict[str, Any]:
    """What is told of uncommitted files, where nothing else is said."""
    nothing = {"present": 0, "changed": [], "gone": [], "not_recorded": 0, "elsewhere": False, "remarks": []}
    return nothing | members


def hand_off_dirty(desk: Desk, repo: Repo) -> None:
    head, worktree = read_commit(desk, repo), read_worktree(desk, repo)
    desk.commit(state=[say("It stands.", head, worktree)], next_action=say("Go on.", head))


def test_uncommitted_files_that_are_still_there_are_counted(desk: Desk, dirty: Repo) -> None:
    """Catches a file that was only taken out of the index and is called changed although nothing happened."""
    hand_off_dirty(desk, dirty)
    answer = compared(desk, dirty)
    assert answer["workspace"]["uncommitted"] == became(present=5)
    assert answer["next_action_usable"] is True


def test_a_deleted_uncommitted_file_is_named_before_anything_is_done(desk: Desk, dirty: Repo) -> None:
    hand_off_dirty(desk, dirty)
    os.unlink(dirty.path / "new.txt")
    os.unlink(dirty.path / "unindexed.txt")
    dirty.write("other.txt", "changed")
    dirty.write("deleted.txt", "back again")
    answer = compared(desk, dirty)
    assert answer["workspace"]["uncommitted"] == became(
        present=1, changed=["deleted.txt", "other.txt"], gone=["unindexed.txt", "new.txt"]
    )
    assert answer["next_action_reasons"] == ["uncommitted_files_gone"]


def test_a_file_that_was_committed_since_is_still_there(desk: Desk, dirty: Repo) -> None:
    """Catches a comparison with ``git status``, for which a committed file is no longer a change."""
    hand_off_dirty(desk, dirty)
    dirty.commit("Two")
    answer = compared(desk, dirty)
    assert (answer["workspace"]["relation"], answer["workspace"]["dirty"]) == ("ahead", False)
    assert answer["workspace"]["uncommitted"] == became(present=5)


def test_a_discarded_change_is_a_changed_file(desk: Desk, dirty: Repo) -> None:
    hand_off_dirty(desk, dirty)
    dirty.git("checkout", "-q", "HEAD", "--", "tracked.txt")
    assert compared(desk, dirty)["workspace"]["uncommitted"]["changed"] == ["tracked.txt"]


def test_a_repository_inside_is_there_until_its_folder_goes(desk: Desk, make_repo: MakeRepo) -> None:
    """Catches a nested repository, which has no bytes of its own, taken for a lost file."""
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    inner = make_repo("repo/inner")
    inner.commit("Inner", {"b.txt": "1"})
    hand_off_dirty(desk, repo)
    assert compared(desk, repo)["workspace"]["uncommitted"] == became(not_recorded=1)
    os.rename(repo.path / "inner", repo.path.parent / "moved")
    assert compared(desk, repo)["workspace"]["uncommitted"]["gone"] == ["inner/"]


def test_without_a_worktree_source_nothing_is_said_of_uncommitted_files(desk: Desk, dirty: Repo) -> None:
    desk.commit(state=[say("It stands.", read_commit(desk, dirty))])
    assert compared(desk, dirty)["workspace"]["uncommitted"] is None


def test_files_with_hostile_names_are_found_again(desk: Desk, make_repo: MakeRepo) -> None:
    """Catches a name that is written down in another form than the one by which it is looked up."""
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    names = [text for _, text in hostile_cases() if "/" not in text and "\0" not in text and text.strip(". ")]
    names = sorted({name for name in names if len(name.encode()) <= 255})
    names += ["nfd e\u0301", "tab\tname", "line\r\nend", 'quote"d', "back\\slash", "-n", "trailing "]
    for number, name in enumerate(names):
        repo.write(name, str(number))
    repo.write(b"bytes-\xff\xfe", b"raw")
    hand_off_dirty(desk, repo)
    answer = compared(desk, repo)
    count = len(set(names)) + 1
    assert answer["workspace"]["uncommitted"] == became(present=count)
    for name in names:
        os.unlink(repo.path / name)
    found = compared(desk, repo)["workspace"]["uncommitted"]
    assert len(found["gone"]) == len(set(names))
    assert stored("nfd e\u0301") in found["gone"]


def test_subjects_and_names_of_real_commits_are_kept(desk: Desk, make_repo: MakeRepo) -> None:
    """Every hostile text as the message of a real commit: what is stored is git's own subject in NFC."""
    repo = make_repo()
    cases = [(name, text.replace("\0", "")) for name, text in hostile_cases()]
    for _, text in cases:
        repo.commit(text)
    log = repo.git("log", "-z", "--format=%H%x00%s", "--encoding=UTF-8").split(b"\0")
    expected = {log[at].decode(): log[at + 1].decode("utf-8", "replace") for at in range(0, len(log) - 1, 2)}
    with checkout(repo) as here:
        facts = here.commits(here.git.commits(100))
    assert {item["oid"] for item in facts} == set(expected)
    for item in facts:
        found = desk.call("capture_source", scope_id=SCOPE, source_type="git_commit", descriptor=item)
        subject = found["source"]["descriptor"]["subject"]
        assert subject == stored(expected[item["oid"]])[:1_000]
        assert item["subject_chars"] == len(stored(expected[item["oid"]]))
