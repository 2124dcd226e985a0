"""What the reader tells: immutable values, without behaviour.

Object ids are full lower-case hexadecimal, 40 digits (SHA-1) or 64 (SHA-256). Paths are relative to the root of the
worktree and use ``/``. Text of the repository is shown as it is, undecodable bytes as ``\\xNN``; it is never escaped or
shortened here. No value holds an e-mail address, a diff, or content of a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Relation = Literal["same", "ahead", "behind", "diverged", "no_head", "commit_missing", "shallow"]
"""How HEAD stands to a cited commit: ``ahead`` HEAD descends from it, ``behind`` HEAD is an ancestor of it.

The last three say why that is not known: there is no commit here yet, an object that decides is not here, or it is not
here and the clone is shallow, so that fetching more history may bring it.
"""

EntryStatus = Literal["modified", "added", "deleted", "untracked", "type_changed", "conflicted"]
"""What happened to a path since HEAD. There is no ``renamed``: a rename is a guess, its two paths are facts."""

Doubt = Literal["filter_not_run", "line_endings"]
"""Why a path may only look modified: it passes through a filter, which is never run; it holds CR LF."""

Mode = Literal["100644", "100755", "120000"]
"""What lies at a path, in git's words: a file, a file that its owner may execute, a symbolic link."""

Note = Literal[
    "filter_not_run",
    "line_endings",
    "nested_repository_not_read",
    "repository_attributes_not_read",
    "repository_excludes_not_read",
    "submodule_not_entered",
    "unreadable_file",
    "unreadable_folder",
    "user_config_unreadable",
]
"""Why a status may differ from what ``git status`` prints there; see :class:`WorktreeStatus`."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where HEAD stands. ``oid`` is None on an unborn branch; ``branch`` is display only, None when ``detached``."""

    oid: str | None
    branch: str | None
    detached: bool


@dataclass(frozen=True, slots=True)
class PathChange:
    """One path that a commit changed. ``added`` and ``deleted`` count lines.

    Both are None where lines cannot be counted: binary content, or a partial clone that lacks the content.
    """

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True)
class Commit:
    """The header of one commit, as the object itself says it: no mailmap, no replacement, no graft.

    Times are seconds since 1970 and may be absurd or negative; what is no number, or none that fits 2^53-1, is 0,
    which is how git itself shows such a date. Offsets are minutes east of UTC. ``subject`` is the first paragraph in
    one line. ``paths`` are the changes against the first parent (a root commit: against nothing), at most 500 in the
    order of the tree; ``paths_total`` counts all of them. It is None, with no paths, where the changes were not read:
    they were not asked for, or the parent lies beyond the boundary of a shallow or partial clone.
    """

    oid: str
    parents: tuple[str, ...]
    author_name: str
    author_time: int
    author_offset: int
    committer_name: str
    committer_time: int
    committer_offset: int
    subject: str
    paths: tuple[PathChange, ...] = ()
    paths_total: int | None = None


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag that leads to a commit. ``oid`` is that commit; ``time`` the tagger's, else the committer's, in seconds."""

    name: str
    oid: str
    time: int


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """One path that differs from HEAD, or is not tracked.

    ``staged`` says that the index differs from HEAD there. ``size`` and ``sha256`` describe the bytes in the worktree
    (a symbolic link: the text of its target). Both are None when nothing is there; ``sha256`` alone is None when the
    file was over the budget, unreadable or no file. A path that ends in ``/`` is a repository inside this
    one, not read; a submodule that is on another commit than HEAD has it is a path without them. ``doubt`` says why a
    modified path may only look so. ``mode`` is that of what lies there, None for what is no file and no link.
    """

    path: str
    status: EntryStatus
    staged: bool
    size: int | None
    sha256: str | None
    doubt: Doubt | None = None
    mode: Mode | None = None


@dataclass(frozen=True, slots=True)
class WorktreeStatus:
    """What is not committed. Tracked changes come first, then untracked paths, each in the order of their bytes.

    ``head`` is the commit that the worktree was compared with, None on an unborn branch. ``omitted_paths`` counts the
    changed paths that are not listed, ``omitted_bytes`` the bytes of changed files, listed or not, that were not
    hashed.

    ``notes`` (sorted): ``filter_not_run``, a changed path has a filter such as LFS, which is never run, so it may only
    look changed; ``line_endings``, a changed file holds CR LF, so it may only look changed;
    ``nested_repository_not_read``; ``repository_attributes_not_read`` and ``repository_excludes_not_read``, the
    repository names such a file, which is the user's right only; ``submodule_not_entered``, one is checked out, and
    what is uncommitted in it is unknown; ``unreadable_file``;
    ``unreadable_folder``, a folder could not be opened, so what is uncommitted in it is unknown;
    ``user_config_unreadable``, the user's own rules may be missing.
    """

    head: str | None
    entries: tuple[StatusEntry, ...]
    omitted_paths: int
    omitted_bytes: int
    clean: bool
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class FileFact:
    """A regular file of the worktree: ``sha256`` of its bytes, ``size``, and the commit that HEAD was on (or None)."""

    path: str
    sha256: str
    size: int
    commit: str | None
