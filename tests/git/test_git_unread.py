"""What may not be read is said: a folder that cannot be opened never makes a worktree look clean."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from git_support import Repo

from passdown.git.locate import find_repository
from passdown.git.reader import GitReader

NOBODY = 65_534


def _status_as_nobody(path: Path, answer: Connection) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    os.environ["HOME"] = str(path)
    with GitReader(find_repository(path)) as git:
        status = git.status()
    answer.send((status.clean, status.notes))


def test_a_folder_that_cannot_be_opened_is_a_note_of_the_status() -> None:
    # Not below the folder of pytest, which other users may not enter.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        repo = Repo(path / "repo")
        repo.commit("First", {"a.txt": "1"})
        hidden = path / "repo" / "hidden"
        hidden.mkdir()
        (hidden / "new.txt").write_text("x", encoding="utf-8")
        subprocess.run(["chown", "-R", str(NOBODY), str(path / "repo")], check=os.geteuid() == 0)
        hidden.chmod(0)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=_status_as_nobody, args=(path / "repo", there))
        child.start()
        try:
            assert here.poll(60)
            assert here.recv() == (True, ("unreadable_folder",))
        finally:
            child.join(10)
            hidden.chmod(0o755)
            here.close()
            there.close()
