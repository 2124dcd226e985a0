"""What lies now at recorded paths: other spellings are the same file, and no path leads out of the worktree."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from passdown.git.recheck import recheck


def test_a_file_is_found_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(b"one")
    found = recheck(tmp_path, ["folder/a.txt", "folder/b.txt"])
    assert found["folder/a.txt"].sha256 == hashlib.sha256(b"one").hexdigest()
    assert found["folder/b.txt"].kind == "gone"


def test_a_name_that_the_disk_holds_decomposed_is_not_gone(tmp_path: Path) -> None:
    (tmp_path / "re\u0301sume\u0301.txt").write_bytes(b"cv")
    assert recheck(tmp_path, ["r\u00e9sum\u00e9.txt"])["r\u00e9sum\u00e9.txt"].kind == "file"


def test_a_name_with_bytes_that_are_no_text_is_not_gone(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/latin-\xe9.txt", "wb") as stream:
        stream.write(b"x")
    assert recheck(tmp_path, ["latin-\\xe9.txt"])["latin-\\xe9.txt"].kind == "file"


def test_a_repository_inside_is_there_without_a_digest(tmp_path: Path) -> None:
    (tmp_path / "nested" / ".git").mkdir(parents=True)
    found = recheck(tmp_path, ["nested/", "lost/"])
    assert (found["nested/"].kind, found["nested/"].sha256) == ("other", None)
    assert found["lost/"].kind == "gone"


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/hostname", "a/../../outside.txt", ".git/config", "", "a//b"])
def test_a_path_out_of_the_worktree_is_never_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.txt").write_bytes(b"secret")
    worktree = tmp_path / "worktree"
    (worktree / ".git").mkdir(parents=True)
    (worktree / ".git" / "config").write_bytes(b"x")
    assert recheck(worktree, [path])[path].kind == "gone"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_bytes(b"secret")
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    (worktree / "link").symlink_to(tmp_path / "outside")
    found = recheck(worktree, ["link/a.txt", "link"])
    assert found["link/a.txt"].kind == "gone"
    assert found["link"].sha256 == hashlib.sha256(os.fsencode(tmp_path / "outside")).hexdigest()
