"""Descriptors of the source types whose facts a reader takes or a caller refers to.

A descriptor is the whole body of such a source. Passdown's own reader fills every member; another caller may know less
and leaves the rest null. Never a diff, never file content, never an e-mail address.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from passdown.kernel import limits
from passdown.kernel.text import TextRefused, normalise_identifier, normalise_text
from passdown.kernel.wire import Count, Identifier, Sha256Hex, Wire, identifier, text

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
Mode = Literal["100644", "100755", "120000"]
SUBJECT_CHARS = 1_000
AUTHOR_CHARS = 256
REF_CHARS = 1_024
MAX_PARENTS = 256
MAX_REMOTE_REFS = 100


MAX_FAILING = 100
MAX_NAME = 512
CommitBasis = Literal["report", "said"]


def _address(value: str) -> str:
    """An absolute ``http`` or ``https`` address of at most 2,048 characters without a name or password in it."""
    try:
        checked = normalise_identifier(value, max_chars=limits.URL)
        parts = urlsplit(checked)
        rule = (
            "scheme"
            if parts.scheme not in ("http", "https")
            else "credentials"
            if "@" in parts.netloc
            else "host"
            if not parts.hostname
            else None
        )
    except TextRefused as refused:
        rule = refused.rule
    except ValueError:
        rule = "not_an_address"
    if rule is not None or any(char.isspace() for char in checked):
        raise PydanticCustomError("text", "{rule}", {"rule": rule or "not_an_address"})
    return checked


def _is_none(value: object) -> bool:
    return value is None


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
    ``parents_total`` and ``remote_refs_total`` are there only where not all of them are listed.
    """

    oid: Oid
    parents: Annotated[tuple[Oid, ...], Field(max_length=MAX_PARENTS)] | None = None
    author: Signature | None = None
    committer: Signature | None = None
    subject: Annotated[str, text(SUBJECT_CHARS, required=False)] | None = None
    subject_chars: Count | None = None
    paths: Annotated[tuple[PathChange, ...], Field(max_length=limits.COMMIT_PATHS)] | None = None
    paths_total: Count | None = None
    remote_refs: Annotated[tuple[Annotated[str, text(REF_CHARS)], ...], Field(max_length=MAX_REMOTE_REFS)] | None = None
    # A body that says nothing of these has the same bytes, and so the same identity, as before they were known.
    parents_total: Count | None = Field(default=None, exclude_if=_is_none)
    remote_refs_total: Count | None = Field(default=None, exclude_if=_is_none)


class FileFacts(Wire):
    """One file by its path relative to the root of the worktree, with the digest of its bytes and HEAD at that time."""

    path: PathText
    sha256: Sha256Hex
    size: Count
    commit: Oid | None = None


class WorktreeEntry(Wire):
    """One path that differs from HEAD; ``sha256`` of the bytes in the worktree, null when deleted or not hashed.

    ``mode``, where it is known: a file, an executable file or a symbolic link lies there, in git's words.
    """

    path: PathText
    status: Annotated[str, identifier(32)]
    staged: bool
    size: Count | None
    sha256: Sha256Hex | None
    mode: Mode | None = Field(default=None, exclude_if=_is_none)


class WorktreeFacts(Wire):
    """Everything uncommitted at one moment, without content; what did not fit is counted.

    ``workspace_instance_id`` is the opaque name of the worktree that was read, left out where it has none: the same
    files in another worktree are other files.
    """

    head: Oid | None
    entries: Annotated[tuple[WorktreeEntry, ...], Field(max_length=limits.WORKTREE_PATHS)]
    omitted_paths: Count
    omitted_bytes: Count
    workspace_instance_id: Identifier | None = Field(default=None, exclude_if=_is_none)


class TestReportFacts(Wire):
    """Counts of a test report and the names of what failed; never a message, never output.

    ``path`` is relative to the worktree, or the file's name alone where it lies outside; ``sha256`` and ``size`` are
    those of the file. ``declared`` is what the suites say they have where that differs from ``tests``: the report was
    cut off. ``commit`` is what the tests ran on, and ``commit_basis`` how that is known: the report names it, or
    somebody said so. It is never taken from HEAD or from the time of the file.
    """

    __test__ = False  # the test runner is not meant

    path: PathText | None = None
    sha256: Sha256Hex
    size: Count
    tests: Count
    failures: Count
    errors: Count
    skipped: Count
    failing: Annotated[tuple[Annotated[str, text(MAX_NAME)], ...], Field(max_length=MAX_FAILING)] = ()
    failing_total: Count = 0
    declared: Count | None = None
    commit: Oid | None = None
    commit_basis: CommitBasis | None = None

    @model_validator(mode="after")
    def _whole(self) -> TestReportFacts:
        if (self.commit is None) != (self.commit_basis is None):
            raise PydanticCustomError("together", "commit_and_basis_go_together")
        if self.failures + self.errors + self.skipped > self.tests or len(self.failing) > self.failing_total:
            raise PydanticCustomError("counts", "counts_do_not_add_up")
        return self


class DocumentFacts(Wire):
    """An adopted document: its role, where it lies in the project, and the digest of its bytes."""

    role: Annotated[str, identifier(64)]
    path: PathText
    sha256: Sha256Hex
    size: Count | None = None


class UrlFacts(Wire):
    """An address that somebody refers to. It is never fetched; ``sha256`` is what the caller says was there."""

    url: Annotated[str, AfterValidator(_address)]
    sha256: Sha256Hex | None = None


FACTS_OF: dict[str, type[Wire]] = {
    "git_commit": GitCommitFacts,
    "file": FileFacts,
    "worktree": WorktreeFacts,
    "test_report": TestReportFacts,
    "document": DocumentFacts,
    "url": UrlFacts,
}
ReaderType = Literal["git_commit", "file", "worktree", "test_report", "document", "url"]
