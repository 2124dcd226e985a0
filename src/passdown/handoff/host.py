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
from passdown.handoff.facts import AUTHOR_CHARS, PATH_CHARS, SUBJECT_CHARS, WorktreeFacts
from passdown.handoff.operations import MAX_CHANGED_PATHS, UncommittedFiles, Workspace
from passdown.handoff.relation import combine, deciding_commits
from passdown.kernel import limits
from passdown.kernel.canonical import canonical_bytes
from passdown.kernel.text import LINE_END, nfc
from passdown.kernel.wire import build, validate

T = TypeVar("T")
MAX_REMOTE_REFS = 100
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
    refs = [name for name in remote_refs[:MAX_REMOTE_REFS] if len(nfc(name)) <= 1_024]
    header = {
        "oid": commit.oid,
        "parents": list(commit.parents[:256]),
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
        "remote_refs": _fitting(refs, REMOTE_REFS_BYTES),
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
    }


def worktree_descriptor(status: WorktreeStatus) -> dict[str, Any]:
    """Every uncommitted path without content, as ``WorktreeFacts`` has it."""
    found = [_entry(entry) for entry in status.entries if _fits(entry.path)][: limits.WORKTREE_PATHS]
    total = status.omitted_paths + len(status.entries)
    header: dict[str, Any] = {
        "head": status.head,
        "entries": [],
        "omitted_paths": total,
        "omitted_bytes": status.omitted_bytes,
    }
    entries = _fitting(found, _left(header))
    return header | {"entries": entries, "omitted_paths": total - len(entries)}


class Checkout:
    """One repository as this host reads it. Use inside ``with GitReader(...)``."""

    def __init__(self, git: GitReader) -> None:
        self.git = git

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
        paths = [nfc(entry.path) for entry in status.entries if _fits(entry.path)]
        return build(
            Workspace,
            head=status.head,
            dirty=not status.clean,
            relation=combine([found[oid] for oid in oids]),
            changed_paths=tuple(paths[:MAX_CHANGED_PATHS]),
            uncommitted=None if recorded is None else self._uncommitted(recorded),
        )

    def _uncommitted(self, recorded: WorktreeFacts) -> UncommittedFiles:
        """Compare by content: a file that was committed since is still there."""
        found = recheck(self.git.repository.worktree, [entry.path for entry in recorded.entries])
        present, not_recorded = 0, recorded.omitted_paths
        changed: list[str] = []
        gone: list[str] = []
        for entry in recorded.entries:
            now = found[entry.path]
            is_gone = now.kind == "gone"
            # A path that was only taken out of the index is deleted too, but its bytes lay there and were read.
            if entry.status == "deleted" and entry.size is None:
                present, changed = (present + 1, changed) if is_gone else (present, [*changed, entry.path])
            elif is_gone:
                gone.append(entry.path)
            elif entry.sha256 is None or now.sha256 is None:
                not_recorded += 1
            elif now.sha256 == entry.sha256:
                present += 1
            else:
                changed.append(entry.path)
        return UncommittedFiles(present=present, changed=tuple(changed), gone=tuple(gone), not_recorded=not_recorded)


def worktree_facts(descriptor: Mapping[str, Any] | None) -> WorktreeFacts | None:
    """The facts of a captured worktree source."""
    return None if descriptor is None else validate(WorktreeFacts, dict(descriptor))
