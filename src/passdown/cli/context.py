"""What every command needs: which repository, which store, which workstream, who asks.

The store is the one that ``--data`` or ``PASSDOWN_DATA`` names, else the one this checkout was bound to, else the
default of this user. The workstream is the one that ``init``, ``start`` or ``switch`` chose for this worktree; nothing
is inferred from a branch or a folder.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passdown.kernel.errors import PassdownError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from passdown.app.application import Application, Local
    from passdown.git.locate import Repository
    from passdown.git.reader import GitReader
    from passdown.git.state import WorktreeState
    from passdown.kernel.operations import Principal

Data = Annotated[str | None, typer.Option("--data", help="Data directory (else PASSDOWN_DATA, else the user's).")]
As = Annotated[str | None, typer.Option("--as", help="Name to record as the author (else PASSDOWN_AGENT, else you).")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a screen.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")]


@dataclass(frozen=True)
class Place:
    """Where a command runs. ``repository`` is None outside a worktree.

    ``state`` is the recorded choice of this worktree, None where there is none to go by; ``reason`` says why: absent,
    copied (this folder is a copy of a bound one) or unreadable.
    """

    data: Path
    repository: Repository | None
    state: WorktreeState | None
    reason: str
    who: Principal

    @property
    def scope_id(self) -> str | None:
        """The current workstream of this worktree, if one is chosen."""
        return self.state.scope_id if self.state else None

    def require_repository(self) -> Repository:
        """The repository, or ``not_a_repository``."""
        if self.repository is None:
            raise PassdownError("not_a_repository")
        return self.repository

    def require_scope(self) -> str:
        """The current workstream, or ``no_current_workstream`` (``not_a_repository`` outside one)."""
        self.require_repository()
        if self.scope_id is None:
            raise PassdownError("no_current_workstream", rule=self.reason)
        return self.scope_id

    @contextmanager
    def application(self, *, create: bool = False) -> Iterator[tuple[Application, Local]]:
        """The opened store and a caller for this person."""
        from passdown.app.application import open_application

        try:
            opened = open_application(self.data, create=create)
        except PassdownError as error:
            if error.members.get("rule") != "missing":
                raise
            guidance = "There is no store in this data directory yet: begin with `passdown init`, or name another one."
            raise PassdownError(error.code, rule="missing", guidance=guidance) from None
        with opened as application:
            yield application, application.caller(self.who)

    @contextmanager
    def git(self) -> Iterator[GitReader]:
        """A reader of this repository."""
        from passdown.git.reader import GitReader

        with GitReader(self.require_repository()) as reader:
            yield reader


def principal(name: str | None) -> Principal:
    """Embedded use knows its caller only by what it asserts; this host's own reader takes what is captured."""
    from passdown.kernel.operations import Principal
    from passdown.kernel.text import TextRefused, normalise_identifier

    asserted = name or os.environ.get("PASSDOWN_AGENT") or _user()
    try:
        checked = normalise_identifier(asserted, max_chars=256)
    except TextRefused as refused:
        raise PassdownError("invalid_request", field="as", rule=refused.rule) from None
    return Principal(checked, "asserted", "owner", host=os.uname().nodename or "localhost")


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def place(data: str | None = None, name: str | None = None) -> Place:
    """Look around from the current folder. Never writes."""
    from passdown.app.paths import data_directory

    repository = _repository()
    state, reason = _choice(repository) if repository else (None, "absent")
    chosen = data or os.environ.get("PASSDOWN_DATA")
    folder = Path(state.store) if state is not None and not chosen else data_directory(data, os.environ)
    return Place(folder, repository, state, reason, principal(name))


def _repository() -> Repository | None:
    from passdown.git.locate import find_repository

    try:
        return find_repository(Path.cwd())
    except FileNotFoundError:  # the current folder was removed
        return None
    except PassdownError as error:
        if error.code != "not_a_repository":
            raise
        return None


def _choice(repository: Repository) -> tuple[WorktreeState | None, str]:
    """A damaged record counts as no choice, so that the commands that choose can put it right."""
    from passdown.git.state import load_state

    try:
        loaded = load_state(repository)
    except PassdownError as error:
        if error.code != "no_current_workstream":
            raise
        return None, str(error.members["rule"])
    return loaded.state, loaded.reason
