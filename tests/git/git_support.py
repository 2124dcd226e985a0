"""Real repositories, made by the plain git program with fixed names and dates."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from passdown.git.locate import find_repository
from passdown.git.reader import GitReader

START = 1_700_000_000


def plain_environment(**extra: str) -> dict[str, str]:
    """An environment in which git sees no configuration but the repository's own."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada Example",
        "GIT_AUTHOR_EMAIL": "ada@example.com",
        "GIT_COMMITTER_NAME": "Carl Example",
        "GIT_COMMITTER_EMAIL": "carl@example.com",
        "GIT_ALLOW_PROTOCOL": "file",
        **extra,
    }


class Repo:
    """A repository at ``path``. Every commit is one minute after the one before, so that ids never change."""

    def __init__(self, path: Path, *, object_format: str = "sha1", create: bool = True) -> None:
        self.path = path
        self.clock = START
        if create:
            path.mkdir(parents=True)
            self.git("init", "-q", "-b", "main", f"--object-format={object_format}")

    def git(self, *arguments: str | bytes, data: bytes | None = None, ok: tuple[int, ...] = (0,), **env: str) -> bytes:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=data or b"",
            capture_output=True,
            env=plain_environment(**env),
            check=False,
        )
        assert done.returncode in ok, (arguments, done.returncode, done.stderr)
        return done.stdout

    def text(self, *arguments: str, **env: str) -> str:
        return self.git(*arguments, **env).decode().strip()

    def write(self, name: str | bytes, data: bytes | str = b"") -> bytes:
        path = os.path.join(os.fsencode(self.path), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        return path

    def commit(self, subject: str | bytes = "Change", files: dict[str, bytes | str] | None = None, **env: str) -> str:
        """Writes the files, adds everything, commits, and returns the id."""
        for name, data in (files or {}).items():
            self.write(name, data)
        self.git("add", "-A")
        self.clock += 60
        date = f"@{self.clock} +0530"
        self.git(
            "commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-F", "-",
            data=subject if isinstance(subject, bytes) else subject.encode(),
            **{"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, **env},
        )  # fmt: skip
        return self.text("rev-parse", "HEAD")

    def raw_commit(self, data: bytes) -> str:
        """A commit object from its bytes, even a malformed one."""
        return self.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", data=data).decode().strip()

    def import_history(self, stream: str) -> None:
        self.git("fast-import", "--quiet", "--force", data=stream.encode())

    def reader(self, **options: float) -> GitReader:
        return GitReader(find_repository(self.path), **options)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def snapshot(folder: Path) -> dict[bytes, tuple[int, int, int, str]]:
    """Every file and folder below with mode, size, modification time and digest."""
    found: dict[bytes, tuple[int, int, int, str]] = {}
    for root, folders, files in os.walk(os.fsencode(folder)):
        for name in folders + files:
            path = os.path.join(root, name)
            facts = os.lstat(path)
            digest = ""
            if name in files and not os.path.islink(path):
                with open(path, "rb") as file:
                    digest = sha256(file.read())
            found[path] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, digest)
    return found


def everything(git: GitReader, oid: str) -> None:
    """Calls each operation of the reader once."""
    head = git.head()
    assert git.is_shallow in (True, False)
    git.commit("HEAD")
    git.commits(50)
    git.commits(50, paths=False)
    git.relation(oid, head.oid)
    git.relations([oid, "f" * len(oid)], head.oid)
    git.remote_refs([oid])
    git.tags(10)
    git.status()
    git.file("a.txt")
