"""The shadow git directory: the only way in which this package runs git.

A repository's configuration, attributes and hooks can name programs that git starts on plain reads (``fsmonitor``,
``filter.*.clean``, ``textconv`` ...), and switches on the command line do not cover all of them. So git never sees that
configuration. A shadow is a temporary folder that looks like a git directory: links to the objects and refs, copies of
HEAD and index, and a configuration written by us. From the repository's own it takes only a few values that change how
file *names and line ends* compare, each checked against a closed vocabulary.

Two kinds, because facts about history must not depend on what happens to be checked out:

- ``Shadow(repository)`` for history. Its worktree is empty and it has no index, so no attribute of the checkout
  reaches it.
- ``Shadow(repository, checkout=True)`` for the state of the worktree: also the index, the ignore and attribute rules.

Invariants: nothing is written into the repository, neither objects nor refs, nor the index or its times; no program but
git is started; git runs without network, pager, prompt and user configuration, and never longer than its time limit.
Errors carry the name of the operation and a status, never a word of the repository.

Public operations: :class:`Shadow` with :meth:`~Shadow.run` and :meth:`~Shadow.records`.
"""

from __future__ import annotations

import os
import select
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final

from passdown.git.config import BadConfig, Pairs, as_bool, as_path, config_home, read_config, user_config_files
from passdown.git.files import copy_regular, read_regular
from passdown.git.locate import Repository
from passdown.kernel.errors import PassdownError

OPERATION_SECONDS: Final = 60.0
"""One git process may take this long; then it is killed and the operation fails with rule ``timeout``."""

OUTPUT_BYTES: Final = 64 * 1024 * 1024
"""What one process may answer when its output is read as a whole, and what one record may hold when it is streamed."""

_CHUNK: Final = 256 * 1024
_COMPLAINTS: Final = "complaints"
_HEAD_BYTES: Final = 64 * 1024

_FIXED: Final = """\
[core]
\tbare = false
\tfsmonitor = false
\tuntrackedCache = false
\thooksPath = /dev/null
\tlogAllRefUpdates = false
\tquotePath = false
\tbigFileThreshold = 64m
[diff]
\trenames = false
[gc]
\tauto = 0
[protocol]
\tallow = never
"""
_BOOLEANS: Final = (
    b"core.filemode",
    b"core.ignorecase",
    b"core.symlinks",
    b"core.precomposeunicode",
    b"core.sparsecheckout",
    b"core.sparsecheckoutcone",
    b"sparse.expectfilesoutsideofpatterns",
)
_RULES: Final = {b"core.excludesfile": "user-excludes", b"core.attributesfile": "user-attributes"}
"""Files of rules that the user's own configuration may name, and what they are called in a shadow."""
_NOT_READ: Final = {
    b"core.excludesfile": "repository_excludes_not_read",
    b"core.attributesfile": "repository_attributes_not_read",
}
_WORDS: Final = {
    b"core.autocrlf": frozenset({b"true", b"false", b"input"}),
    b"core.eol": frozenset({b"lf", b"crlf", b"native"}),
}


class Shadow:
    """A shadow git directory, as a context manager. ``notes`` says what of the user's rules was not taken over."""

    def __init__(self, repository: Repository, *, checkout: bool = False, seconds: float = OPERATION_SECONDS) -> None:
        self.repository = repository
        self.notes: set[str] = set()
        self._checkout = checkout
        self._seconds = seconds
        self._home: Path | None = None
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
        }

    def __enter__(self) -> Shadow:
        self._program = _git_program()
        try:
            self._home = Path(tempfile.mkdtemp(prefix="passdown-git-"))
            self._build(self._home)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise PassdownError("git_failed", operation="shadow", status=error.errno or 1, rule="io") from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes the folder. Links in it are removed, never followed."""
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    # --- building --------------------------------------------------------------------------------------------------

    def _build(self, home: Path) -> None:
        common = self.repository.common_dir
        (home / "info").mkdir()
        for name in ("objects", "refs", "packed-refs", "shallow"):
            # Made even where the target does not exist yet: it may appear while we read.
            (home / name).symlink_to(common / name)
        self.refresh_head()
        settings: Pairs = []
        if self._checkout:
            settings = self._build_checkout(home)
        else:
            (home / "empty").mkdir()
        (home / "config").write_bytes(self._config(settings))

    def _build_checkout(self, home: Path) -> Pairs:
        common, git_dir = self.repository.common_dir, self.repository.git_dir
        # Copied, not linked: git touches a shared index that it reads.
        copy_regular(git_dir / "index", home / "index")
        for shared in git_dir.glob("sharedindex.*"):
            copy_regular(shared, home / shared.name)
        for name, owner in (("exclude", common), ("attributes", common), ("sparse-checkout", git_dir)):
            if (owner / "info" / name).is_file():
                (home / "info" / name).symlink_to(owner / "info" / name)
        settings, rules = self._user_settings()
        try:
            pairs = read_config(common / "config")
            if as_bool(dict(pairs).get(b"extensions.worktreeconfig", b"false")):
                pairs += read_config(git_dir / "config.worktree")
        except BadConfig as error:
            raise PassdownError("git_failed", operation="read_config", status=128, rule="bad_config") from error
        for key, note in _NOT_READ.items():
            if any(key == name for name, _ in pairs):
                self.notes.add(note)
        for key, path in rules.items():
            if path is not None and self._is_readable(path):
                (home / _RULES[key]).symlink_to(os.fsdecode(path))
        return settings + pairs

    def _is_readable(self, path: bytes) -> bool:
        """Whether git can read this file of the user's; one that is there and closed is noted, as git only warns."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            self.notes.add("user_config_unreadable")
            return False
        try:
            return stat.S_ISREG(os.fstat(fd).st_mode)
        finally:
            os.close(fd)

    def _user_settings(self) -> tuple[Pairs, dict[bytes, bytes | None]]:
        """The user's own line-end settings and files of rules; the system's configuration is not read."""
        environment = os.environb
        home = environment.get(b"HOME")
        base = config_home(environment)
        rules = {
            b"core.excludesfile": base + b"/git/ignore" if base else None,
            b"core.attributesfile": base + b"/git/attributes" if base else None,
        }
        kept: Pairs = []
        for path in user_config_files(environment):
            try:
                pairs = read_config(Path(os.fsdecode(path)))
            except (BadConfig, OSError):
                self.notes.add("user_config_unreadable")
                continue
            for key, value in pairs:
                if key in rules:
                    rules[key] = as_path(value, home)
                elif key in _WORDS:
                    kept.append((key, value))
        return kept, rules

    def _config(self, settings: Pairs) -> bytes:
        lines = [_FIXED.encode()]
        if self.repository.object_format == "sha256":
            lines.append(b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n")
        else:
            lines.append(b"[core]\n\trepositoryformatversion = 0\n")
        # Relative names are taken from the current directory, which is the shadow's (see _start).
        assert self._home is not None
        for rule, file in _RULES.items():
            path = _quoted(os.fsencode(self._home / file)) if self._checkout else b"/dev/null"
            lines.append(b"[core]\n\t%s = %s\n" % (rule.partition(b".")[2], path))
        for key, value in settings:
            section, _, name = key.partition(b".")
            if key in _BOOLEANS:
                flag = as_bool(value)
                if flag is not None:
                    lines.append(b"[%s]\n\t%s = %s\n" % (section, name, b"true" if flag else b"false"))
            elif key in _WORDS:
                word = _word(key, value)
                if word is not None:
                    lines.append(b"[%s]\n\t%s = %s\n" % (section, name, word))
        return b"".join(lines)

    def refresh_head(self) -> bytes:
        """Copies HEAD anew and returns it; branches and tags are always read where they lie."""
        assert self._home is not None
        source = self.repository.git_dir / "HEAD"
        if source.is_symlink():
            head = b"ref: " + os.fsencode(os.readlink(source)) + b"\n"  # noqa: PTH115  the text of the link
        else:
            head = read_regular(source, _HEAD_BYTES) or b""
        (self._home / "HEAD").write_bytes(head)
        return head

    # --- running ---------------------------------------------------------------------------------------------------

    def run(self, operation: str, *arguments: str, stdin: bytes = b"", ok_codes: tuple[int, ...] = (0,)) -> bytes:
        """Runs ``git OPERATION ARGUMENTS`` and returns what it printed, at most 64 MiB.

        Raises ``git_failed`` with ``operation`` and ``status`` (the exit status; negative for a signal) when the status
        is not in ``ok_codes``, with rule ``timeout`` or ``output_too_large`` when git was stopped for that; and
        ``git_not_installed``.
        """
        parts: list[bytes] = []
        size = 0
        with closing(self._chunks(operation, arguments, stdin, ok_codes)) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > OUTPUT_BYTES:
                    raise _too_large(operation)
                parts.append(chunk)
        return b"".join(parts)

    def records(self, operation: str, *arguments: str, stdin: bytes = b"") -> Iterator[bytes]:
        """Runs git and yields its NUL-terminated records as they come, however many; each at most 64 MiB.

        The errors are those of :meth:`run`; one that git meets late is raised after the records before it.
        """
        rest: list[bytes] = []
        size = 0
        with closing(self._chunks(operation, arguments, stdin, (0,))) as chunks:
            for chunk in chunks:
                first, *others = chunk.split(b"\0")
                rest.append(first)
                size += len(first)
                if size > OUTPUT_BYTES:
                    raise _too_large(operation)
                if others:
                    yield b"".join(rest)
                    yield from others[:-1]
                    rest, size = [others[-1]], len(others[-1])
        if size:
            raise PassdownError("git_failed", operation=operation, status=0, rule="cut_output")

    def _chunks(
        self, operation: str, arguments: tuple[str, ...], stdin: bytes, ok_codes: tuple[int, ...]
    ) -> Generator[bytes, None, None]:
        deadline = time.monotonic() + self._seconds
        process = self._start(operation, arguments, stdin)
        assert process.stdout is not None
        output = process.stdout.fileno()
        poller = select.poll()
        poller.register(output, select.POLLIN | select.POLLHUP)
        try:
            while True:
                if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    raise PassdownError("git_failed", operation=operation, status=-9, rule="timeout")
                chunk = os.read(output, _CHUNK)
                if not chunk:
                    break
                yield chunk
            status = process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise PassdownError("git_failed", operation=operation, status=-9, rule="timeout") from error
        finally:
            process.stdout.close()
            if process.poll() is None:
                process.kill()
                process.wait()
        if status not in ok_codes:
            raise PassdownError("git_failed", operation=operation, status=status)
        self._listen()

    def _listen(self) -> None:
        """Git passes over a folder that it may not open with a word on stderr: unheard, its files would look clean."""
        assert self._home is not None, "a shadow is used inside its with block"
        with (self._home / _COMPLAINTS).open("rb") as complaints:
            if b"could not open directory" in complaints.read(_CHUNK):
                self.notes.add("unreadable_folder")

    def _start(self, operation: str, arguments: tuple[str, ...], stdin: bytes) -> subprocess.Popen[bytes]:
        assert self._home is not None, "a shadow is used inside its with block"
        worktree = self.repository.worktree if self._checkout else self._home / "empty"
        command = [
            self._program,
            f"--git-dir={self._home}",
            f"--work-tree={worktree}",
            "--no-optional-locks",
            operation,
            *arguments,
        ]
        try:
            # Input goes through a file: with a pipe, git and we could each wait for the other.
            with tempfile.TemporaryFile(dir=self._home) if stdin else open(os.devnull, "rb") as source:  # noqa: PTH123
                if stdin:
                    source.write(stdin)
                    source.seek(0)
                with (self._home / _COMPLAINTS).open("wb") as complaints:
                    return subprocess.Popen(
                        command,
                        stdin=source,
                        stdout=subprocess.PIPE,
                        stderr=complaints,
                        cwd=self._home,
                        env=self._environment,
                    )
        except FileNotFoundError as error:
            raise PassdownError("git_not_installed") from error
        except OSError as error:
            raise PassdownError("git_failed", operation=operation, status=error.errno or 1, rule="io") from error


def _git_program() -> str:
    """The git on the search path; entries that are not absolute depend on the current folder and are passed over."""
    folders = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/")]
    program = shutil.which("git", path=os.pathsep.join(folders)) if folders else None
    if program is None:
        raise PassdownError("git_not_installed")
    return program


def _word(key: bytes, value: bytes | None) -> bytes | None:
    """A value of the closed vocabulary of ``key``; None when it is not in it."""
    word = value.lower() if value is not None else b"true"
    if key == b"core.autocrlf" and word != b"input":
        flag = as_bool(value)
        return None if flag is None else (b"true" if flag else b"false")
    return word if word in _WORDS[key] else None


def _quoted(value: bytes) -> bytes:
    """A value in the quotes of git's configuration format."""
    escaped = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t")
    return b'"' + escaped + b'"'


def _too_large(operation: str) -> PassdownError:
    return PassdownError("git_failed", operation=operation, status=0, rule="output_too_large", limit=OUTPUT_BYTES)
