"""What lies now at recorded paths: other spellings are the same file, and no path leads out of the worktree."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from passdown.git.files import Content
from passdown.git.recheck import recheck


def look(worktree: Path, *paths: str) -> list[Content]:
    """What lies at the paths, whatever was recorded."""
    return recheck(worktree, [(path, None) for path in paths])


def test_a_file_is_found_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(b"one")
    here, lost = look(tmp_path, "folder/a.txt", "folder/b.txt")
    assert here.sha256 == hashlib.sha256(b"one").hexdigest()
    assert lost.kind == "gone"


def test_a_name_that_the_disk_holds_decomposed_is_not_gone(tmp_path: Path) -> None:
    (tmp_path / "re\u0301sume\u0301.txt").write_bytes(b"cv")
    assert look(tmp_path, "r\u00e9sum\u00e9.txt")[0].kind == "file"


def test_a_name_with_bytes_that_are_no_text_is_not_gone(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/latin-\xe9.txt", "wb") as stream:
        stream.write(b"x")
    assert look(tmp_path, "latin-\\xe9.txt")[0].kind == "file"


def test_a_repository_inside_is_there_without_a_digest(tmp_path: Path) -> None:
    (tmp_path / "nested" / ".git").mkdir(parents=True)
    nested, lost = look(tmp_path, "nested/", "lost/")
    assert (nested.kind, nested.sha256) == ("other", None)
    assert lost.kind == "gone"


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/hostname", "a/../../outside.txt", ".git/config", "", "a//b"])
def test_a_path_out_of_the_worktree_is_never_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.txt").write_bytes(b"secret")
    worktree = tmp_path / "worktree"
    (worktree / ".git").mkdir(parents=True)
    (worktree / ".git" / "config").write_bytes(b"x")
    assert look(worktree, path)[0].kind == "gone"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_bytes(b"secret")
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    (worktree / "link").symlink_to(tmp_path / "outside")
    behind, link = look(worktree, "link/a.txt", "link")
    assert behind.kind == "gone"
    assert link.sha256 == hashlib.sha256(os.fsencode(tmp_path / "outside")).hexdigest()


def test_two_names_that_were_written_down_alike_are_each_found_by_their_digest(tmp_path: Path) -> None:
    """Catches a second file that is compared with the first because both names read the same."""
    for name, data in {b"\xc3\xa9": b"one", b"e\xcc\x81": b"two", b"\xff": b"three", b"\\xff": b"four"}.items():
        with open(os.fsencode(tmp_path) + b"/" + name, "wb") as stream:
            stream.write(data)
    wanted = [("\u00e9", b"one"), ("\u00e9", b"two"), ("\\xff", b"three"), ("\\xff", b"four")]
    digests = [hashlib.sha256(data).hexdigest() for _, data in wanted]
    found = recheck(tmp_path, [(path, digest) for (path, _), digest in zip(wanted, digests, strict=True)])
    assert [content.sha256 for content in found] == digests


@pytest.mark.parametrize(
    ("then", "now", "same_text"),
    [
        (b"one\ntwo\n", b"one\r\ntwo\r\n", True),
        (b"one\r\ntwo", b"one\ntwo", True),
        (b"one\n", b"one\r\r\n", False),
        (b"one\rtwo\n", b"one\rtwo\r\n", True),
        (b"one\r", b"one\n", False),
        (b"one\n", b"two\r\n", False),
        (b"x" * (1 << 20) + b"\n", b"x" * (1 << 20) + b"\r\n", True),  # the pair lies across two reads
        (b"x" * ((1 << 20) - 1) + b"\n", b"x" * ((1 << 20) - 1) + b"\r\n", True),
    ],
)
def test_a_file_that_differs_in_its_line_ends_alone_is_told_apart(
    tmp_path: Path, then: bytes, now: bytes, same_text: bool
) -> None:
    (tmp_path / "a.txt").write_bytes(now)
    recorded = hashlib.sha256(then).hexdigest()
    (found,) = recheck(tmp_path, [("a.txt", recorded)])
    assert found.sha256 == hashlib.sha256(now).hexdigest()
    assert (recorded in found.line_ends) is same_text
