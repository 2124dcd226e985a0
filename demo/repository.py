"""A private clone of the repository that is shown, so that nothing of the original is touched.

The original is read through the shadow reader only. The clone gets its commits by ``git clone --no-hardlinks`` and
copies of what is uncommitted; its own ``origin`` never counts as pushed, since remote-tracking refs are read from the
original.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from passdown.git.facts import WorktreeStatus
from passdown.git.locate import Repository, find_repository

COPIED_BYTES = 64 * 1024 * 1024


class CloneFailed(Exception):
    """git could not clone; the message is git's own last line."""


def environment(folder: Path) -> dict[str, str]:
    """An environment whose only git configuration is that every folder is safe to read."""
    config = folder / "gitconfig"
    config.write_text("[safe]\n\tdirectory = *\n", encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept["HOME"] = kept.get("HOME") or str(folder)
    kept.update(
        GIT_CONFIG_GLOBAL=str(config),
        GIT_CONFIG_NOSYSTEM="1",
        GIT_TERMINAL_PROMPT="0",
        GIT_AUTHOR_NAME="Passdown demo",
        GIT_AUTHOR_EMAIL="demo@localhost",
        GIT_COMMITTER_NAME="Passdown demo",
        GIT_COMMITTER_EMAIL="demo@localhost",
        LC_ALL="C.UTF-8",
    )
    return kept


def git(env: Mapping[str, str], *arguments: str) -> str:
    """Run git and return its output; :class:`CloneFailed` with its last line of complaint otherwise."""
    done = subprocess.run(["git", *arguments], env=dict(env), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CloneFailed((done.stderr.strip().splitlines() or ["git failed"])[-1])
    return done.stdout


def clone(original: Repository, target: Path, env: Mapping[str, str], status: WorktreeStatus) -> Repository:
    """Clone into ``target`` and bring over what is uncommitted in the original."""
    git(env, "clone", "--quiet", "--no-hardlinks", "--template=", "--", str(original.worktree), str(target))
    budget = COPIED_BYTES
    for entry in status.entries:
        source, copy = original.worktree / entry.path, target / entry.path
        # A link of the repository may lead anywhere: nothing is ever written through one.
        if not copy.parent.resolve().is_relative_to(target.resolve()):
            continue
        if entry.status == "deleted":
            copy.unlink(missing_ok=True)
        elif source.is_symlink():
            _make_way(copy)
            copy.symlink_to(source.readlink())
        elif source.is_file() and (entry.size or 0) <= budget:
            budget -= entry.size or 0
            _make_way(copy)
            shutil.copyfile(source, copy)
    return find_repository(target)


def _make_way(copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)


def one_more_commit(repository: Repository, env: Mapping[str, str]) -> None:
    """A commit in the clone, as a colleague might make after the handoff."""
    note = repository.worktree / "after-the-handoff.txt"
    note.write_text("A commit made after the handoff.\n", encoding="utf-8")
    git(env, "-C", str(repository.worktree), "add", "--", note.name)
    git(env, "-C", str(repository.worktree), "commit", "--quiet", "-m", "Work on after the handoff", "--", note.name)
