"""The paths that commits changed, from the records of ``git diff-tree --stdin -z``: pure.

Git prints, for each commit that it is given, one record with the id and then the changes: one record each with
``--numstat`` (two counts and the path, by tabs), two each with ``--name-status`` (a letter, then the path).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from passdown.git.facts import Commit, PathChange
from passdown.git.headers import decode
from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import COMMIT_PATHS

Changes = dict[str, tuple[list[PathChange], int]]
"""Commit -> its first 500 changes and the number of all."""


def collect_counted(records: Iterable[bytes], into: Changes) -> None:
    """Reads ``--numstat``. Git prints all of a commit or nothing, so ``into`` is right even when ``records`` fails."""
    oid = ""
    kept: list[PathChange] = []
    total = 0
    for record in records:
        added, tab, rest = record.partition(b"\t")
        if not tab:
            oid, kept, total = record.decode("ascii"), [], 0
        else:
            total += 1
            if total <= COMMIT_PATHS:
                deleted, _, path = rest.partition(b"\t")
                kept.append(_counted(path, added, deleted))
        into[oid] = (kept, total)


def collect_named(records: Iterator[bytes], into: Changes) -> None:
    """Reads ``--name-status``, as :func:`collect_counted`; no line is counted."""
    oid = ""
    kept: list[PathChange] = []
    total = 0
    for record in records:
        if len(record) > 1:
            oid, kept, total = record.decode("ascii"), [], 0
        else:
            path = next(records, b"")
            total += 1
            if total <= COMMIT_PATHS:
                kept.append(PathChange(decode(path), None, None))
        into[oid] = (kept, total)


def _counted(path: bytes, added: bytes, deleted: bytes) -> PathChange:
    if added == b"-":
        return PathChange(decode(path), None, None)
    try:
        return PathChange(decode(path), int(added), int(deleted))
    except ValueError as error:
        raise PassdownError("git_failed", operation="diff-tree", status=0, rule="unexpected_output") from error


def with_changes(commit: Commit, changes: Changes) -> Commit:
    """The commit with its changes; as it is where they are not known."""
    known = changes.get(commit.oid)
    if known is None:
        return commit
    paths, total = known
    # Written out, since dataclasses.replace takes several times as long and this runs once per commit.
    return Commit(
        commit.oid,
        commit.parents,
        commit.author_name,
        commit.author_time,
        commit.author_offset,
        commit.committer_name,
        commit.committer_time,
        commit.committer_offset,
        commit.subject,
        tuple(paths),
        total,
    )
