"""Commits, HEAD, tags and remote-tracking refs, compared with what plain git prints."""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from git_support import START, Repo

from passdown.git.facts import Commit, PathChange
from passdown.git.headers import SUBJECT_BYTES, parse_commit
from passdown.kernel.errors import PassdownError

MakeRepo = Callable[..., Repo]


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(PassdownError) as caught:
        action()
    return caught.value.code


def numstat(repo: Repo, oid: str) -> list[PathChange]:
    """The changes against the first parent as plain git counts them."""
    parents = repo.text("rev-parse", f"{oid}^@").split()
    base = parents[0] if parents else repo.git("hash-object", "-t", "tree", "--stdin", data=b"").decode().strip()
    output = repo.git("diff-tree", "-z", "-r", "--numstat", "--no-renames", base, oid)
    changes = []
    for record in output.split(b"\0")[:-1]:
        added, deleted, path = record.split(b"\t", 2)
        counts = (None, None) if added == b"-" else (int(added), int(deleted))
        changes.append(PathChange(path.decode("utf-8", "backslashreplace"), *counts))
    return changes


def header(repo: Repo, oid: str) -> tuple[object, ...]:
    shape = "%H%x00%P%x00%an%x00%at%x00%cn%x00%ct%x00%s"
    oid, parents, *rest = repo.git("log", "-1", f"--format={shape}", oid).decode().rstrip("\n").split("\0")
    return (oid, tuple(parents.split()), rest[0], int(rest[1] or 0), rest[2], int(rest[3] or 0), rest[4])


def told(commit: Commit) -> tuple[object, ...]:
    return (commit.oid, commit.parents, commit.author_name, commit.author_time, commit.committer_name,
            commit.committer_time, commit.subject)  # fmt: skip


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_a_history_with_merges_reads_as_plain_git_prints_it(make_repo: MakeRepo, object_format: str) -> None:
    repo = make_repo(object_format=object_format)
    repo.commit("First\n", {"a.txt": "1\n2\n", "bin": b"\0\1\2", "dir/ü\n.txt": "x\n"})
    repo.commit("Second line\nof the subject\n\nbody\n", {"a.txt": "1\n3\n4\n"}, GIT_AUTHOR_NAME="Łukasz <x>")
    repo.git("checkout", "-q", "-b", "side", "HEAD~1")
    repo.commit("\n\n  Indented\tsubject  \n", {"side.txt": "s\n"})
    repo.commit("", {"side2.txt": "s\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    (repo.path / "a.txt").unlink()
    repo.commit("Remove", {"dir/ü\n.txt": "y\n"})
    with repo.reader() as git:
        commits = git.commits(100)
        assert [commit.oid for commit in commits] == repo.text("rev-list", "HEAD").split()
        for commit in commits:
            assert told(commit) == header(repo, commit.oid)
            assert list(commit.paths) == numstat(repo, commit.oid)
            assert commit.paths_total == len(commit.paths)
            assert git.commit(commit.oid) == commit
        assert [c.oid for c in git.commits(2)] == [c.oid for c in commits[:2]]
        assert git.commits(0) == []
        assert [c.oid for c in git.commits(9, start="side")] == repo.text("rev-list", "side").split()


def test_without_paths_the_same_headers_are_read_and_paths_are_said_to_be_unread(repo: Repo) -> None:
    repo.commit("One", {"a": "1"})
    repo.commit("Two", {"b": "1"})
    with repo.reader() as git:
        bare, full = git.commits(9, paths=False), git.commits(9)
    assert [told(commit) for commit in bare] == [told(commit) for commit in full]
    assert [commit.paths_total for commit in bare] == [None, None]
    assert [commit.paths_total for commit in full] == [1, 1]


def test_offsets_are_minutes_east_of_utc(repo: Repo) -> None:
    repo.commit("x", GIT_AUTHOR_DATE=f"@{START} -0330", GIT_COMMITTER_DATE=f"@{START} +1400")
    with repo.reader() as git:
        commit = git.commit("HEAD")
    assert (commit.author_time, commit.author_offset, commit.committer_offset) == (START, -210, 840)


def test_no_mail_address_is_told(repo: Repo) -> None:
    repo.commit("x", {"a": "1"})
    with repo.reader() as git:
        assert "example.com" not in repr(git.commits(1))


@pytest.mark.parametrize(
    ("encoding", "name", "subject"),
    [
        ("ISO-8859-1", "Jürgen", "Größe"),
        ("windows-1251", "Иван", "Привет"),
        ("GBK", "李雷", "你好"),
        ("euc-jp", "太郎", "日本"),
    ],
)
def test_the_encoding_of_a_commit_is_honoured(repo: Repo, encoding: str, name: str, subject: str) -> None:
    repo.git("config", "i18n.commitEncoding", encoding)
    tree = repo.text("write-tree")
    person = f"{name} <a@b> {START} +0000".encode(encoding)
    data = b"tree %s\nauthor %s\ncommitter %s\nencoding %s\n\n%s\n" % (
        tree.encode(), person, person, encoding.encode(), subject.encode(encoding),
    )  # fmt: skip
    oid = repo.raw_commit(data)
    with repo.reader() as git:
        for commit in (git.commit(oid), git.commits(1, start=oid)[0]):
            assert (commit.author_name, commit.subject) == (name, subject)


@pytest.mark.parametrize("encoding", ["utf-8", "no-such-encoding", "unicode_escape", "idna", "zlib", "utf-16"])
def test_undecodable_bytes_are_shown_as_escapes_and_strange_encodings_are_not_used(repo: Repo, encoding: str) -> None:
    tree = repo.text("write-tree").encode()
    person = b"N\xe4me \\u0041 <a@b> 5 +0000"
    oid = repo.raw_commit(
        b"tree %s\nauthor %s\ncommitter %s\nencoding %s\n\nS\xff\n" % (tree, person, person, encoding.encode())
    )
    with repo.reader() as git:
        commit = git.commit(oid)
    assert (commit.author_name, commit.subject) == ("N\\xe4me \\u0041", "S\\xff")


def test_paths_that_are_not_utf8_are_shown_as_escapes(repo: Repo) -> None:
    repo.write(b"caf\xe9.txt", "x\n")
    repo.commit("x")
    with repo.reader() as git:
        assert git.commit("HEAD").paths == (PathChange("caf\\xe9.txt", 1, 0),)


@pytest.mark.parametrize(
    ("date", "seconds", "offset"),
    [
        (b"0 +0000", 0, 0),
        (b"3093527980800 +0000", 3_093_527_980_800, 0),  # the year 100000
        (b"-86400 -0100", -86_400, -60),
        (b"99999999999999999999999 +0000", 0, 0),
        (b"9007199254740991 +0000", 2**53 - 1, 0),
        (b"9007199254740992 +0000", 0, 0),
        (b"tomorrow", 0, 0),
        (b"", 0, 0),
        (b"5 +9999", 5, 6_039),
        (b"5", 5, 0),
    ],
)
def test_absurd_times_are_kept_or_zero_and_never_break_the_reader(
    repo: Repo, date: bytes, seconds: int, offset: int
) -> None:
    tree = repo.text("write-tree").encode()
    oid = repo.raw_commit(b"tree %s\nauthor A <a@b> %s\ncommitter C <c@d> 7 +0000\n\nS\n" % (tree, date))
    with repo.reader() as git:
        commit = git.commits(1, start=oid)[0]
        assert git.commit(oid) == commit
    assert (commit.author_time, commit.author_offset, commit.committer_time) == (seconds, offset, 7)


@pytest.mark.parametrize("person", [b"", b"<>", b"No mail 5 +0000", b"A <a@b> extra> 9 +0000", b"<only@mail> 3 +0000"])
def test_malformed_persons_never_break_the_reader(repo: Repo, person: bytes) -> None:
    tree = repo.text("write-tree").encode()
    oid = repo.raw_commit(b"tree %s\nauthor %s\ncommitter C <c@d> 7 +0000\n\nS\n" % (tree, person))
    with repo.reader() as git:
        commit = git.commit(oid)
    assert commit.author_name in ("", "A", "No mail 5 +0000")
    assert (commit.committer_name, commit.subject) == ("C", "S")


def test_words_of_a_signature_or_a_message_are_not_taken_for_the_header(repo: Repo) -> None:
    first = repo.commit("first")
    tree = repo.text("rev-parse", "HEAD^{tree}").encode()
    forged = b"parent " + first.encode()
    lines = [
        b"tree " + tree, b"author A <a> 1 +0000", b"committer C <c> 2 +0000", forged, b"gpgsig -----BEGIN",
        b" author Evil <e> 9 +0000", b" ", b" " + forged, b"", b"Subject", b"", forged, b"author Evil <e> 9 +0000", b"",
    ]  # fmt: skip
    data = b"\n".join(lines)
    commit = parse_commit("0" * 40, data)
    assert (commit.parents, commit.author_name, commit.author_time, commit.subject) == ((), "A", 1, "Subject")


def test_a_subject_at_the_limit_is_read_and_a_longer_one_is_refused_whole() -> None:
    head = b"tree 0\nauthor A <a> 1 +0000\ncommitter C <c> 2 +0000\n\n"
    assert len(parse_commit("0", head + b"s" * SUBJECT_BYTES).subject) == SUBJECT_BYTES
    with pytest.raises(PassdownError) as caught:
        parse_commit("0", head + b"s" * (SUBJECT_BYTES + 1))
    assert (caught.value.code, caught.value.members["rule"]) == ("git_failed", "subject_too_long")


def test_a_long_message_under_a_short_subject_is_no_obstacle(repo: Repo) -> None:
    repo.commit("Short\n\n" + "word " * 400_000)
    with repo.reader() as git:
        assert git.commits(1)[0].subject == "Short"


@pytest.mark.parametrize(("count", "kept"), [(500, 500), (501, 500)])
def test_five_hundred_paths_are_kept_and_all_are_counted(repo: Repo, count: int, kept: int) -> None:
    files = "".join(f"M 100644 inline f{number:04}\ndata 2\nx\n\n" for number in range(count))
    repo.import_history(f"commit refs/heads/main\ncommitter C <c@d> {START} +0000\ndata 1\nm\n{files}")
    with repo.reader() as git:
        for commit in (git.commit("HEAD"), git.commits(1)[0]):
            assert (len(commit.paths), commit.paths_total) == (kept, count)
            assert commit.paths[0] == PathChange("f0000", 1, 0)


def test_a_name_that_is_no_commit_is_refused(repo: Repo) -> None:
    names = ["", "-1", "--all", "HEAD\n", "a b", "main\0", "HEAD^{/x}", ":/First", "x" * 1025, "no-such-ref", "f" * 40,
             "\udcff", "HEAD..main", "HEAD^{tree}", "\x1b[0m", "\x9b"]  # fmt: skip
    repo.commit("First", {"a": "1"})
    with repo.reader() as git:
        for name in names:
            assert code_of(lambda: git.commit(name)) == "git_object_not_found"  # noqa: B023
            assert code_of(lambda: git.commits(1, start=name)) == "git_object_not_found"  # noqa: B023


def test_a_name_at_the_length_limit_reaches_its_commit(repo: Repo) -> None:
    oid = repo.commit("First")
    name = "HEAD" + "^0" * 510
    assert len(name) == 1_024
    with repo.reader() as git:
        assert git.commit(name).oid == oid
        assert code_of(lambda: git.commit(name + "^0")) == "git_object_not_found"


def test_trees_and_blobs_are_no_commits(repo: Repo) -> None:
    repo.commit("First", {"a": "1"})
    with repo.reader() as git:
        for name in (repo.text("rev-parse", "HEAD:a"), repo.text("rev-parse", "HEAD^{tree}")):
            assert code_of(lambda: git.commit(name)) == "git_object_not_found"  # noqa: B023


def test_usual_names_of_a_commit_lead_to_it(repo: Repo) -> None:
    first, second = repo.commit("1"), repo.commit("2")
    repo.git("tag", "-a", "-m", "t", "v1", first)
    with repo.reader() as git:
        for name in ("HEAD~1", "v1", first, first[:12], "main^", "refs/tags/v1"):
            assert git.commit(name).oid == first
        assert git.commit("main").oid == git.commit("HEAD").oid == second


def test_a_forged_object_is_noticed(repo: Repo) -> None:
    oid = repo.commit("Honest")
    path = repo.path / ".git" / "objects" / oid[:2] / oid[2:]
    data = zlib.decompress(path.read_bytes()).replace(b"Honest", b"Forged")
    path.chmod(0o644)
    path.write_bytes(zlib.compress(data))
    with repo.reader() as git:
        assert code_of(lambda: git.commit(oid)) == "git_object_not_found"


def test_replacements_grafts_and_mailmaps_change_nothing(repo: Repo) -> None:
    first, second = repo.commit("First", {"a": "1"}), repo.commit("Second", {"b": "1"})
    with repo.reader() as git:
        before = git.commits(9)
    repo.git("replace", second, first)
    (repo.path / ".git" / "info" / "grafts").write_text(f"{second}\n")
    repo.write(".mailmap", "Someone Else <ada@example.com>\n")
    assert repo.text("log", "-1", "--format=%s") == "First"  # the trap is live
    with repo.reader() as git:
        assert git.commits(9) == before


def test_counts_do_not_depend_on_the_attributes_of_the_checkout(repo: Repo) -> None:
    repo.commit("x", {"a.txt": "1\n2\n"})
    repo.write(".gitattributes", "* -diff\n")
    repo.write(".git/info/attributes", "* -diff\n")
    assert repo.text("show", "--numstat", "--format=", "HEAD") == "-\t-\ta.txt"  # the trap is live
    with repo.reader() as git:
        git.status()
        assert git.commit("HEAD").paths == (PathChange("a.txt", 2, 0),)


def test_an_empty_repository_has_no_head_no_commits_and_no_tags(repo: Repo) -> None:
    repo.write("new.txt", "x")
    with repo.reader() as git:
        head = git.head()
        assert (head.oid, head.branch, head.detached) == (None, "main", False)
        assert (git.commits(5), git.tags(5), git.is_shallow) == ([], [], False)
        assert code_of(lambda: git.commit("HEAD")) == "git_object_not_found"
        status = git.status()
        assert (status.head, status.clean, [entry.path for entry in status.entries]) == (None, False, ["new.txt"])


def test_head_follows_the_branch_and_can_be_detached_while_the_reader_is_open(repo: Repo) -> None:
    first = repo.commit("1")
    with repo.reader() as git:
        assert (git.head().oid, git.head().branch) == (first, "main")
        second = repo.commit("2")
        assert git.head().oid == second
        repo.git("checkout", "-q", "-b", "feature/x")
        assert git.head().branch == "feature/x"
        repo.git("checkout", "-q", "--detach", first)
        head = git.head()
        assert (head.oid, head.branch, head.detached) == (first, None, True)


def test_refs_that_are_packed_while_the_reader_is_open_stay_visible(repo: Repo) -> None:
    oid = repo.commit("1")
    with repo.reader() as git:
        repo.git("pack-refs", "--all")
        assert git.head().oid == oid


@pytest.mark.parametrize("limit", [-1, 100_001])
def test_a_limit_out_of_range_is_refused(repo: Repo, limit: int) -> None:
    repo.commit("1")
    with repo.reader() as git:
        assert code_of(lambda: git.commits(limit)) == "invalid_request"
        assert code_of(lambda: git.tags(limit)) == "invalid_request"


def test_tags_lead_to_commits_newest_first_and_other_tags_are_left_out(repo: Repo) -> None:
    first, second = repo.commit("1", {"a": "1"}), repo.commit("2")
    repo.git("tag", "light", second)
    for at, (name, target) in enumerate([("old", first), ("nested", "old"), ("same-b", second), ("same-a", second)]):
        date = f"@{START + 10_000 + min(at, 2)} +0000"
        repo.git("tag", "-a", "-m", name, name, target, GIT_COMMITTER_DATE=date)
    repo.git("tag", "-a", "-m", "tree", "a-tree", "HEAD^{tree}")
    repo.git("tag", "a-blob", "HEAD:a")
    with repo.reader() as git:
        tags = [(tag.name, tag.oid, tag.time) for tag in git.tags(10)]
        assert [tag.name for tag in git.tags(2)] == ["same-a", "same-b"]
    assert tags == [
        ("same-a", second, START + 10_002),
        ("same-b", second, START + 10_002),
        ("nested", first, START + 10_001),
        ("old", first, START + 10_000),
        ("light", second, START + 120),
    ]


def test_remote_tracking_refs_that_hold_a_commit_are_named_as_git_names_them(repo: Repo, tmp_path: Path) -> None:
    old = repo.commit("old")
    repo.git("branch", "release")
    pushed = repo.commit("pushed")
    for name in ("origin", "backup"):
        repo.git("clone", "-q", "--bare", ".", str(tmp_path / f"{name}.git"))
        repo.git("remote", "add", name, str(tmp_path / f"{name}.git"))
        repo.git("fetch", "-q", name)
    repo.git("remote", "set-head", "origin", "main")
    local = repo.commit("local")
    with repo.reader() as git:
        held = git.remote_refs([local, pushed, old, "0" * 40])
    for oid in (local, pushed, old):
        plain = repo.text("for-each-ref", "--contains", oid, "--format=%(refname:strip=2)", "refs/remotes").split()
        assert list(held[oid]) == sorted(name for name in plain if name != "origin/HEAD")
    assert held[old] == ("backup/main", "backup/release", "origin/main", "origin/release")
    assert held[local] == held["0" * 40] == ()


def test_a_gitlink_in_history_counts_whatever_gitmodules_says(repo: Repo) -> None:
    first = repo.commit("first", {".gitmodules": '[submodule "s"]\n path = s\n url = x\n ignore = all\n'})
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{first},s")
    repo.git("commit", "-q", "-m", "link")
    with repo.reader() as git:
        assert git.commit("HEAD").paths == (PathChange("s", 1, 0),)


def test_a_missing_git_program_is_said(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:relative:")

    def enter() -> None:
        with repo.reader():
            pass

    assert code_of(enter) == "git_not_installed"


def test_git_that_takes_too_long_is_stopped(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent))
    with repo.reader(seconds=0.05) as git, pytest.raises(PassdownError) as caught:
        git.commits(1)
    assert (caught.value.code, caught.value.members["rule"]) == ("git_failed", "timeout")


def test_a_failure_of_git_carries_no_word_of_the_repository(repo: Repo) -> None:
    oid = repo.commit("secret subject")
    (repo.path / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    with repo.reader() as git:
        with pytest.raises(PassdownError) as caught:
            git.commits(1)
        assert git.head().oid == oid
    assert caught.value.members == {"operation": "rev-list", "status": 128}


def test_the_shadow_is_removed_also_after_an_error(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    repo.commit("x", {"a": "1"})
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with pytest.raises(PassdownError), repo.reader() as git:
        git.status()
        git.commit("missing")
    assert list((tmp_path / "temporary").iterdir()) == []
    assert subprocess.run(["git", "fsck", "--strict"], cwd=repo.path, capture_output=True, check=False).returncode == 0
