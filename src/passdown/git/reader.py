"""The reader: every question that Passdown asks a repository.

A :class:`GitReader` is a context manager around a shadow of one repository (see :mod:`~passdown.git.shadow`). It keeps
no answer: each method reads anew, so that a long-lived reader sees commits and branches that appear. It writes nothing,
runs nothing that the repository names, and works on repositories of other users, linked worktrees, shallow and partial
clones, SHA-256, detached and unborn HEADs. Submodules are not entered.

Names of commits come from outside: a name that could be taken for an option, a search or several lines is answered as
``git_object_not_found`` before git sees it. Ancestry takes full object ids only, since a branch may be named like an
abbreviated one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final

from passdown.git import ancestry
from passdown.git.changes import Changes, collect_counted, collect_named, with_changes
from passdown.git.checkout import STATUS_ARGUMENTS, Change, filtered, has_open_submodule, measure, parse_status
from passdown.git.config import BadConfig, Pairs, as_bool, read_config
from passdown.git.facts import Commit, FileFact, Head, Relation, StatusEntry, Tag, WorktreeStatus
from passdown.git.files import hash_inside, read_regular
from passdown.git.headers import decode, parse_commit
from passdown.git.locate import Repository
from passdown.git.shadow import OPERATION_SECONDS, Shadow
from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import MAX_SAFE_INTEGER

MAX_LISTED: Final = 100_000
"""At most so many commits or tags are listed at once."""
MAX_RELATED: Final = 4_096
"""At most so many commits are asked about at once."""
NAME_LENGTH: Final = 1_024
"""A commit name may have so many characters."""
PATH_BYTES: Final = 4_096
"""A path in the worktree may have so many bytes."""
FILE_BYTES: Final = 1024 * 1024 * 1024
"""A single file may be this large to be hashed as evidence."""

_FEW: Final = 64
_SHALLOW_BYTES: Final = 16 * 1024 * 1024
_FORBIDDEN_IN_NAMES: Final = re.compile(r"[\x00-\x20\x7f-\x9f]|\^\{/")


class GitReader:
    """Reads one repository; use it in a ``with`` block. ``seconds`` limits each single git process."""

    def __init__(self, repository: Repository, *, seconds: float = OPERATION_SECONDS) -> None:
        self.repository = repository
        self._seconds = seconds
        self._shadow = Shadow(repository, seconds=seconds)
        self._oid = re.compile("[0-9a-f]{64}" if repository.object_format == "sha256" else "[0-9a-f]{40}")

    def __enter__(self) -> GitReader:
        self._shadow.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._shadow.close()

    # --- HEAD and single commits -----------------------------------------------------------------------------------

    def head(self) -> Head:
        """Where HEAD stands now. A branch that names a missing object still has its ``oid``."""
        content = self._shadow.refresh_head().strip()
        answer = self._shadow.run("rev-parse", "--verify", "--quiet", "HEAD", ok_codes=(0, 1)).strip()
        oid = answer.decode("ascii") or None
        if not content.startswith(b"ref:"):
            return Head(oid, None, detached=True)
        ref = content[4:].strip()
        return Head(oid, decode(ref.removeprefix(b"refs/heads/")), detached=False)

    @property
    def is_shallow(self) -> bool:
        """Whether the history was cut off when it was fetched."""
        return bool(self._boundary())

    def commit(self, name: str) -> Commit:
        """One commit with its changed paths.

        ``name`` is an id, an abbreviation, a ref, or one of these with ``~N`` and ``^N``; what names a tag leads to its
        commit. Raises ``git_object_not_found``, also for an object whose bytes do not have the id that it bears: git
        hashes an object before it follows a name to a commit.
        """
        output = self._shadow.run("cat-file", "--batch", stdin=_commit_query(name))
        line, _, rest = output.partition(b"\n")
        parts = line.split(b" ")
        if len(parts) != 3 or parts[1] != b"commit" or not self._oid.fullmatch(parts[0].decode("latin-1")):
            raise PassdownError("git_object_not_found")
        oid, size = parts[0].decode("ascii"), int(parts[2])
        return self._with_paths([parse_commit(oid, rest[:size])])[0]

    def commits(self, limit: int, *, start: str = "HEAD", paths: bool = True) -> list[Commit]:
        """The newest ``limit`` commits (0 to 100,000) reachable from ``start``, in git's order; [] on an unborn branch.

        Without ``paths`` no change is read, which is several times faster. Raises ``git_object_not_found``.
        """
        _check_limit(limit)
        if start == "HEAD":
            oid = self.head().oid
            if oid is None:
                return []
        else:
            oid = self._resolve(start)
        arguments = ("--header", "--encoding=none", "--no-expand-tabs", f"--max-count={limit}", "--end-of-options", oid)
        found: list[Commit] = []
        for record in self._shadow.records("rev-list", *arguments):
            name, _, data = record.partition(b"\n")
            found.append(parse_commit(name.decode("ascii"), data, indent=b"    "))
        return self._with_paths(found) if paths else found

    # --- ancestry --------------------------------------------------------------------------------------------------

    def relation(self, cited: str, head: str | None) -> Relation:
        """How ``head`` stands to the cited commit, seen from the cited one; see :meth:`relations`."""
        return self.relations([cited], head)[cited]

    def relations(self, cited: Sequence[str], head: str | None) -> dict[str, Relation]:
        """How ``head`` stands to each cited commit (at most 4,096 full ids).

        ``same``, ``ahead`` (head descends from it), ``behind`` (head is an ancestor of it), ``diverged`` (neither, also
        without any common history), or why it is not known.

        ``no_head``: head is None (unborn). ``commit_missing``: one of the two is no commit here, or the history between
        them is damaged. ``shallow``: likewise, but the history was cut off when it was fetched, which may be why. Takes
        two to four git processes, however many commits are asked about.
        """
        if len(cited) > MAX_RELATED:
            raise PassdownError("invalid_request", field="cited", rule="too_many", limit=MAX_RELATED, actual=len(cited))
        if head is None:
            return dict.fromkeys(cited, "no_head")
        # What is no id of this repository's own hash cannot be fetched either.
        absent: Relation = "shallow" if self.is_shallow else "commit_missing"
        result = {oid: absent if self._oid.fullmatch(oid) else "commit_missing" for oid in cited}
        known = self._present_commits([head, *result])
        if head not in known:
            return result
        others = [oid for oid in result if oid in known and oid != head]
        if head in result:
            result[head] = "same"
        try:
            result.update(self._walk(others, head))
        except PassdownError as error:
            if error.members.get("status") != 128:  # git's word for an object that is not there
                raise
        return result

    def _walk(self, others: list[str], head: str) -> dict[str, Relation]:
        found: dict[str, Relation] = {}
        if not others:
            return found
        # What is reachable from them and not from head. Git may print too much here (see ancestry), so absence proves
        # that head descends from a commit, presence proves nothing; a path up to head proves that it is behind.
        graph = self._graph([*others, f"^{head}"])
        holding = ancestry.containing(graph, others, [head])
        open_questions: list[str] = []
        for oid in others:
            if oid not in graph:
                found[oid] = "ahead"
            elif holding[oid]:
                found[oid] = "behind"
            else:
                open_questions.append(oid)
        if open_questions:
            found.update(self._decide(open_questions, head))
        return found

    def _decide(self, others: list[str], head: str) -> dict[str, Relation]:
        """Tells ``ahead`` from ``diverged`` on a part of the history that holds every path between them."""
        boundary = self._boundary()
        # Where the history has edges all of it is looked at: an edge below a common ancestor must be seen from both.
        below = [] if boundary else self._below_common(head, *others)
        graph = self._graph([head, *others, *below])
        held = ancestry.containing(graph, [head], others)[head]
        found: dict[str, Relation] = {}
        for oid in others:
            if oid in held:
                found[oid] = "ahead"
            elif not boundary or ancestry.certainly_diverged(graph, head, oid, boundary):
                found[oid] = "diverged"
            else:
                found[oid] = "shallow"
        return found

    def _below_common(self, *oids: str) -> list[str]:
        """A revision argument that leaves out what lies below a common ancestor: no path between them goes there."""
        if len(oids) > _FEW:  # git walks the history once per commit for this
            return []
        base = self._shadow.run("merge-base", "--octopus", *oids, ok_codes=(0, 1)).split()
        return [f"^{base[0].decode('ascii')}^@"] if base else []

    def _graph(self, revisions: list[str]) -> dict[str, tuple[str, ...]]:
        stdin = "".join(f"{revision}\n" for revision in revisions).encode("ascii")
        return ancestry.parse_graph(self._shadow.run("rev-list", "--parents", "--stdin", stdin=stdin))

    # --- refs ------------------------------------------------------------------------------------------------------

    def remote_refs(self, oids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """For each commit (at most 4,096 full ids) the remote-tracking refs that contain it, short and sorted.

        ``origin/HEAD`` is left out, being another name of one of the others. A commit that is not here is contained in
        none. In a shallow clone only what the history at hand proves is told. At most four git processes.
        """
        if len(oids) > MAX_RELATED:
            raise PassdownError("invalid_request", field="oids", rule="too_many", limit=MAX_RELATED, actual=len(oids))
        result: dict[str, tuple[str, ...]] = dict.fromkeys(oids, ())
        listing = self._shadow.run("for-each-ref", "--format=%(objectname)%00%(symref)%00%(refname)", "refs/remotes/")
        tips: dict[str, list[str]] = {}
        for line in listing.split(b"\n")[:-1]:
            target, symref, name = line.split(b"\0")
            if not symref and not name.endswith(b"/HEAD"):
                tips.setdefault(target.decode("ascii"), []).append(decode(name.removeprefix(b"refs/remotes/")))
        present = self._present_commits([*tips, *result])
        wanted = [oid for oid in result if oid in present]
        heads = [oid for oid in tips if oid in present]
        if not wanted or not heads:
            return result
        graph = self._graph([*heads, *self._below_common(*wanted)])
        found: dict[str, list[str]] = {oid: [] for oid in wanted}
        for tip, held in ancestry.containing(graph, heads, wanted).items():
            for commit in held:
                found[commit].extend(tips[tip])
        result.update({oid: tuple(sorted(names)) for oid, names in found.items()})
        return result

    def tags(self, limit: int) -> list[Tag]:
        """The newest ``limit`` tags (0 to 100,000) that lead to a commit, newest first, then by name.

        A tag of a tag leads to the commit behind both; the time is that of the outer tag.
        """
        _check_limit(limit)
        listing = self._shadow.run(
            "for-each-ref", "--format=%(objectname)%00%(creatordate:raw)%00%(refname)", "refs/tags/"
        )
        rows = [line.split(b"\0") for line in listing.split(b"\n")[:-1]]
        stdin = b"".join(b"%s^{commit}\n" % row[0] for row in rows)
        peeled = self._shadow.run("cat-file", "--batch-check", stdin=stdin).split(b"\n")[:-1] if rows else []
        found: list[Tag] = []
        for (_, date, ref), answer in zip(rows, peeled, strict=True):
            oid, _, kind = answer.partition(b" ")
            if kind.startswith(b"commit "):
                found.append(Tag(decode(ref.removeprefix(b"refs/tags/")), oid.decode("ascii"), _seconds(date)))
        found.sort(key=lambda tag: (-tag.time, tag.name))
        return found[:limit]

    # --- the worktree ----------------------------------------------------------------------------------------------

    def status(self) -> WorktreeStatus:
        """Everything in the worktree that is not committed and not ignored, with digests of the bytes that lie there.

        Lists at most 2,000 paths and hashes at most 64 MiB; what is left out is counted. No filter is run: a file that
        passes through one may look modified, which ``notes`` and the entry say. No submodule is entered: only that it
        is on another commit is seen. See :class:`~passdown.git.facts.WorktreeStatus`. Raises ``git_failed`` with rule
        ``content_not_fetched`` where a partial clone lacks what HEAD consists of.
        """
        with Shadow(self.repository, checkout=True, seconds=self._seconds) as shadow:
            try:
                changes = parse_status(shadow.records("status", *STATUS_ARGUMENTS))
            except PassdownError as error:
                if error.members.get("status") != 128 or not self._is_partial():
                    raise
                raise _not_fetched() from error
            try:
                measured = measure(self.repository.worktree, changes.items)
            except OSError as error:
                raise PassdownError("git_failed", operation="status", status=error.errno or 1, rule="io") from error
            entries = _with_filters(shadow, changes.items, measured.entries)
            notes: set[str] = {*measured.notes, *shadow.notes, *(entry.doubt for entry in entries if entry.doubt)}
            if has_open_submodule(self.repository.worktree, shadow.records("ls-files", "--stage", "-z")):
                notes.add("submodule_not_entered")
        return WorktreeStatus(
            head=changes.head,
            entries=tuple(entries),
            omitted_paths=measured.omitted_paths,
            omitted_bytes=measured.omitted_bytes,
            clean=not changes.items,
            notes=tuple(sorted(notes)),  # type: ignore[arg-type]
        )

    @property
    def has_executable_bits(self) -> bool:
        """Whether the executable bits of files mean anything here (``core.fileMode``)."""
        return as_bool(dict(self._config()).get(b"core.filemode", b"true")) is not False

    def behind_filters(self, paths: Sequence[str]) -> frozenset[str]:
        """Those of the paths of this worktree that its attributes lead through a filter, such as LFS; none is run."""
        names = {path.encode("utf-8", "surrogateescape"): path for path in paths if path and "\0" not in path}
        if not names:
            return frozenset()
        with Shadow(self.repository, checkout=True, seconds=self._seconds) as shadow:
            return frozenset(names[name] for name in _behind_filters(shadow, names))

    def file(self, path: str) -> FileFact:
        """The digest of one regular file, with the commit that HEAD is on.

        ``path`` is relative to the root of the worktree, with ``/``, at most 4,096 bytes. A link is not followed,
        neither as the last component nor before. Bytes that are not UTF-8 are given as Python gives file
        names (surrogates). Raises ``git_file_not_found``; ``source_too_large`` above 1 GiB.
        """
        name = _worktree_path(path)
        try:
            root = os.open(self.repository.worktree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise PassdownError("git_file_not_found") from error
        try:
            content = hash_inside(root, name, FILE_BYTES)
        finally:
            os.close(root)
        if content.kind == "unreadable":
            raise PassdownError("file_not_readable")
        if content.kind != "file" or content.size is None:
            raise PassdownError("git_file_not_found")
        if content.sha256 is None:
            raise PassdownError("source_too_large", limit=FILE_BYTES, actual=content.size)
        return FileFact(decode(name), content.sha256, content.size, self.head().oid)

    # --- shared pieces ---------------------------------------------------------------------------------------------

    def _resolve(self, name: str) -> str:
        answer = self._shadow.run("cat-file", "--batch-check", stdin=_commit_query(name)).split(b" ")
        if len(answer) != 3 or answer[1] != b"commit":
            raise PassdownError("git_object_not_found")
        return answer[0].decode("ascii")

    def _present_commits(self, oids: Sequence[str]) -> set[str]:
        """Those of the given texts that are full ids of commits in this repository."""
        asked = [oid for oid in dict.fromkeys(oids) if self._oid.fullmatch(oid)]
        if not asked:
            return set()
        stdin = "".join(f"{oid}\n" for oid in asked).encode("ascii")
        answers = self._shadow.run("cat-file", "--batch-check", stdin=stdin).decode("ascii").split("\n")
        return {oid for oid, answer in zip(asked, answers, strict=False) if answer.startswith(f"{oid} commit ")}

    def _boundary(self) -> frozenset[str]:
        """The commits whose parents were not fetched; empty unless the clone is shallow."""
        try:
            data = read_regular(self.repository.common_dir / "shallow", _SHALLOW_BYTES)
        except OSError as error:
            raise PassdownError("git_failed", operation="shallow", status=error.errno or 1, rule="io") from error
        return frozenset((data or b"").decode("ascii", "replace").split())

    def _is_partial(self) -> bool:
        """Whether content may be missing by design (a partial clone), so that lines cannot be counted."""
        return any(
            key == b"extensions.partialclone"
            or (key.startswith(b"remote.") and key.endswith(b".promisor") and as_bool(value))
            for key, value in self._config()
        )

    def _config(self) -> Pairs:
        try:
            return read_config(self.repository.common_dir / "config")
        except (BadConfig, OSError) as error:
            raise PassdownError("git_failed", operation="read_config", status=128, rule="bad_config") from error

    def _with_paths(self, commits: list[Commit]) -> list[Commit]:
        """The commits with the paths that each changed against its first parent, in one git process."""
        boundary = self._boundary()
        asked = [commit for commit in commits if commit.oid not in boundary]
        if not asked:
            return commits
        partial = self._is_partial()
        stdin = "".join(f"{' '.join((commit.oid, *commit.parents[:1]))}\n" for commit in asked).encode("ascii")
        shape = "--name-status" if partial else "--numstat"
        records = self._shadow.records(
            "diff-tree", "--stdin", "--always", "-z", "-r", "--root", "--no-renames", "--ignore-submodules=none", shape,
            stdin=stdin,
        )  # fmt: skip
        changes: Changes = {}
        try:
            (collect_named if partial else collect_counted)(records, changes)
        except PassdownError as error:
            # In a partial clone even the trees may be missing: the commit that git stopped at and those after it stay
            # without paths.
            if not partial or error.members.get("status") != 128:
                raise
        return [with_changes(commit, changes) for commit in commits]


def _with_filters(shadow: Shadow, changes: list[Change], entries: list[StatusEntry]) -> list[StatusEntry]:
    """The entries, those of modified paths behind a filter with that doubt; one git process, or none."""
    suspects = [change.path for change in changes[: len(entries)] if change.status == "modified"]
    behind = _behind_filters(shadow, suspects)
    return [
        replace(entry, doubt="filter_not_run") if change.status == "modified" and change.path in behind else entry
        for change, entry in zip(changes, entries, strict=False)
    ]


def _behind_filters(shadow: Shadow, paths: Iterable[bytes]) -> frozenset[bytes]:
    stdin = b"".join(path + b"\0" for path in paths)
    return filtered(shadow.run("check-attr", "-z", "--stdin", "filter", stdin=stdin)) if stdin else frozenset()


def _not_fetched() -> PassdownError:
    guidance = "This partial clone lacks the tree of HEAD, and Passdown fetches nothing: run `git status`, which does."
    return PassdownError("git_failed", operation="status", status=128, rule="content_not_fetched", guidance=guidance)


def _commit_query(name: str) -> bytes:
    """The line that asks git for the commit behind a name."""
    if not 1 <= len(name) <= NAME_LENGTH or name[0] in "-:" or _FORBIDDEN_IN_NAMES.search(name):
        raise PassdownError("git_object_not_found")
    try:
        return f"{name}^{{commit}}\n".encode()
    except UnicodeEncodeError as error:
        raise PassdownError("git_object_not_found") from error


def _worktree_path(path: str) -> bytes:
    try:
        name = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PassdownError("git_file_not_found") from error
    components = name.lower().split(b"/")
    if len(name) > PATH_BYTES or b"\0" in name or any(part in (b"", b".", b"..", b".git") for part in components):
        raise PassdownError("git_file_not_found")
    return name


def _seconds(date: bytes) -> int:
    """The seconds of a raw date, 0 where git has none or none that fits."""
    digits = date.partition(b" ")[0]
    value = int(digits) if re.fullmatch(rb"-?[0-9]{1,18}", digits) else 0
    return value if abs(value) <= MAX_SAFE_INTEGER else 0


def _check_limit(limit: int) -> None:
    if not 0 <= limit <= MAX_LISTED:
        raise PassdownError("invalid_request", field="limit", rule="range", limit=MAX_LISTED, actual=limit)
