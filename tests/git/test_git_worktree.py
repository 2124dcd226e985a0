"""The state of the worktree and single files. Catches: a change missed, hashed wrongly, or silently left out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_support import START, Repo, sha256

from passdown.git import reader as reader_module
from passdown.git.checkout import Change, measure
from passdown.git.facts import StatusEntry, WorktreeStatus
from passdown.git.files import Content, hash_inside
from passdown.kernel.errors import PassdownError

MakeRepo = Callable[..., Repo]
MIB = 1024 * 1024


def status_of(repo: Repo) -> WorktreeStatus:
    with repo.reader() as git:
        return git.status()


def brief(status: WorktreeStatus) -> dict[str, tuple[str, bool, str | None]]:
    return {entry.path: (entry.status, entry.staged, entry.sha256) for entry in status.entries}


def plain_paths(repo: Repo) -> set[str]:
    """The paths that plain git lists."""
    records = repo.git("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all").split(b"\0")[:-1]
    return {record[3:].decode("utf-8", "backslashreplace") for record in records}


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(PassdownError) as caught:
        action()
    return caught.value.code


def test_a_clean_worktree_is_clean(repo: Repo) -> None:
    oid = repo.commit("x", {"a": "1", "b/c": "2"})
    assert status_of(repo) == WorktreeStatus(oid, (), 0, 0, True, ())


def test_each_kind_of_change_is_told_with_the_digest_of_the_bytes_that_lie_there(repo: Repo) -> None:
    names = ["edited", "staged", "both", "gone", "removed", "kept", "to-link", "moved"]
    repo.commit("x", {name: f"{name}\n" for name in names} | {".gitignore": "*.log\n"})
    repo.write("edited", "1")
    repo.write("staged", "2")
    repo.write("both", "3")
    repo.git("add", "staged", "both")
    repo.write("both", "4")
    (repo.path / "gone").unlink()
    repo.git("rm", "-q", "removed")
    repo.git("rm", "-q", "--cached", "kept")
    (repo.path / "to-link").unlink()
    (repo.path / "to-link").symlink_to("edited")
    repo.git("mv", "moved", "renamed")
    for name in ("added", "added-gone"):
        repo.write(name, "5")
        repo.git("add", name)
    (repo.path / "added-gone").unlink()
    repo.write("intended", "6")
    repo.git("add", "-N", "intended")
    repo.write("new/file", "7")
    repo.write("ignored.log", "8")
    status = status_of(repo)
    assert brief(status) == {
        "edited": ("modified", False, sha256(b"1")),
        "staged": ("modified", True, sha256(b"2")),
        "both": ("modified", True, sha256(b"4")),
        "gone": ("deleted", False, None),
        "removed": ("deleted", True, None),
        "kept": ("deleted", True, sha256(b"kept\n")),
        "to-link": ("type_changed", False, sha256(b"edited")),
        "moved": ("deleted", True, None),
        "renamed": ("added", True, sha256(b"moved\n")),
        "added": ("added", True, sha256(b"5")),
        "added-gone": ("added", True, None),
        "intended": ("added", False, sha256(b"6")),
        "new/file": ("untracked", False, sha256(b"7")),
    }
    assert set(brief(status)) == plain_paths(repo)
    assert {entry.path: entry.size for entry in status.entries if entry.path in ("to-link", "gone")} == {
        "to-link": 6, "gone": None,
    }  # fmt: skip
    assert not status.clean


def test_tracked_changes_come_first_each_kind_in_order_of_its_bytes(repo: Repo) -> None:
    repo.commit("x", {"b": "1", "z": "1"})
    for name in ("z", "b", "a", "B"):
        repo.write(name, "2")
    assert [entry.path for entry in status_of(repo).entries] == ["b", "z", "B", "a"]


def test_a_conflict_is_told(repo: Repo) -> None:
    base = repo.commit("x", {"a": "1\n"})
    repo.commit("y", {"a": "2\n"})
    repo.git("checkout", "-q", "-b", "side", base)
    repo.commit("z", {"a": "3\n"})
    repo.git("merge", "-q", "main", ok=(1,))
    content = (repo.path / "a").read_bytes()
    assert status_of(repo).entries == (
        StatusEntry("a", "conflicted", False, len(content), sha256(content), mode="100644"),
    )


def test_a_change_within_the_same_second_as_the_index_is_not_missed(repo: Repo) -> None:
    """Fails when the copy of the index gets a newer time: git then trusts times that it must not trust."""
    path = repo.write("a", "aaaa")
    os.utime(path, (START, START))
    repo.git("add", "a")
    repo.commit("x")
    repo.git("update-index", "--refresh")
    repo.write("a", "bbbb")
    os.utime(path, (START, START))
    os.utime(repo.path / ".git" / "index", (START, START))
    repo.git("config", "core.trustctime", "false")
    repo.git("config", "core.checkStat", "minimal")
    assert brief(status_of(repo)) == {"a": ("modified", False, sha256(b"bbbb"))}


def test_names_that_are_not_utf8_or_hold_line_ends_are_told(repo: Repo) -> None:
    repo.write(b"caf\xe9", "1")
    repo.write("two\nlines", "2")
    repo.write(" edge ", "3")
    assert brief(status_of(repo)) == {
        "caf\\xe9": ("untracked", False, sha256(b"1")),
        "two\nlines": ("untracked", False, sha256(b"2")),
        " edge ": ("untracked", False, sha256(b"3")),
    }


def test_a_link_out_of_the_worktree_is_not_followed(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    (repo.path / "link").symlink_to(tmp_path / "outside")
    target = os.fsencode(tmp_path / "outside")
    assert status_of(repo).entries == (
        StatusEntry("link", "untracked", False, len(target), sha256(target), mode="120000"),
    )


def test_a_folder_swapped_for_a_link_counts_as_gone(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("secret")
    (repo.path / "d").symlink_to(tmp_path / "outside")
    entry = measure(repo.path, [Change(b"d/f", "modified", False, True)]).entries[0]
    assert (entry.size, entry.sha256) == (None, None)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_file_that_may_not_be_read_is_told_apart_from_one_that_is_gone(repo: Repo) -> None:
    repo.write("closed", "secret")
    (repo.path / "closed").chmod(0)
    root = os.open(repo.path, os.O_RDONLY | os.O_DIRECTORY)
    os.seteuid(65_534)
    try:
        assert hash_inside(root, b"closed", 100) == Content("unreadable", 6, mode="100644")
        assert hash_inside(root, b"missing", 100) == Content("gone")
    finally:
        os.seteuid(0)
        os.close(root)


def test_a_nested_repository_is_named_and_not_read(repo: Repo) -> None:
    Repo(repo.path / "nested").commit("x", {"a": "1"})
    status = status_of(repo)
    assert status.entries == (StatusEntry("nested/", "untracked", False, None, None),)
    assert status.notes == ("nested_repository_not_read",)


def test_submodules_are_ignored(repo: Repo, make_repo: MakeRepo) -> None:
    library = make_repo("library")
    library.commit(files={"l": "1"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib")
    repo.commit("x")
    repo.write("lib/l", "changed")
    repo.write("lib/new", "new")
    assert status_of(repo).clean


@pytest.mark.parametrize(("count", "listed", "omitted"), [(2_000, 2_000, 0), (2_001, 2_000, 1)])
def test_two_thousand_paths_are_listed_and_the_rest_is_counted(
    repo: Repo, count: int, listed: int, omitted: int
) -> None:
    for number in range(count):
        (repo.path / f"f{number:05}").write_bytes(b"x" if number < 2_000 else b"five!")
    status = status_of(repo)
    assert (len(status.entries), status.omitted_paths, status.omitted_bytes) == (listed, omitted, omitted * 5)
    assert all(entry.sha256 == sha256(b"x") for entry in status.entries)
    assert not status.clean


@pytest.mark.parametrize("extra", [0, 1])
def test_sixty_four_mib_are_hashed_and_what_does_not_fit_is_counted(repo: Repo, extra: int) -> None:
    sizes = {"a": 40 * MIB, "b": 24 * MIB + extra, "c": 0}
    for name, size in sizes.items():
        with (repo.path / name).open("wb") as file:
            file.truncate(size)
    status = status_of(repo)
    entries = {entry.path: entry for entry in status.entries}
    assert {name: entry.size for name, entry in entries.items()} == sizes
    assert entries["a"].sha256 == hashlib.sha256(bytes(40 * MIB)).hexdigest()
    assert entries["c"].sha256 == sha256(b"")
    assert (entries["b"].sha256 is None) == bool(extra)
    assert status.omitted_bytes == (sizes["b"] if extra else 0)
    assert status.omitted_paths == 0


def test_the_excludes_of_the_user_are_honoured_and_those_that_the_repository_names_are_not(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(os.environ["HOME"])
    repo.write("a.tmp")
    repo.write("b.bak")
    repo.write("c.txt")
    assert set(brief(status_of(repo))) == {"a.tmp", "b.bak", "c.txt"}
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*.tmp\n")
    assert set(brief(status_of(repo))) == {"b.bak", "c.txt"}
    (home / "my ignore").write_text("*.bak\n")
    (home / ".gitconfig").write_text('[core]\n excludesFile = "~/my ignore"\n')
    assert set(brief(status_of(repo))) == {"a.tmp", "c.txt"}
    (tmp_path / "theirs").write_text("*\n")
    repo.git("config", "core.excludesFile", str(tmp_path / "theirs"))
    status = status_of(repo)
    assert set(brief(status)) == {"a.tmp", "c.txt"}
    assert status.notes == ("repository_excludes_not_read",)
    (home / ".gitconfig").write_text("[core\n")
    assert "user_config_unreadable" in status_of(repo).notes
    monkeypatch.delenv("HOME")
    assert set(brief(status_of(repo))) == {"a.tmp", "b.bak", "c.txt"}


def test_info_exclude_and_nested_ignore_files_are_honoured(repo: Repo) -> None:
    repo.write(".git/info/exclude", "/private\n")
    repo.commit("x", {"sub/.gitignore": "*.o\n!keep.o\n"})
    for name in ("private", "sub/a.o", "sub/keep.o", "a.o"):
        repo.write(name)
    assert set(brief(status_of(repo))) == {"sub/keep.o", "a.o"} == plain_paths(repo)


def test_line_end_conversion_of_repository_and_user_is_applied_and_else_doubt_is_noted(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    repo.commit("x", {"a.txt": "one\r\ntwo\r\n"})
    assert repo.git("show", "HEAD:a.txt") == b"one\ntwo\n"
    os.utime(repo.path / "a.txt", (START, START))  # git has to compare the content now
    assert status_of(repo).clean
    repo.git("config", "--unset", "core.autocrlf")
    status = status_of(repo)
    assert (brief(status)["a.txt"][0], status.notes) == ("modified", ("line_endings",))
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[core]\n autocrlf = input\n")
    assert status_of(repo).clean


def test_a_changed_file_behind_a_filter_is_noted_and_the_filter_not_run(repo: Repo) -> None:
    repo.commit("x", {".gitattributes": "*.bin filter=lfs\n", "a.bin": "pointer", "b.txt": "1"})
    repo.write("b.txt", "2")
    assert status_of(repo).notes == ()
    repo.write("a.bin", "content")
    assert status_of(repo).notes == ("filter_not_run",)


def test_file_modes_count_only_where_the_repository_says_so(repo: Repo) -> None:
    repo.commit("x", {"a": "1"})
    (repo.path / "a").chmod(0o755)
    assert brief(status_of(repo)) == {"a": ("modified", False, sha256(b"1"))}
    repo.git("config", "core.fileMode", "false")
    assert status_of(repo).clean


@pytest.mark.parametrize("sparse_index", ["--no-sparse-index", "--sparse-index"])
def test_files_outside_of_a_sparse_checkout_are_not_missing(repo: Repo, sparse_index: str) -> None:
    repo.commit("x", {"in/a": "1", "out/b": "2", "top": "3"})
    repo.git("sparse-checkout", "set", "--cone", sparse_index, "in")
    assert not (repo.path / "out").exists()
    assert status_of(repo).clean
    repo.write("in/a", "changed")
    assert set(brief(status_of(repo))) == {"in/a"}
    repo.write("out/b", "back")
    assert set(brief(status_of(repo))) == plain_paths(repo) == {"in/a", "out/b"}


def test_a_split_index_is_read(repo: Repo) -> None:
    repo.commit("x", {"a": "1", "b": "1"})
    repo.git("update-index", "--split-index")
    repo.write("b", "2")
    repo.git("add", "b")
    assert list((repo.path / ".git").glob("sharedindex.*"))
    assert brief(status_of(repo)) == {"b": ("modified", True, sha256(b"2"))}


def test_each_linked_worktree_has_its_own_status(repo: Repo, tmp_path: Path) -> None:
    first = repo.commit("x", {"a": "1"})
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked", create=False)
    second = linked.commit("y", {"a": "2"})
    linked.write("new", "3")
    assert (status_of(repo).head, status_of(repo).clean) == (first, True)
    status = status_of(linked)
    assert (status.head, brief(status)) == (second, {"new": ("untracked", False, sha256(b"3"))})
    with linked.reader() as git:
        assert git.head().branch == "linked"
        assert git.file("a").commit == second


def test_a_file_is_told_by_digest_size_and_commit(repo: Repo) -> None:
    oid = repo.commit("x", {"dir/a b.txt": "hello\r\n"})
    with repo.reader() as git:
        fact = git.file("dir/a b.txt")
        assert (fact.path, fact.sha256, fact.size, fact.commit) == ("dir/a b.txt", sha256(b"hello\r\n"), 7, oid)
        repo.write(b"caf\xe9", "x")
        assert git.file("caf\udce9").path == "caf\\xe9"


def test_a_path_that_is_no_regular_file_inside_the_worktree_is_refused(repo: Repo, tmp_path: Path) -> None:
    paths = ["", "/etc/passwd", "../repo/a", "a/../a", "./a", "a/", "dir", "missing", "a/b", ".git/config",
             "dir/.GIT/x", "link", "linked/f", "a\0b", "x" * 4_097, "\ud800", "pipe", "dir//b"]  # fmt: skip
    repo.commit("x", {"a": "1", "dir/b": "2"})
    repo.write("dir/.GIT/x", "3")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("x")
    (repo.path / "link").symlink_to("a")
    (repo.path / "linked").symlink_to(tmp_path / "outside")
    os.mkfifo(repo.path / "pipe")
    with repo.reader() as git:
        assert {path: code_of(lambda: git.file(path)) for path in paths} == dict.fromkeys(paths, "git_file_not_found")  # noqa: B023


def test_a_file_at_the_size_limit_is_hashed_and_a_larger_one_is_refused(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "FILE_BYTES", 10)
    repo.write("ten", b"0123456789")
    repo.write("eleven", b"0123456789a")
    with repo.reader() as git:
        assert git.file("ten").sha256 == sha256(b"0123456789")
        with pytest.raises(PassdownError) as caught:
            git.file("eleven")
    assert (caught.value.code, caught.value.members) == ("source_too_large", {"limit": 10, "actual": 11})
