"""Finds the repository around a folder, by reading files.

Git is not asked, because git refuses a repository that belongs to another user, and because starting it in a repository
that we know nothing about is what :mod:`~passdown.git.shadow` exists to avoid.

A repository has a *worktree* (the checked-out files), a *git directory* of that worktree (HEAD, index, our state) and a
*common directory* (objects, refs, configuration). In a linked worktree the last two differ.

Public operations: :func:`find_repository`, :func:`git_dir_of`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from passdown.git.config import BadConfig, as_bool, read_config
from passdown.git.files import read_regular
from passdown.kernel.errors import PassdownError

ObjectFormat = Literal["sha1", "sha256"]

_POINTER_BYTES: Final = 64 * 1024
_HEAD: Final = re.compile(rb"ref:[ \t]*refs/\S[^\n]*\n?|[0-9a-f]{40}(?:[0-9a-f]{24})?\s*")
_HARMLESS_EXTENSIONS: Final = frozenset(
    {b"noop", b"noop-v1", b"partialclone", b"preciousobjects", b"relativeworktrees", b"worktreeconfig"}
)
_GUIDANCE: Final = {
    "bare": "Nothing is checked out here: change into a worktree, or make one with `git worktree add`.",
    "broken_link": "The file `.git` leads to a git directory that is gone: try `git worktree repair` in the repository"
    " that it belonged to, or use another worktree.",
    "unreadable": "Reading this folder was refused: check its permissions.",
}
_REFTABLE: Final = (
    "Refs in a reftable are not supported: convert them with `git refs migrate --ref-format=files`, or work in a clone"
    " made with `git clone --ref-format=files`."
)
_NEED_FORMAT_1: Final = frozenset(
    {b"objectformat", b"refstorage", b"compatobjectformat", b"relativeworktrees", b"noop-v1"}
)


@dataclass(frozen=True)
class Repository:
    """Where a repository lies. All three paths are absolute, without links; they may hold any bytes but NUL.

    ``worktree`` root of the checked-out files, ``git_dir`` that worktree's own git directory, ``common_dir`` the git
    directory of all worktrees (the same outside of linked ones), ``object_format`` the hash that names objects.
    """

    worktree: Path
    git_dir: Path
    common_dir: Path
    object_format: ObjectFormat


def find_repository(start: Path) -> Repository:
    """The repository whose worktree holds ``start`` (a folder, or a file in it), walking up to the root.

    ``GIT_DIR`` and its kin in the environment, and ``core.worktree`` in the repository, have no say. Raises
    ``not_a_repository`` when there is none, or only one without a worktree (``rule`` tells ``absent``, ``bare``,
    ``broken_link`` or ``unreadable``); ``git_unsupported`` with ``feature`` when its format is not one that can
    be read here; ``git_failed`` when its configuration is not one.
    """
    folder = Path(os.path.realpath(start))
    try:
        if not folder.is_dir():
            folder = folder.parent
    except OSError as error:
        raise _no_worktree("unreadable") from error
    for candidate in (folder, *folder.parents):
        git_dir = git_dir_of(candidate)
        if git_dir is not None:
            return _describe(candidate, git_dir)
        if _is_git_dir(candidate):
            raise _no_worktree("bare")
    raise PassdownError("not_a_repository", rule="absent")


def git_dir_of(worktree: Path) -> Path | None:
    """The git directory that ``.git`` in this very folder names; None when there is none.

    ``.git`` is a git directory, a link to one, or a file ``gitdir: PATH``. A file that leads nowhere raises
    ``not_a_repository`` with rule ``broken_link``, as git would refuse too; a folder that is no git directory is
    passed over.
    """
    marker = worktree / ".git"
    try:
        pointer = read_regular(marker, _POINTER_BYTES)
        if pointer is None:
            found = Path(os.path.realpath(marker))
            return found if _is_git_dir(found) else None
    except OSError as error:
        raise _no_worktree("unreadable") from error
    if pointer.startswith(b"gitdir: ") and len(pointer) <= _POINTER_BYTES:
        found = _beside(worktree, pointer[8:])
        if _is_git_dir(found):
            return found
    raise _no_worktree("broken_link")


def _no_worktree(rule: str) -> PassdownError:
    return PassdownError("not_a_repository", rule=rule, guidance=_GUIDANCE[rule])


def _beside(folder: Path, pointer: bytes) -> Path:
    """The path in a pointer file, taken relative to ``folder``."""
    return Path(os.path.realpath(folder / os.fsdecode(pointer.rstrip(b"\r\n").split(b"\0")[0])))


def _common_dir(git_dir: Path) -> Path:
    pointer = read_regular(git_dir / "commondir", _POINTER_BYTES)
    return _beside(git_dir, pointer) if pointer else git_dir


def _is_git_dir(path: Path) -> bool:
    """Whether git would take this folder for a git directory: a HEAD that reads like one, objects and refs."""
    try:
        if not _has_head(path / "HEAD"):
            return False
        common = _common_dir(path)
        return (common / "objects").is_dir() and (common / "refs").is_dir()
    except OSError:
        return False  # a folder that cannot be read is none that we could use


def _has_head(head: Path) -> bool:
    if head.is_symlink():  # the form of HEAD before symbolic refs were files
        return os.readlink(head).startswith("refs/")  # noqa: PTH115  the text of the link, not a path
    data = read_regular(head, _POINTER_BYTES)
    return data is not None and _HEAD.fullmatch(data) is not None


def _describe(worktree: Path, git_dir: Path) -> Repository:
    try:
        common = _common_dir(git_dir)
        pairs = dict(read_config(common / "config"))
    except BadConfig as error:
        raise PassdownError("git_failed", operation="read_config", status=128, rule="bad_config") from error
    except OSError as error:
        raise PassdownError("git_failed", operation="read_config", status=128, rule="unreadable") from error
    if common == git_dir and as_bool(pairs.get(b"core.bare", b"false")):
        raise _no_worktree("bare")
    return Repository(worktree, git_dir, common, _object_format(pairs))


def _object_format(pairs: dict[bytes, bytes | None]) -> ObjectFormat:
    """Checks the format version and its extensions; the answer is the hash of the repository.

    The names told in ``feature`` are ours: an extension that nobody here knows is ``unknown_extension``.
    """
    version = pairs.get(b"core.repositoryformatversion", b"0")
    if version not in (b"0", b"1"):
        raise PassdownError("git_unsupported", feature="repository_format")
    extensions = {key[11:]: value for key, value in pairs.items() if key.startswith(b"extensions.")}
    hash_name = extensions.pop(b"objectformat", b"sha1")
    if extensions.get(b"refstorage") == b"files":
        del extensions[b"refstorage"]
    if extensions.get(b"refstorage") == b"reftable":
        raise PassdownError("git_unsupported", feature="reftable", guidance=_REFTABLE)
    if b"refstorage" in extensions:
        raise PassdownError("git_unsupported", feature="refstorage")
    if b"compatobjectformat" in extensions:
        raise PassdownError("git_unsupported", feature="compatobjectformat")
    if version == b"1" and not extensions.keys() <= _HARMLESS_EXTENSIONS:
        raise PassdownError("git_unsupported", feature="unknown_extension")
    if version == b"0" and (extensions.keys() & _NEED_FORMAT_1 or b"extensions.objectformat" in pairs):
        raise PassdownError("git_unsupported", feature="repository_format")
    if hash_name == b"sha1":
        return "sha1"
    if hash_name == b"sha256":
        return "sha256"
    raise PassdownError("git_unsupported", feature="objectformat")
