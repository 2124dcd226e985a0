"""The host's own reading of a checkout: descriptors for capture, and how the checkout stands to a handoff.

Only the host that has the checkout computes these; a server never guesses them. Nothing is written into the repository
and nothing that it names is run (room ``git``). What does not fit a descriptor is counted, never silently cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from passdown.git.facts import Commit, StatusEntry, WorktreeStatus
from passdown.git.reader import GitReader
from passdown.git.recheck import recheck
from passdown.git.state import load_state
from passdown.handoff.facts import (
    AUTHOR_CHARS,
    MAX_PARENTS,
    MAX_REMOTE_REFS,
    PATH_CHARS,
    REF_CHARS,
    SUBJECT_CHARS,
    WorktreeFacts,
)
from passdown.handoff.operations import MAX_CHANGED_PATHS, PathRemark, UncommittedFiles, Workspace
from passdown.handoff.relation import combine, deciding_commits
from passdown.handoff.uncommitted import compare
from passdown.kernel import limits
from passdown.kernel.canonical import canonical_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.text import LINE_END, nfc
from passdown.kernel.wire import build, validate

T = TypeVar("T")
REMOTE_REFS_BYTES = 64 * 1024
"""Bytes of a body that the names of remote-tracking refs may take."""


def _line(value: str, limit: int) -> str:
    return nfc(LINE_END.sub("\n", value))[:limit]


def _fits(path: str) -> bool:
    return 0 < len(nfc(path)) <= PATH_CHARS


def _fitting(items: Sequence[T], budget: int) -> list[T]:
    """The longest run from the start whose canonical form has at most ``budget`` bytes."""
    kept: list[T] = []
    for item in items:
        budget -= len(canonical_bytes(item)) + 1
        if budget < 0:
            break
        kept.append(item)
    return kept


def commit_descriptor(commit: Commit, remote_refs: Sequence[str]) -> dict[str, Any]:
    """Header facts of a commit as ``GitCommitFacts`` has them."""
    paths = [
        {"path": item.path, "added": item.added, "deleted": item.deleted} for item in commit.paths if _fits(item.path)
    ]
    refs = [name for name in remote_refs if len(nfc(name)) <= REF_CHARS]
    listed = _fitting(refs[:MAX_REMOTE_REFS], REMOTE_REFS_BYTES)
    counts = {}
    if len(commit.parents) > MAX_PARENTS:
        counts["parents_total"] = len(commit.parents)
    if len(listed) < len(remote_refs):
        counts["remote_refs_total"] = len(remote_refs)
    header = {
        "oid": commit.oid,
        "parents": list(commit.parents[:MAX_PARENTS]),
        "author": {
            "name": _line(commit.author_name, AUTHOR_CHARS),
            "time": commit.author_time,
            "offset_minutes": commit.author_offset,
        },
        "committer": {
            "name": _line(commit.committer_name, AUTHOR_CHARS),
            "time": commit.committer_time,
            "offset_minutes": commit.committer_offset,
        },
        "subject": _line(commit.subject, SUBJECT_CHARS),
        "subject_chars": len(nfc(commit.subject)),
        "paths": [],
        "paths_total": commit.paths_total,
        "remote_refs": listed,
        **counts,
    }
    return header | {"paths": _fitting(paths[: limits.COMMIT_PATHS], _left(header))}


def _left(header: Mapping[str, Any]) -> int:
    """Bytes of a captured body that are left for a list which is still empty in ``header``."""
    return limits.SOURCE_BODY_BYTES - len(canonical_bytes(header))


def _entry(entry: StatusEntry) -> dict[str, Any]:
    return {
        "path": entry.path,
        "status": entry.status,
        "staged": entry.staged,
        "size": entry.size,
        "sha256": entry.sha256,
    } | ({} if entry.mode is None else {"mode": entry.mode})


def worktree_descriptor(status: WorktreeStatus, instance_id: str | None = None) -> dict[str, Any]:
    """Every uncommitted path without content, as ``WorktreeFacts`` has it; ``instance_id`` names the worktree."""
    found = [_entry(entry) for entry in status.entries if _fits(entry.path)][: limits.WORKTREE_PATHS]
    total = status.omitted_paths + len(status.entries)
    header: dict[str, Any] = {
        "head": status.head,
        "entries": [],
        "omitted_paths": total,
        "omitted_bytes": status.omitted_bytes,
        "workspace_instance_id": instance_id,
    }
    entries = _fitting(found, _left(header))
    return header | {"entries": entries, "omitted_paths": total - len(entries)}


class Checkout:
    """One repository as this host reads it. Use inside ``with GitReader(...)``."""

    def __init__(self, git: GitReader) -> None:
        self.git = git

    @property
    def instance_id(self) -> str | None:
        """The opaque name of this worktree; None where it was never bound, or is a copy."""
        try:
            state = load_state(self.git.repository).state
        except PassdownError:  # a damaged record names nothing
            return None
        return state.workspace_instance_id if state else None

    def worktree(self) -> dict[str, Any]:
        """Descriptor of everything that is uncommitted here."""
        return worktree_descriptor(self.git.status(), self.instance_id)

    def commit(self, name: str) -> dict[str, Any]:
        """Descriptor of one commit, or ``git_object_not_found``: an invented id has nothing to read."""
        commit = self.git.commit(name)
        return commit_descriptor(commit, self.git.remote_refs([commit.oid]).get(commit.oid, ()))

    def commits(self, found: Sequence[Commit]) -> list[dict[str, Any]]:
        """Descriptors of commits that were read already, with their remote-tracking refs in few git processes."""
        held = self.git.remote_refs([commit.oid for commit in found])
        return [commit_descriptor(commit, held.get(commit.oid, ())) for commit in found]

    def file(self, path: str) -> dict[str, Any]:
        """Descriptor of one regular file of the worktree, or ``git_file_not_found``."""
        facts = self.git.file(path)
        return {"path": facts.path, "sha256": facts.sha256, "size": facts.size, "commit": facts.commit}

    def workspace(self, content: Mapping[str, Any], recorded: WorktreeFacts | None) -> Workspace:
        """How this checkout stands to a handoff. ``recorded`` is the handoff's own worktree source, if it cites one."""
        status = self.git.status()
        oids = deciding_commits(content)
        found = self.git.relations(oids, status.head) if oids else {}
        relation, cause = combine([found[oid] for oid in oids])
        listed = [entry for entry in status.entries if _fits(entry.path)][:MAX_CHANGED_PATHS]
        return build(
            Workspace,
            head=status.head,
            dirty=not status.clean,
            relation=relation,
            unknown_because=cause,
            changed_paths=tuple(nfc(entry.path) for entry in listed),
            uncommitted=None if recorded is None else self._uncommitted(recorded),
            remarks=tuple(
                PathRemark(path=entry.path, remark=entry.doubt) for entry in listed if entry.doubt is not None
            ),
            notes=status.notes,
        )

    def _uncommitted(self, recorded: WorktreeFacts) -> UncommittedFiles:
        wanted = [(entry.path, entry.sha256) for entry in recorded.entries]
        found = compare(
            recorded.entries,
            recheck(self.git.repository.worktree, wanted),
            executable_bits=self.git.has_executable_bits,
            behind_filters=self.git.behind_filters,
        )
        there = recorded.workspace_instance_id
        return UncommittedFiles(
            present=found.present,
            changed=tuple(found.changed),
            gone=tuple(found.gone),
            not_recorded=recorded.omitted_paths + found.not_compared,
            elsewhere=there is not None and there != self.instance_id,
            remarks=tuple(PathRemark(path=path, remark=found.remarks[path]) for path in sorted(found.remarks)),
        )


def worktree_facts(descriptor: Mapping[str, Any] | None) -> WorktreeFacts | None:
    """The facts of a captured worktree source."""
    return None if descriptor is None else validate(WorktreeFacts, dict(descriptor))
