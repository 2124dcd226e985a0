"""Bounded, careful reads of single files.

Files of a repository may be anything: a pipe that never answers, a link out of the worktree, a folder that turns into
a link while it is read. Every read here opens without following the last component (inside a worktree: any component),
without blocking, and looks at what was opened before it reads.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from passdown.git.facts import Mode

_CHUNK: Final = 1024 * 1024
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


def read_regular(
    path: Path | bytes | str, limit: int, *, dir_fd: int | None = None, follow: bool = True
) -> bytes | None:
    """At most ``limit + 1`` bytes of a regular file, so that a caller sees when it is too large.

    None when there is no such regular file. Other failures (permission, I/O) raise ``OSError``.
    """
    try:
        fd = os.open(path, _FILE_FLAGS | (0 if follow else os.O_NOFOLLOW), dir_fd=dir_fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        parts: list[bytes] = []
        wanted = limit + 1
        while wanted > 0 and (part := os.read(fd, min(wanted, _CHUNK))):
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def copy_regular(source: Path, target: Path) -> bool:
    """Copies a regular file with its modification time; False when there is none.

    The time matters: git compares an index's own time with those of the files in it to tell which may have changed
    within one tick of the clock.
    """
    try:
        fd = os.open(source, _FILE_FLAGS)
    except FileNotFoundError:
        return False
    with os.fdopen(fd, "rb", buffering=0) as reader:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            return False
        with target.open("wb", buffering=0) as writer:
            while part := reader.read(_CHUNK):
                view = memoryview(part)
                while view:
                    view = view[writer.write(view) :]
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    return True


@dataclass(frozen=True, slots=True)
class Content:
    """What lies at a path. ``kind`` is ``file``, ``link``, ``gone``, ``unreadable`` or ``other`` (folder, pipe, ...).

    ``size`` is None for ``gone`` and ``other``. ``sha256`` is None where nothing was hashed. ``crlf`` tells that the
    hashed bytes hold CR LF. ``mode`` is None for what is neither a file nor a link. ``line_ends``, where it was asked
    for: the digests that the file would have with LF and with CR LF at the end of every line.
    """

    kind: str
    size: int | None = None
    sha256: str | None = None
    crlf: bool = False
    mode: Mode | None = None
    line_ends: frozenset[str] = frozenset()


GONE: Final = Content("gone")
OTHER: Final = Content("other")


def hash_inside(root_fd: int, path: bytes, budget: int, *, line_ends: bool = False) -> Content:
    """Hashes the file or link target at ``path`` under the open folder ``root_fd``, if it fits into ``budget`` bytes.

    No component of the path is followed through a link: what lies behind one counts as gone. ``line_ends`` also asks
    for the digests with other line ends.
    """
    *folders, name = path.split(b"/")
    opened: list[int] = []
    parent = root_fd
    try:
        for folder in folders:
            parent = os.open(folder, _FOLDER_FLAGS, dir_fd=parent)
            opened.append(parent)
        return _hash_at(parent, name, budget, line_ends)
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    except OSError as error:
        return GONE if error.errno == errno.ELOOP else Content("unreadable")
    finally:
        for fd in opened:
            os.close(fd)


def _hash_at(parent: int, name: bytes, budget: int, line_ends: bool) -> Content:
    facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISLNK(facts.st_mode):
        target = os.readlink(name, dir_fd=parent)
        digest = hashlib.sha256(target).hexdigest() if len(target) <= budget else None
        return Content("link", len(target), digest, mode="120000")
    if not stat.S_ISREG(facts.st_mode):
        return OTHER
    if facts.st_size > budget:
        return Content("file", facts.st_size, mode=_mode(facts))
    try:
        fd = os.open(name, _FILE_FLAGS | os.O_NOFOLLOW, dir_fd=parent)
    except PermissionError:
        return Content("unreadable", facts.st_size, mode=_mode(facts))
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            return OTHER
        content = _hash_open(fd, budget, facts)
        if line_ends and content.sha256 is not None:
            os.lseek(fd, 0, os.SEEK_SET)
            return replace(content, line_ends=_line_ends(fd, budget))
        return content
    finally:
        os.close(fd)


def _mode(facts: os.stat_result) -> Mode:
    return "100755" if facts.st_mode & stat.S_IXUSR else "100644"


def _line_ends(fd: int, budget: int) -> frozenset[str]:
    """The digests of the rest of the file with one line end throughout: LF, and CR LF. Only CR LF and LF end a line."""
    short, long = hashlib.sha256(), hashlib.sha256()
    held = b""  # a CR at the end of a piece may be half of a line end
    while budget >= 0 and (part := os.read(fd, _CHUNK)):
        budget -= len(part)
        part = held + part
        held = b"\r" if part.endswith(b"\r") else b""
        part = part.removesuffix(held).replace(b"\r\n", b"\n")
        short.update(part)
        long.update(part.replace(b"\n", b"\r\n"))
    short.update(held)
    long.update(held)
    return frozenset({short.hexdigest(), long.hexdigest()})


def _hash_open(fd: int, budget: int, facts: os.stat_result) -> Content:
    digest = hashlib.sha256()
    size = 0
    crlf = False
    last = b""
    while part := os.read(fd, _CHUNK):
        size += len(part)
        if size > budget:  # it grew while it was read
            return Content("file", max(size, facts.st_size), mode=_mode(facts))
        digest.update(part)
        crlf = crlf or b"\r\n" in part or (last == b"\r" and part[:1] == b"\n")
        last = part[-1:]
    return Content("file", size, digest.hexdigest(), crlf, _mode(facts))
