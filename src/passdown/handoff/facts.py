"""Descriptors of the source types whose facts a reader takes: commit, file, worktree.

A descriptor is the whole body of such a source. Passdown's own reader fills every member; another caller may know less
and leaves the rest null. Never a diff, never file content, never an e-mail address.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from passdown.kernel import limits
from passdown.kernel.text import TextRefused, normalise_text
from passdown.kernel.wire import Count, Sha256Hex, Wire, identifier, text

Oid = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]
PATH_CHARS = 4_096


def _name(value: str) -> str:
    """A path in NFC. CR LF stays: in a name it is no line end, and the file is found by it again."""
    try:
        return "\r\n".join(normalise_text(part, max_chars=PATH_CHARS, required=False) for part in value.split("\r\n"))
    except TextRefused as refused:
        raise PydanticCustomError("text", "{rule}", {"rule": refused.rule}) from None


# The length is that in NFC, so it is looked at last.
PathText = Annotated[str, AfterValidator(_name), Field(min_length=1, max_length=PATH_CHARS)]
SignedInt = Annotated[int, Field(ge=-limits.MAX_SAFE_INTEGER, le=limits.MAX_SAFE_INTEGER)]
SUBJECT_CHARS = 1_000
AUTHOR_CHARS = 256


class Signature(Wire):
    """Author or committer: name, time in seconds since 1970 UTC as git has it, offset in minutes."""

    name: Annotated[str, text(AUTHOR_CHARS, required=False)]
    time: SignedInt
    offset_minutes: SignedInt


class PathChange(Wire):
    """One changed path against the first parent; null counts mean a binary file."""

    path: PathText
    added: Count | None
    deleted: Count | None


class GitCommitFacts(Wire):
    """Header of a commit. ``subject_chars`` and ``paths_total`` count what is there, listed or not.

    ``remote_refs``: remote-tracking refs that contained the commit when it was read; null when nobody looked.
    """

    oid: Oid
    parents: Annotated[tuple[Oid, ...], Field(max_length=256)] | None = None
    author: Signature | None = None
    committer: Signature | None = None
    subject: Annotated[str, text(SUBJECT_CHARS, required=False)] | None = None
    subject_chars: Count | None = None
    paths: Annotated[tuple[PathChange, ...], Field(max_length=limits.COMMIT_PATHS)] | None = None
    paths_total: Count | None = None
    remote_refs: Annotated[tuple[Annotated[str, text(1_024)], ...], Field(max_length=100)] | None = None


class FileFacts(Wire):
    """One file by its path relative to the root of the worktree, with the digest of its bytes and HEAD at that time."""

    path: PathText
    sha256: Sha256Hex
    size: Count
    commit: Oid | None = None


class WorktreeEntry(Wire):
    """One path that differs from HEAD; ``sha256`` of the bytes in the worktree, null when deleted or not hashed."""

    path: PathText
    status: Annotated[str, identifier(32)]
    staged: bool
    size: Count | None
    sha256: Sha256Hex | None


class WorktreeFacts(Wire):
    """Everything uncommitted at one moment, without content; what did not fit is counted."""

    head: Oid | None
    entries: Annotated[tuple[WorktreeEntry, ...], Field(max_length=limits.WORKTREE_PATHS)]
    omitted_paths: Count
    omitted_bytes: Count


FACTS_OF: dict[str, type[Wire]] = {"git_commit": GitCommitFacts, "file": FileFacts, "worktree": WorktreeFacts}
ReaderType = Literal["git_commit", "file", "worktree"]
