"""Corners of the worktree, from ``handoff`` to ``continue``: line ends, filters, submodules, modes, names.

Catches: a file called changed or lost although only its spelling, line ends or filter differ, a lost executable bit or
link that nobody notices, and a program of the repository that runs because somebody asked for a handoff.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cli_support import World
from git_support import START, Repo, sha256

LF, CRLF = b"one\ntwo\n", b"one\r\ntwo\r\n"


def hand_off(world: World, repo: Repo, *words: str) -> Any:
    return world.ok(repo.path, "handoff", "--next", "Go on", *words, "--json").json["prepared"]["content"]


def workspace_of(world: World, repo: Repo) -> Any:
    return world.ok(repo.path, "continue", "--json").json["workspace"]


def screen_text(world: World, repo: Repo) -> str:
    """The screen of ``continue`` in one line, so that a sentence is found wherever it was broken."""
    return " ".join(world.ok(repo.path, "continue").out.split())


def changed(repo: Repo, *options: str, **environment: str) -> list[str]:
    """The paths that ``git status`` lists."""
    listing = repo.git(
        "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", *options, **environment
    )
    return [record[3:].decode() for record in listing.split(b"\0")[:-1]]


def trap(world: World, name: str) -> tuple[str, Path]:
    """A program that leaves a mark when it runs, and the mark; it passes its input on."""
    mark = world.root / f"{name} ran"
    program = world.root / name
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    program.chmod(0o755)
    return str(program), mark


# --- line ends and filters --------------------------------------------------------------------------------------------


def test_a_file_that_differs_in_line_ends_alone_is_listed_with_the_doubt(world: World) -> None:
    repo = world.bound()
    repo.commit("Text", {"a.txt": LF, "b.txt": LF})
    repo.write("a.txt", CRLF)
    content = hand_off(world, repo)
    assert any("1 of the uncommitted paths may only look changed" in item["text"] for item in content["omissions"])
    workspace = workspace_of(world, repo)
    assert workspace["changed_paths"] == changed(repo) == ["a.txt"]
    assert workspace["remarks"] == [{"path": "a.txt", "remark": "line_endings"}]
    assert "uncommitted now: a.txt (may only look changed: line ends)" in screen_text(world, repo)


@pytest.mark.parametrize("attribute", ["text", "text eol=crlf", "-text", None])
@pytest.mark.parametrize("autocrlf", ["true", "input", "false"])
def test_line_end_conversion_is_that_of_git(world: World, attribute: str | None, autocrlf: str) -> None:
    repo = world.bound()
    repo.commit("Text", {"a.txt": LF} | ({".gitattributes": f"*.txt {attribute}\n"} if attribute else {}))
    repo.git("config", "core.autocrlf", autocrlf)
    repo.write("a.txt", CRLF)
    hand_off(world, repo)
    workspace = workspace_of(world, repo)
    assert workspace["changed_paths"] == changed(repo)
    assert workspace["dirty"] is bool(changed(repo))


def test_an_uncommitted_file_that_came_back_with_other_line_ends_is_changed_with_the_reason(world: World) -> None:
    repo = world.bound()
    repo.write("draft.txt", LF)
    repo.write("other.txt", LF)
    hand_off(world, repo)
    repo.write("draft.txt", CRLF)
    repo.write("other.txt", b"three\r\n")
    uncommitted = workspace_of(world, repo)["uncommitted"]
    assert uncommitted["changed"] == ["draft.txt", "other.txt"]
    assert uncommitted["remarks"] == [{"path": "draft.txt", "remark": "line_endings"}]
    assert "changed since: draft.txt (may only look changed: line ends), other.txt" in screen_text(world, repo)


@pytest.fixture
def filtered(world: World) -> Repo:
    """A large file behind a filter: its pointer is committed, its content lies in the worktree."""
    repo = world.bound()
    pointer = f"version 1\noid sha256:{sha256(b'content')}\nsize 7\n"
    repo.commit("Large file", {".gitattributes": "*.bin filter=large\n", "a.bin": pointer})
    return repo


def test_a_file_behind_a_filter_is_listed_with_the_doubt_and_the_filter_does_not_run(
    world: World, filtered: Repo
) -> None:
    program, mark = trap(world, "clean-filter")
    filtered.git("config", "filter.large.clean", f"'{program}'")
    filtered.write("a.bin", b"content")
    content = hand_off(world, filtered)
    assert any("a filter was not run" in item["text"] for item in content["omissions"])
    workspace = workspace_of(world, filtered)
    assert workspace["changed_paths"] == ["a.bin"]
    assert workspace["remarks"] == [{"path": "a.bin", "remark": "filter_not_run"}]
    assert "a.bin (may only look changed: it passes through a filter, which is not run)" in screen_text(world, filtered)
    assert not mark.exists()
    filtered.git("diff")
    assert mark.exists()  # git itself runs it, so the trap is live


def test_content_that_became_its_pointer_is_changed_with_the_reason(world: World, filtered: Repo) -> None:
    filtered.write("a.bin", b"content")
    hand_off(world, filtered)
    assert workspace_of(world, filtered)["uncommitted"]["present"] == 1
    filtered.git("checkout", "-q", "HEAD", "--", "a.bin")
    uncommitted = workspace_of(world, filtered)["uncommitted"]
    assert uncommitted["changed"] == ["a.bin"]
    assert uncommitted["remarks"] == [{"path": "a.bin", "remark": "filter_not_run"}]


def test_attributes_of_the_user_count_and_those_that_the_repository_names_are_said_to_be_unread(world: World) -> None:
    """Catches a line-end rule of the user's own that git follows and Passdown does not."""
    repo = world.bound()
    repo.commit("Text", {"a.txt": LF})
    hand_off(world, repo)
    rules = world.home / ".config" / "git" / "attributes"
    rules.parent.mkdir(parents=True)
    rules.write_text("*.txt text\n")
    repo.write("a.txt", CRLF)
    repo.git("add", "a.txt", HOME=str(world.home))
    os.utime(repo.path / "a.txt", (START, START))  # git has to compare the content now
    assert workspace_of(world, repo)["changed_paths"] == changed(repo, HOME=str(world.home)) == []
    theirs = world.root / "theirs"
    theirs.write_text("*.txt -text\n")
    repo.git("config", "core.attributesFile", str(theirs))
    workspace = workspace_of(world, repo)
    assert (workspace["changed_paths"], workspace["notes"]) == ([], ["repository_attributes_not_read"])
    rules.unlink()
    os.utime(repo.path / "a.txt", (START + 1, START + 1))
    repo.git("config", "--unset", "core.attributesFile")
    assert workspace_of(world, repo)["changed_paths"] == changed(repo, HOME=str(world.home)) == ["a.txt"]
    repo.git("config", "core.attributesFile", str(theirs))
    assert "Not read: the attributes file that this repository's settings name" in screen_text(world, repo)


# --- submodules -------------------------------------------------------------------------------------------------------


@pytest.fixture
def library(world: World) -> Repo:
    """The submodule ``lib`` of the bound repository, as it is checked out there."""
    origin = world.repo("library", commits=2)
    repo = world.bound()
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin.path), "lib")
    repo.commit("Add the library")
    return Repo(world.root / "shop" / "lib", create=False)


def test_a_submodule_on_another_commit_is_uncommitted_as_git_says(world: World, library: Repo) -> None:
    repo = Repo(world.root / "shop", create=False)
    library.git("checkout", "-q", "--detach", "HEAD~1")
    content = hand_off(world, repo)
    assert "Uncommitted paths (1): lib" in [item["text"] for item in content["state"]]
    workspace = workspace_of(world, repo)
    assert workspace["changed_paths"] == changed(repo) == ["lib"]
    assert (workspace["uncommitted"]["gone"], workspace["uncommitted"]["not_recorded"]) == ([], 1)


def test_what_is_uncommitted_inside_a_submodule_is_not_read_and_that_is_said(world: World, library: Repo) -> None:
    """Catches a worktree called clean while work lies in a submodule, and a program that the submodule names."""
    repo = Repo(world.root / "shop", create=False)
    program, mark = trap(world, "monitor")
    library.git("config", "core.fsmonitor", program)
    library.write("file-1.txt", "half done\n")
    library.write("new.txt", "half done\n")
    content = hand_off(world, repo)
    assert "Nothing is uncommitted." not in [item["text"] for item in content["state"]]
    assert any("inside it was not read" in item["text"] for item in content["omissions"])
    workspace = workspace_of(world, repo)
    assert workspace["changed_paths"] == changed(repo, "--ignore-submodules=dirty") == []
    assert workspace["notes"] == ["submodule_not_entered"]
    assert "? Not read: submodules were not entered" in screen_text(world, repo)
    assert not mark.exists()
    repo.git("status")
    assert mark.exists()


# --- what lies at a path ----------------------------------------------------------------------------------------------


def test_a_lost_executable_bit_is_a_changed_file(world: World) -> None:
    repo = world.bound()
    script = Path(os.fsdecode(repo.write("run.sh", "#!/bin/sh\n")))
    script.chmod(0o755)
    hand_off(world, repo)
    assert workspace_of(world, repo)["uncommitted"]["present"] == 1
    script.chmod(0o644)
    uncommitted = workspace_of(world, repo)["uncommitted"]
    assert (uncommitted["changed"], uncommitted["gone"]) == (["run.sh"], [])
    assert "changed since: run.sh (same bytes, other mode)" in screen_text(world, repo)
    repo.git("config", "core.fileMode", "false")  # then they mean nothing, to git neither
    assert workspace_of(world, repo)["uncommitted"]["present"] == 1


def test_a_link_that_became_a_file_with_the_same_bytes_is_a_changed_file(world: World) -> None:
    repo = world.bound()
    (repo.path / "link").symlink_to("file-1.txt")
    hand_off(world, repo)
    assert workspace_of(world, repo)["uncommitted"]["present"] == 1
    (repo.path / "link").unlink()
    repo.write("link", "file-1.txt")
    uncommitted = workspace_of(world, repo)["uncommitted"]
    assert uncommitted["remarks"] == [{"path": "link", "remark": "mode"}]


# --- names and words --------------------------------------------------------------------------------------------------


def test_names_that_are_no_text_or_differ_in_case_or_form_alone_are_each_found_again(world: World) -> None:
    repo = world.bound()
    names = [b"caf\xe9.txt", b"caf\\xe9.txt", b"Readme", b"README", "e\u0301.txt".encode(), "\u00e9.txt".encode()]
    for name in names:
        repo.write(name, name)
    hand_off(world, repo)
    uncommitted = workspace_of(world, repo)["uncommitted"]
    assert (uncommitted["present"], uncommitted["changed"], uncommitted["gone"]) == (len(names), [], [])
    (repo.path / "README").unlink()
    os.unlink(os.fsencode(repo.path) + b"/caf\xe9.txt")
    uncommitted = workspace_of(world, repo)["uncommitted"]
    assert uncommitted["gone"] == ["README"]
    # What is left is a file of the other name, which was written down alike: never "unchanged".
    assert uncommitted["changed"] == ["caf\\xe9.txt"]
    assert "GONE now: README" in screen_text(world, repo)


@pytest.mark.parametrize(
    ("encoding", "subject"), [("ISO-8859-1", "café"), ("Shift_JIS", "日本"), ("KOI8-R", "очередь")]
)
def test_a_commit_message_in_another_encoding_is_read_as_git_reads_it(
    world: World, encoding: str, subject: str
) -> None:
    repo = world.bound()
    repo.git("config", "i18n.commitEncoding", encoding)
    repo.commit(subject.encode(encoding))
    assert repo.text("log", "-1", "--format=%s", "--encoding=UTF-8") == subject
    content = hand_off(world, repo)
    assert f"Committed: {subject}" in [item["text"] for item in content["state"]]
    assert f"Committed: {subject}" in screen_text(world, repo)


def test_a_commit_message_that_is_no_text_is_shown_with_its_bytes_written_out(world: World) -> None:
    repo = world.bound()
    # Git would not write such a commit: another program did.
    header = repo.git("cat-file", "commit", "HEAD").partition(b"\n\n")[0]
    repo.git("reset", "-q", repo.raw_commit(header + b"\n\ncaf\xe9 au lait\n"))
    content = hand_off(world, repo)
    assert "Committed: caf\\xe9 au lait" in [item["text"] for item in content["state"]]
