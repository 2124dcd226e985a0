"""What lies now at paths that were recorded earlier: the other half of a worktree reading.

A recorded path went through NFC and shows undecodable bytes as ``\\xNN``; the disk may hold another spelling of the
same name. Each spelling is tried, so that a file is not called gone for the way its name was written down, nor changed
because two files have names that were written down alike. A path that ends in ``/`` is a repository inside this one: it
is present or gone, but has no digest. Reading only.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from passdown.git.files import GONE, Content, hash_inside
from passdown.kernel.limits import WORKTREE_HASHED_BYTES

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


def recheck(worktree: Path, recorded: Iterable[tuple[str, str | None]]) -> list[Content]:
    """What lies at each path now, in order; with each path goes the digest that was recorded, or None.

    Of several spellings the one whose digest is the recorded one counts, else the first that is there. A file with
    another digest also has its ``line_ends``. At most 64 MiB are hashed in all; a file over that is present without a
    digest. A path that is absolute, leaves the worktree or enters ``.git`` was never a reading of ours and counts as
    gone.
    """
    root = os.open(worktree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        look = _Look(root)
        return [look.at(path, digest) for path, digest in recorded]
    finally:
        os.close(root)


class _Look:
    """Looks under an open folder as long as the bytes last that may be hashed."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._rest = WORKTREE_HASHED_BYTES

    def at(self, path: str, digest: str | None) -> Content:
        first, where = GONE, b""
        for spelling in _spellings(path):
            content = self._hash(spelling)
            if digest is not None and content.sha256 == digest:
                return content
            if first.kind == "gone":
                first, where = content, spelling
        if digest is not None and first.kind == "file" and first.sha256 is not None:
            again = self._hash(where, line_ends=True)  # only now, since it takes longer and few files change
            return again if again.sha256 is not None else first
        return first

    def _hash(self, path: bytes, *, line_ends: bool = False) -> Content:
        content = hash_inside(self._root, path, self._rest, line_ends=line_ends)
        self._rest -= (content.size or 0) if content.sha256 else 0
        return content


def _spellings(path: str) -> Iterator[bytes]:
    path = path.removesuffix("/")
    try:
        composed = path.encode()
        decomposed = unicodedata.normalize("NFD", path).encode()
    except UnicodeEncodeError:
        return
    raw = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), composed)
    for spelling in dict.fromkeys((composed, decomposed, raw)):
        components = spelling.lower().split(b"/")
        if b"\0" not in spelling and not any(part in (b"", b".", b"..", b".git") for part in components):
            yield spelling
