"""Ancestry. Catches: a diverged checkout called aligned, or the other way round, also where commit times lie."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from git_support import START, Repo

from passdown.git.ancestry import certainly_diverged
from passdown.kernel.errors import PassdownError

MakeRepo = Callable[..., Repo]


def expected(repo: Repo, cited: str, head: str) -> str:
    """The relation as plain git proves it."""
    if cited == head:
        return "same"
    base = repo.git("merge-base", cited, head, ok=(0, 1)).decode().strip()
    return {cited: "ahead", head: "behind"}.get(base, "diverged")


def random_history(repo: Repo, seed: int, size: int) -> list[str]:
    """A random graph of commits with random, often impossible times; some commits have no parents."""
    chance = random.Random(seed)
    stream = []
    for number in range(size):
        earlier = list(range(max(0, number - 6), number))
        parents = chance.sample(earlier, min(len(earlier), chance.choice([0, 1, 1, 1, 1, 2, 2, 3])))
        when = chance.choice([START + number, START - number * 1000, 0, 4_000_000_000, START])
        stream.append(f"commit refs/heads/c{number}\nmark :{number + 1}\ncommitter C <c@d> {when} +0000\ndata 1\nm\n")
        for at, parent in enumerate(parents):
            stream.append(f"{'merge' if at else 'from'} :{parent + 1}\n")
        stream.append(f"M 100644 inline f\ndata {len(str(number))}\n{number}\n\n")
    repo.import_history("".join(stream))
    return [repo.text("rev-parse", f"c{number}") for number in range(size)]


def ancestors(repo: Repo) -> dict[str, set[str]]:
    """Each commit's ancestors and itself, from the parents that the objects name: no walk of git's has a part in it."""
    parents: dict[str, list[str]] = {}
    for line in repo.text("log", "--all", "--format=%H %P").split("\n"):
        oid, *rest = line.split()
        parents[oid] = rest
    closed: dict[str, set[str]] = {}

    def close(oid: str) -> set[str]:
        if oid not in closed:
            closed[oid] = {oid}.union(*(close(parent) for parent in parents[oid]))
        return closed[oid]

    for oid in parents:
        close(oid)
    return closed


@pytest.mark.parametrize("seed", range(4))
def test_relations_and_remote_refs_are_right_in_random_histories_with_impossible_times(repo: Repo, seed: int) -> None:
    oids = random_history(repo, seed, 24)
    above = ancestors(repo)
    for number in range(0, 24, 3):
        repo.git("update-ref", f"refs/remotes/r/c{number}", oids[number])
    with repo.reader() as git:
        for head in oids[::4]:
            wanted = {
                oid: "same" if oid == head else "ahead" if oid in above[head] else "behind" if head in above[oid] else
                "diverged" for oid in oids
            }  # fmt: skip
            assert git.relations(oids, head) == wanted
        tips = {f"r/c{number}": oids[number] for number in range(0, 24, 3)}
        for asked in (oids, oids[-2:], oids[:1]):
            assert git.remote_refs(asked) == {
                oid: tuple(sorted(name for name, tip in tips.items() if oid in above[tip])) for oid in asked
            }


def test_same_ahead_behind_and_diverged_are_told_apart(repo: Repo) -> None:
    base = repo.commit("base")
    one = repo.commit("one", {"a": "1"})
    repo.git("checkout", "-q", "-b", "other", base)
    two = repo.commit("two", {"b": "1"})
    with repo.reader() as git:
        assert git.relation(one, one) == "same"
        assert git.relation(base, one) == "ahead"
        assert git.relation(one, base) == "behind"
        assert git.relation(one, two) == git.relation(two, one) == "diverged"
        for cited in (base, one, two):
            assert git.relation(cited, two) == expected(repo, cited, two)


def test_an_ancestor_from_the_future_under_a_line_of_commits_from_the_past_is_found(repo: Repo) -> None:
    """Git's own listing gives up too early here, which is the reason for the second look at the graph."""
    times = [100, 4_000_000_000, *range(40)]
    repo.import_history(
        "".join(
            f"commit refs/heads/main\nmark :{number}\ncommitter C <c@d> {time} +0000\ndata 1\nm\n"
            for number, time in enumerate(times, 1)
        )
        + "commit refs/heads/side\ncommitter C <c@d> 50 +0000\ndata 1\ns\nfrom :42\n"
    )
    head = repo.text("rev-parse", "main")
    future, side = repo.text("rev-parse", "main~40"), repo.text("rev-parse", "side")
    assert future in repo.text("rev-list", future, f"^{head}").split()  # git is wrong here
    repo.git("merge-base", "--is-ancestor", future, head)
    repo.git("update-ref", "refs/remotes/origin/main", head)
    with repo.reader() as git:
        assert git.relations([future, side], head) == {future: "ahead", side: "behind"}
        assert git.relations([head], future) == {head: "behind"}
        assert git.remote_refs([future, side]) == {future: ("origin/main",), side: ()}


def test_unrelated_histories_are_diverged(repo: Repo) -> None:
    one = repo.commit("one", {"a": "1"})
    repo.git("checkout", "-q", "--orphan", "island")
    two = repo.commit("two")
    assert repo.git("merge-base", one, two, ok=(1,)) == b""
    with repo.reader() as git:
        assert git.relation(one, two) == "diverged"


def test_what_cannot_be_known_says_why(repo: Repo) -> None:
    oid = repo.commit("one", {"a": "1"})
    repo.git("tag", "-a", "-m", "t", "v1")
    tag, blob = repo.text("rev-parse", "v1"), repo.text("rev-parse", "HEAD:a")
    with repo.reader() as git:
        odd = ["f" * 40, "f" * 64, oid[:12], oid.upper(), "main", "HEAD", "", "-x", "a\nb", tag, blob]
        assert git.relations(odd, oid) == dict.fromkeys(odd, "commit_missing")
        assert git.relations([oid], None) == {oid: "no_head"}
        assert git.relations([oid], "f" * 40) == {oid: "commit_missing"}
        assert git.relations([oid], "main") == {oid: "commit_missing"}
        assert git.relations([], oid) == {}


def test_a_branch_that_is_named_like_a_commit_takes_no_part(repo: Repo) -> None:
    first, second = repo.commit("1"), repo.commit("2")
    repo.git("update-ref", f"refs/heads/{first}", second)
    with repo.reader() as git:
        assert git.relation(first, second) == "ahead"


def test_a_hole_in_the_history_is_a_missing_commit(repo: Repo) -> None:
    first, middle, last = repo.commit("1"), repo.commit("2"), repo.commit("3")
    (repo.path / ".git" / "objects" / middle[:2] / middle[2:]).unlink()
    with repo.reader() as git:
        assert git.relations([first, middle, last], last) == {
            first: "commit_missing", middle: "commit_missing", last: "same",
        }  # fmt: skip


def test_a_shallow_clone_never_says_more_than_it_can_prove(repo: Repo, tmp_path: Path) -> None:
    oids = [repo.commit(str(number)) for number in range(8)]
    repo.git("checkout", "-q", "-b", "near", oids[6])
    near = repo.commit("near")
    repo.git("checkout", "-q", "-b", "far", oids[1])
    far = repo.commit("far")
    repo.git("checkout", "-q", "main")
    url = f"file://{repo.path}"
    repo.git("clone", "-q", "--depth", "3", "--no-single-branch", url, str(tmp_path / "shallow"))
    shallow = Repo(tmp_path / "shallow", create=False)
    with shallow.reader() as git, repo.reader() as full:
        assert git.is_shallow
        assert not full.is_shallow
        head = oids[7]
        told = git.relations([*oids, near, far], head)
        truth = full.relations([*oids, near, far], head)
        assert truth == {oid: expected(repo, oid, head) for oid in truth}
        assert told == {
            **dict.fromkeys(oids[:5], "shallow"),
            oids[5]: "ahead", oids[6]: "ahead", oids[7]: "same",
            near: "diverged",  # both reach the same edge, so nothing can hide behind it
            far: "shallow",  # its edge is another one: the trunk may or may not lie behind it
        }  # fmt: skip
        assert git.relation("f" * 64, head) == "commit_missing"  # an id that no fetch could bring
        assert git.relation(head, oids[5]) == "behind"


def test_a_commit_at_the_edge_of_a_shallow_clone_keeps_its_parents_and_says_that_its_paths_are_unread(
    repo: Repo, tmp_path: Path
) -> None:
    for number in range(3):
        repo.commit(str(number), {"a.txt": f"{number}\n"})
    repo.git("clone", "-q", "--depth", "2", f"file://{repo.path}", str(tmp_path / "shallow"))
    with Repo(tmp_path / "shallow", create=False).reader() as git, repo.reader() as full:
        near, edge = git.commits(9)
        assert near == full.commit(near.oid)
        whole = full.commit(edge.oid)
        assert (edge.parents, edge.subject) == (whole.parents, whole.subject)
        assert (edge.paths, edge.paths_total) == ((), None)
        assert git.commit(edge.oid) == edge


def test_an_edge_above_both_commits_decides_and_an_edge_above_one_does_not() -> None:
    graph = {"h": ("m",), "c": ("m",), "m": ("e",), "e": ()}
    assert certainly_diverged(graph, "h", "c", frozenset({"e"}))
    graph = {"h": ("m", "f"), "c": ("m",), "m": ("e",), "e": (), "f": ()}
    assert not certainly_diverged(graph, "h", "c", frozenset({"e", "f"}))
    assert certainly_diverged({"h": (), "c": ()}, "h", "c", frozenset())


def test_many_commits_are_asked_about_in_few_processes(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    from passdown.git.shadow import Shadow

    repo.import_history(
        "".join(
            f"commit refs/heads/main\nmark :{n}\ncommitter C <c@d> {START + n} +0000\ndata 1\nm\n"
            for n in range(1, 301)
        )
        + "".join(
            f"commit refs/heads/b{n}\ncommitter C <c@d> {START + n} +0000\ndata 1\nb\nfrom :{n * 7}\n"
            for n in range(1, 40)
        )
    )
    oids = repo.text("rev-list", "--all").split()
    started: list[str] = []
    start = Shadow._start

    def counting(self: Shadow, operation: str, *rest: object) -> object:
        started.append(operation)
        return start(self, operation, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Shadow, "_start", counting)
    with repo.reader() as git:
        assert set(git.relations(oids, repo.text("rev-parse", "main~100")).values()) == {
            "same", "ahead", "behind", "diverged",
        }  # fmt: skip
        assert len(started) <= 4
        git.remote_refs(oids)
        assert len(started) <= 8


def test_more_commits_than_the_limit_are_refused(repo: Repo) -> None:
    oid = repo.commit("1")
    with repo.reader() as git:
        assert len(git.relations([f"{n:040x}" for n in range(4_096)], oid)) == 4_096
        for ask in (lambda: git.relations(["x"] * 4_097, oid), lambda: git.remote_refs(["x"] * 4_097)):
            with pytest.raises(PassdownError) as caught:
                ask()
            assert (caught.value.code, caught.value.members["limit"]) == ("invalid_request", 4_096)
