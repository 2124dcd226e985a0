"""The state of the worktree: what git says has changed, and the bytes that lie there.

:func:`parse_status` is pure; :func:`measure` reads files, within the budgets, in the order that git gave.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from passdown.git.facts import Doubt, EntryStatus, Note, StatusEntry
from passdown.git.files import GONE, OTHER, Content, hash_inside
from passdown.git.headers import decode
from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import WORKTREE_HASHED_BYTES, WORKTREE_PATHS

# Of a submodule git compares the commit that it is on, which takes reading two of its files. To look for changes in it
# git would start another git inside, with the submodule's own configuration.
STATUS_ARGUMENTS: Final = (
    "--porcelain=v2",
    "--branch",
    "--no-ahead-behind",
    "-z",
    "--untracked-files=all",
    "--no-renames",
    "--ignore-submodules=dirty",
)


@dataclass(slots=True)
class Change:
    """One changed path. ``present``: bytes in the worktree belong to it."""

    path: bytes
    status: EntryStatus
    staged: bool
    present: bool


@dataclass(slots=True)
class Changes:
    """All changed paths, tracked ones first, and the HEAD that they were compared with."""

    head: str | None = None
    items: list[Change] = field(default_factory=list)


def parse_status(records: Iterable[bytes]) -> Changes:
    """Reads the records of ``git status`` with :data:`STATUS_ARGUMENTS`.

    A path that was removed from the index but lies in the worktree has two records in git; here it is one deleted path
    with bytes present.
    """
    changes = Changes()
    unindexed: dict[bytes, Change] = {}
    for record in records:
        kind = record[:2]
        if kind == b"1 ":
            _, xy, _, _, _, _, _, _, path = record.split(b" ", 8)
            change = _tracked(path, xy.decode("ascii"))
            if xy[:1] == b"D":
                unindexed[path] = change
        elif kind == b"u ":
            change = Change(record.split(b" ", 10)[10], "conflicted", staged=False, present=True)
        elif kind == b"? ":
            known = unindexed.get(record[2:])
            if known is not None:
                known.present = True
                continue
            change = Change(record[2:], "untracked", staged=False, present=True)
        elif record.startswith(b"# branch.oid "):
            oid = record[13:].decode("ascii")
            changes.head = None if oid == "(initial)" else oid
            continue
        elif kind == b"# ":
            continue
        else:
            raise PassdownError("git_failed", operation="status", status=0, rule="unexpected_output")
        changes.items.append(change)
    return changes


def _tracked(path: bytes, xy: str) -> Change:
    """The net effect of the two letters: X is index against HEAD, Y is worktree against index."""
    index, worktree = xy[0], xy[1]
    staged = index != "."
    present = worktree != "D" and index != "D"
    if index == "A" or worktree == "A":  # the second: only the intent to add is recorded
        return Change(path, "added", staged, present)
    if not present:
        return Change(path, "deleted", staged, present=False)
    if "T" in xy:
        return Change(path, "type_changed", staged, present)
    return Change(path, "modified", staged, present)


@dataclass(slots=True)
class Measured:
    """The entries with their digests, and what was left out."""

    entries: list[StatusEntry] = field(default_factory=list)
    omitted_paths: int = 0
    omitted_bytes: int = 0
    notes: set[Note] = field(default_factory=set)


def measure(
    worktree: Path,
    changes: Iterable[Change],
    *,
    max_paths: int = WORKTREE_PATHS,
    max_bytes: int = WORKTREE_HASHED_BYTES,
) -> Measured:
    """Hashes the changed files, the first ``max_paths`` of them, as long as ``max_bytes`` in sum are not exceeded.

    A file that does not fit into what is left of the budget is passed over and its bytes counted; smaller ones after it
    may still fit.
    """
    result = Measured()
    budget = max_bytes
    root = os.open(worktree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for at, change in enumerate(changes):
            listed = at < max_paths
            content = _content(root, change, budget if listed else -1)
            if content.sha256 is None:
                result.omitted_bytes += content.size or 0
            if not listed:
                result.omitted_paths += 1
                continue
            if content.sha256 is not None:
                budget -= content.size or 0
            doubt: Doubt | None = "line_endings" if content.crlf and change.status == "modified" else None
            result.notes.update(_notes(change, content))
            path, mode = decode(change.path), content.mode
            result.entries.append(
                StatusEntry(path, change.status, change.staged, content.size, content.sha256, doubt, mode)
            )
    finally:
        os.close(root)
    return result


def _content(root: int, change: Change, budget: int) -> Content:
    if not change.present:
        return GONE
    if change.path.endswith(b"/"):
        return OTHER
    return hash_inside(root, change.path, budget)


def _notes(change: Change, content: Content) -> Iterable[Note]:
    if change.path.endswith(b"/"):
        yield "nested_repository_not_read"
    if content.kind == "unreadable":
        yield "unreadable_file"


def filtered(output: bytes) -> frozenset[bytes]:
    """The paths for which ``git check-attr -z filter`` named a filter."""
    fields = output.split(b"\0")
    named = zip(fields[0::3], fields[2::3], strict=False)
    return frozenset(path for path, value in named if value not in (b"unspecified", b"unset", b"set"))


def has_open_submodule(worktree: Path, staged: Iterable[bytes]) -> bool:
    """Whether one of the records of ``git ls-files --stage -z`` is a submodule that is checked out in ``worktree``."""
    root = os.fsencode(worktree)
    links = (record.partition(b"\t")[2] for record in staged if record.startswith(b"160000 "))
    return any(os.path.lexists(b"/".join((root, path, b".git"))) for path in links)
