"""What lies now at paths that were recorded earlier: the other half of a worktree reading.

A recorded path went through NFC and shows undecodable bytes as ``\\xNN``; the disk may hold another spelling of the
same name. Each spelling is tried, so that a file is not called gone for the way its name was written down. A path that
ends in ``/`` is a repository inside this one: it is present or gone, but has no digest. Reading only.
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


def recheck(worktree: Path, paths: Iterable[str]) -> dict[str, Content]:
    """What each path is now. At most 64 MiB are hashed in all; a file over that is present without a digest.

    A path that is absolute, leaves the worktree or enters ``.git`` was never a reading of ours and counts as gone.
    """
    found: dict[str, Content] = {}
    budget = WORKTREE_HASHED_BYTES
    root = os.open(worktree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path in paths:
            found[path] = GONE
            for spelling in _spellings(path):
                content = hash_inside(root, spelling, budget)
                if content.kind != "gone":
                    found[path] = content
                    budget -= (content.size or 0) if content.sha256 else 0
                    break
    finally:
        os.close(root)
    return found


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
