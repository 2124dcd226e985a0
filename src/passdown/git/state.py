"""Which workstream a worktree is on: ``passdown/worktree.json`` in the worktree's own git directory.

States of a worktree: *absent* (nothing chosen), *present*, *moved* (the worktree was renamed; the choice goes on),
*copied* (the folder was copied together with its git directory; the choice belongs to the original, which still exists,
and is asked for again), *unreadable* (a file that we did not write whole; never guessed at).

Invariants: one ``workspace_instance_id`` is in use at one place at a time; a file is replaced whole or not at all;
the place stays on this machine (it is in the file only to tell moved from copied) and a damaged place is an unreadable
file.

Public operations: :func:`load_state`, :func:`save_state`, :func:`place_fingerprint`, :func:`find_worktree`,
:func:`sibling_states`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from passdown.git.files import read_regular
from passdown.git.locate import Repository, git_dir_of
from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import IDENTIFIER

SCHEMA: Final = "passdown.worktree.v1"
STATE_BYTES: Final = 64 * 1024
STORE_LENGTH: Final = 4_096
MAX_WORKTREES: Final = 256

_FOLDER: Final = "passdown"
_FILE: Final = "worktree.json"
_MEMBERS: Final = ("schema", "workspace_instance_id", "scope_id", "store", "worktree", "git_dir", "fingerprint")


@dataclass(frozen=True, slots=True)
class WorktreeState:
    """The choice of one worktree.

    ``workspace_instance_id`` names this worktree, ``scope_id`` its current workstream (None: none chosen yet), both 1
    to 256 characters; ``store`` says where its handoffs are kept, 1 to 4,096 characters. No control characters in any.
    """

    workspace_instance_id: str
    scope_id: str | None
    store: str
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True)
class LoadedState:
    """What was found. ``state`` is None for ``absent`` and ``copied``.

    ``moved`` still has its state; whoever writes next should save it, so that the new place is recorded.
    """

    state: WorktreeState | None
    reason: Literal["present", "absent", "moved", "copied"]


def load_state(repository: Repository) -> LoadedState:
    """The state of the repository's worktree. Writes nothing.

    Raises ``no_current_workstream`` with rule ``unreadable`` for a file that is damaged, of another schema, above
    64 KiB, not a regular file, or that may not be read.
    """
    found = _read(repository.git_dir)
    if found is None:
        return LoadedState(None, "absent")
    state, recorded_worktree, recorded_git_dir = found
    if (recorded_worktree, recorded_git_dir) == (str(repository.worktree), str(repository.git_dir)):
        return LoadedState(state, "present")
    if _lives_at(Path(recorded_worktree), state.workspace_instance_id):
        return LoadedState(None, "copied")
    return LoadedState(state, "moved")


def save_state(repository: Repository, state: WorktreeState) -> None:
    """Writes the state and the present place, whole or not at all, readable by its owner only.

    Raises ``invalid_request`` with ``field`` for a value outside of its limits, ``file_not_writable`` when the git
    directory does not take the file (or has something else in its place).
    """
    field = _wrong_member(state)
    if field is not None:
        raise PassdownError("invalid_request", field=field, rule="value")
    worktree, git_dir = str(repository.worktree), str(repository.git_dir)
    document = {
        "schema": SCHEMA,
        "workspace_instance_id": state.workspace_instance_id,
        "scope_id": state.scope_id,
        "store": state.store,
        "worktree": worktree,
        "git_dir": git_dir,
        "fingerprint": _fingerprint(worktree, git_dir),
    }
    # Paths may hold any bytes; Python's escapes of such bytes survive JSON as long as it is written in ASCII.
    data = (json.dumps(document, ensure_ascii=True, indent=2) + "\n").encode("ascii")
    if len(data) > STATE_BYTES:
        raise PassdownError("invalid_request", field="store", rule="too_large", limit=STATE_BYTES, actual=len(data))
    try:
        _replace(repository.git_dir, data)
    except OSError as error:
        raise PassdownError("file_not_writable", rule="worktree_state") from error


def find_worktree(repository: Repository, instance_id: str) -> Path | None:
    """Where the worktree of this name lies, among the first 256 of this repository; None where it is gone or unknown.

    Reads the records of the worktrees only. One whose folder was removed is gone, also while git still lists it.
    """
    for state, worktree in _worktrees(repository):
        if state.workspace_instance_id == instance_id:
            return worktree if _lives_at(worktree, instance_id) else None
    return None


def sibling_states(repository: Repository) -> list[WorktreeState]:
    """The choices of the other worktrees of this repository that are still there, that of the main one first."""
    return [
        state
        for state, worktree in _worktrees(repository)
        if worktree != repository.worktree and _lives_at(worktree, state.workspace_instance_id)
    ]


def _worktrees(repository: Repository) -> Iterator[tuple[WorktreeState, Path]]:
    """What the first 256 worktrees of a repository recorded; one that cannot be read is passed over."""
    linked = repository.common_dir / "worktrees"
    try:
        names = sorted(path.name for path in linked.iterdir())[:MAX_WORKTREES]
    except OSError:
        names = []
    for git_dir in (repository.common_dir, *(linked / name for name in names)):
        try:
            found = _read(git_dir)
        except PassdownError:
            continue
        if found is not None:
            yield found[0], Path(found[1])


def place_fingerprint(repository: Repository) -> str:
    """32 hexadecimal digits that name the place of the worktree without telling it."""
    return _fingerprint(str(repository.worktree), str(repository.git_dir))


def _fingerprint(worktree: str, git_dir: str) -> str:
    return hashlib.sha256(os.fsencode(worktree) + b"\0" + os.fsencode(git_dir)).hexdigest()[:32]


def _wrong_member(state: WorktreeState) -> str | None:
    if state.schema != SCHEMA:
        return "schema"
    if not _is_text(state.workspace_instance_id, IDENTIFIER):
        return "workspace_instance_id"
    if state.scope_id is not None and not _is_text(state.scope_id, IDENTIFIER):
        return "scope_id"
    return None if _is_text(state.store, STORE_LENGTH) else "store"


def _is_text(value: object, limit: int) -> bool:
    if not isinstance(value, str) or not 1 <= len(value) <= limit or value != value.strip():
        return False
    return not any(ord(char) < 32 or 127 <= ord(char) < 160 or 0xD800 <= ord(char) < 0xE000 for char in value)


def _unreadable(cause: Exception | None = None) -> PassdownError:
    error = PassdownError("no_current_workstream", rule="unreadable")
    error.__cause__ = cause
    return error


def _read(git_dir: Path) -> tuple[WorktreeState, str, str] | None:
    """The state in a git directory with the recorded worktree and git directory; None when nothing was ever saved."""
    folder = git_dir / _FOLDER
    try:
        # Something of that name that is not what we write (a link, a pipe) is damage, not absence.
        if not os.path.lexists(folder) or (folder.is_dir() and not os.path.lexists(folder / _FILE)):
            return None
        with _open_folder(git_dir) as fd:
            data = read_regular(_FILE, STATE_BYTES, dir_fd=fd, follow=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(error) from error
    if data is None or len(data) > STATE_BYTES:
        raise _unreadable()
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from error
    return _strict(document)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("repeated member")
    return document


def _strict(document: object) -> tuple[WorktreeState, str, str]:
    if not isinstance(document, dict) or document.keys() != set(_MEMBERS):
        raise _unreadable()
    state = WorktreeState(
        document["workspace_instance_id"], document["scope_id"], document["store"], schema=document["schema"]
    )
    worktree, git_dir = document["worktree"], document["git_dir"]
    if _wrong_member(state) or not isinstance(worktree, str) or not isinstance(git_dir, str):
        raise _unreadable()
    try:
        fingerprint = _fingerprint(worktree, git_dir)
    except UnicodeEncodeError as error:
        raise _unreadable(error) from error
    if not worktree.startswith("/") or "\0" in worktree or document["fingerprint"] != fingerprint:
        raise _unreadable()
    return state, worktree, git_dir


def _lives_at(worktree: Path, instance_id: str) -> bool:
    """Whether the worktree that the file was written for is still there with the same id.

    What cannot be looked at is taken to be there: asking again is safe, one id at two places is not.
    """
    try:
        git_dir = git_dir_of(worktree) if worktree.is_dir() else None
        found = _read(git_dir) if git_dir is not None else None
    except PassdownError as error:
        return error.members.get("rule") != "broken_link"
    except OSError:
        return True
    return found is not None and found[0].workspace_instance_id == instance_id


@contextmanager
def _open_folder(git_dir: Path) -> Iterator[int]:
    fd = os.open(git_dir / _FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


def _replace(git_dir: Path, data: bytes) -> None:
    """Writes a new file, makes it durable, and puts it in the place of the old one."""
    (git_dir / _FOLDER).mkdir(0o700, exist_ok=True)
    with _open_folder(git_dir) as folder:
        name = f".{_FILE}.{os.urandom(8).hex()}"
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, _FILE, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(name, dir_fd=folder)
            raise
        os.fsync(folder)
