"""What may not be read is said: a folder that cannot be opened never makes a worktree look clean."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from git_support import Repo

from passdown.git.locate import find_repository
from passdown.git.reader import GitReader

NOBODY = 65_534


def _status_as_nobody(path: Path, home: Path, answer: Connection) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    os.environ["HOME"] = str(home)
    with GitReader(find_repository(path)) as git:
        status = git.status()
    answer.send((status.clean, status.notes))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; not below that of pytest, which other users may not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        Repo(path / "repo").commit("First", {"a.txt": "1"})
        yield path


def as_nobody(folder: Path, closed: Path, home: Path) -> tuple[bool, tuple[str, ...]]:
    """Whether the worktree is clean, and the notes, for a user to whom ``closed`` is."""
    subprocess.run(["chown", "-R", str(NOBODY), str(folder)], check=os.geteuid() == 0)
    closed.chmod(0)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_status_as_nobody, args=(folder / "repo", home, there))
    child.start()
    try:
        assert here.poll(60)
        answer: tuple[bool, tuple[str, ...]] = here.recv()
        return answer
    finally:
        child.join(10)
        closed.chmod(0o755)
        here.close()
        there.close()


def test_a_folder_that_cannot_be_opened_is_a_note_of_the_status(open_folder: Path) -> None:
    hidden = open_folder / "repo" / "hidden"
    hidden.mkdir()
    (hidden / "new.txt").write_text("x", encoding="utf-8")
    assert as_nobody(open_folder, hidden, open_folder) == (True, ("unreadable_folder",))


@pytest.mark.parametrize("closed", ["home", "home/.config/git", "home/.config/git/ignore", "home/.gitconfig"])
def test_a_home_that_cannot_be_read_is_a_note_and_no_failure(open_folder: Path, closed: str) -> None:
    """Catches a handoff that fails for a setting of the user's, and rules that are left out without a word."""
    rules = open_folder / "home" / ".config" / "git"
    rules.mkdir(parents=True)
    (rules / "ignore").write_text("*.log\n", encoding="utf-8")
    (open_folder / "home" / ".gitconfig").write_text("[core]\n\tautocrlf = false\n", encoding="utf-8")
    assert as_nobody(open_folder, open_folder / closed, open_folder / "home") == (True, ("user_config_unreadable",))
