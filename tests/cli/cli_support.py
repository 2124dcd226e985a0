"""The installed command in a world of its own: a home, a data directory, repositories, and nothing of this machine's.

Every call is a child process of its own. :meth:`World.run` forks this one, which has the modules loaded already and
saves their loading in hundreds of calls; :meth:`World.spawn` starts the installed program itself, for whatever depends
on how a process begins and ends. :func:`on_a_terminal` gives it a pseudo-terminal, and ``pyte`` is the terminal.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyte
from git_support import Repo, plain_environment

import passdown.app.catalog
import passdown.app.handing
import passdown.cli.continuing
import passdown.cli.home
import passdown.cli.init
import passdown.cli.report
import passdown.cli.serve
import passdown.handoff.service
import passdown.report.render
import passdown.report.service
import passdown.report.verify  # noqa: F401  loaded here, so that no fork has to
from passdown.cli.main import run as run_command
from passdown.git.locate import find_repository
from passdown.git.state import load_state, save_state

PASSDOWN = str(Path(sys.executable).parent / "passdown")
SECONDS = 60
"""A child that takes longer hangs; it is also what a user is promised for the first handoff."""


@dataclass(frozen=True)
class Answer:
    """What a command left behind: exit code, data and words."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Everything on stdout as one JSON document."""
        return json.loads(self.out)


@dataclass
class World:
    """A folder with ``home`` and ``data`` and the environment in which commands run."""

    root: Path
    example: World | None = None
    """A world with one bound repository, to copy instead of making it anew."""

    def __post_init__(self) -> None:
        self.home.mkdir(exist_ok=True)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def data(self) -> Path:
        return self.root / "data"

    def environment(self, **changes: str | None) -> dict[str, str]:
        """The environment of a command; None removes a variable."""
        merged: dict[str, str | None] = {
            **plain_environment(HOME=str(self.home), PASSDOWN_DATA=str(self.data), LOGNAME="grace"),
            **changes,
        }
        return {name: value for name, value in merged.items() if value is not None}

    def repo(self, name: str = "shop", *, commits: int = 1) -> Repo:
        """A repository with ``commits`` commits."""
        repo = Repo(self.root / name)
        for number in range(1, commits + 1):
            repo.commit(f"Step {number}", {f"file-{number}.txt": f"{number}\n"})
        return repo

    def bound(self, name: str = "shop", *, commits: int = 1) -> Repo:
        """A repository that ``init`` has bound to a project of its own."""
        if self.example is not None and (name, commits) == ("shop", 1) and not (self.root / name).exists():
            return self._copied(self.example)
        repo = self.repo(name, commits=commits)
        self.ok(repo.path, "init")
        return repo

    def _copied(self, example: World) -> Repo:
        shutil.copytree(example.root / "shop", self.root / "shop", symlinks=True)
        shutil.copyfile(example.data / "passdown.db", self.data / "passdown.db")
        state = load_state(find_repository(example.root / "shop")).state
        assert state is not None
        save_state(find_repository(self.root / "shop"), replace(state, store=str(self.data)))
        repo = Repo(self.root / "shop", create=False)
        repo.clock += 60
        return repo

    def run(
        self, cwd: Path, *arguments: str | bytes, stdin: bytes = b"", user: int | None = None, **changes: str | None
    ) -> Answer:
        """Run the command in a fork of this process, without a terminal; as ``user`` where root asks for one."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            child = os.fork()
            if child == 0:
                if user is not None:
                    os.setgid(user)
                    os.setuid(user)
                _become(cwd, self.environment(**changes), (given.fileno(), out.fileno(), err.fileno()))
                _run_and_end([os.fsdecode(argument) for argument in arguments])
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            return Answer(os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode())

    def spawn(self, cwd: Path, *arguments: str | bytes, stdin: bytes = b"", **changes: str | None) -> Answer:
        """Start the installed program, without a terminal."""
        done = subprocess.run(
            [PASSDOWN, *arguments],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            env=self.environment(**changes),
            timeout=SECONDS,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, cwd: Path, *arguments: str | bytes, **changes: Any) -> Answer:
        """Run and expect exit code 0."""
        answer = self.run(cwd, *arguments, **changes)
        assert answer.code == 0, (arguments, answer)
        return answer

    def refused(self, code: str, exit_code: int, cwd: Path, *arguments: str | bytes, **changes: Any) -> Answer:
        """Run and expect the refusal ``code``: on stderr with its next step, with nothing on stdout."""
        answer = self.run(cwd, *arguments, **changes)
        first, *_, last = answer.err.splitlines() or ["", ""]
        assert (answer.code, answer.out) == (exit_code, ""), answer
        assert first.startswith(f"{code}: "), answer
        assert last.startswith("next: "), answer
        return answer

    def everything(self) -> dict[str, bytes]:
        """Every file below, but not the write-ahead log's shared memory, which readers use too."""
        return {
            str(path): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_symlink() and not path.name.endswith(("-shm", ".lock"))
        }


def _become(cwd: Path, environment: dict[str, str], files: tuple[int, int, int]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb"), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb"), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", 0), encoding="utf-8", write_through=True)


def _run_and_end(arguments: list[str]) -> None:
    """The end of the fork: nothing of the test runner may run in it."""
    code = 99
    try:
        code = run_command(arguments)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def screen_of(output: bytes | str, columns: int = 100, rows: int = 60) -> pyte.Screen:
    """What a terminal shows after ``output``; line ends are as a terminal driver makes them."""
    data = output.encode() if isinstance(output, str) else output
    screen = pyte.Screen(columns, rows)
    pyte.ByteStream(screen).feed(data.replace(b"\n", b"\r\n"))
    return screen


def shown(screen: pyte.Screen) -> list[str]:
    """The lines of a screen without trailing space, down to the last one that is not empty."""
    lines = []
    for number in range(screen.lines):
        row = screen.buffer[number]  # cells that were written; the right half of a wide character is empty
        lines.append("".join(row[column].data for column in range(max(row, default=-1) + 1)).rstrip())
    while lines and not lines[-1]:
        lines.pop()
    return lines


@dataclass(frozen=True)
class Session:
    """A command that had a terminal: exit code, the screen at the end, and the bytes that it sent."""

    code: int
    screen: pyte.Screen
    sent: bytes


def on_a_terminal(
    world: World,
    cwd: Path,
    arguments: Sequence[str],
    answers: Iterable[tuple[str, bytes]] = (),
    *,
    columns: int = 80,
    **changes: str | None,
) -> Session:
    """Run with a pseudo-terminal; each of ``answers`` is typed once its question stands on the screen."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    screen = pyte.Screen(columns, 50)
    stream = pyte.ByteStream(screen)
    waiting = list(answers)
    sent = bytearray()
    environment = world.environment(TERM="xterm", **changes)
    with subprocess.Popen(
        [PASSDOWN, *arguments],
        cwd=cwd,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # The terminal becomes the child's own, so that Ctrl-C typed into it reaches the child.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as child:
        os.close(theirs)
        try:
            while True:
                ready, _, _ = select.select([ours], [], [], SECONDS)
                assert ready, f"nothing more came after {shown(screen)}"
                chunk = b""
                with suppress(OSError):  # Linux: the other end was closed
                    chunk = os.read(ours, 65_536)
                if not chunk:
                    break
                sent += chunk
                stream.feed(chunk)
                if waiting and waiting[0][0] in "\n".join(screen.display):
                    os.write(ours, waiting.pop(0)[1])
            code = child.wait(SECONDS)
        finally:
            child.kill()
            os.close(ours)
    assert not waiting, f"never asked: {waiting}"
    return Session(code, screen, bytes(sent))


@contextmanager
def serving(
    world: World, cwd: Path, *arguments: str, **changes: str | None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server on a free port; yields its address. It must end with code 0 when it is told to."""
    with subprocess.Popen(
        [PASSDOWN, "serve", "--port", "0", *arguments],
        cwd=cwd,
        env=world.environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            found = re.fullmatch(r"passdown: serving (http://\S+)\n", line)
            assert found is not None, (line, child.stderr.read() if child.stderr else "")
            yield found[1], child
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 0
        finally:
            child.kill()


def numbers(root: Path) -> dict[str, int]:
    """Rows in the tables that a command may write, read with SQLite itself."""
    tables = ("pc_handoff_report_projects", "pc_handoff_report_workstreams", "pd_handoff_revisions", "pd_sources")
    with closing(sqlite3.connect(f"file:{root / 'passdown.db'}?mode=ro", uri=True)) as connection:
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
