"""What every command needs: which repository, which store, which workstream, who asks.

The store is the one that an option or the environment names, else the one this checkout was bound to, else the one of
another worktree of the same repository, else the data directory of this user (see :mod:`passdown.app.target`). The same
commands work on a server. The workstream is the one that ``init``, ``start`` or ``switch`` chose for this worktree;
nothing is inferred from a branch or a folder.
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
    from passdown.app.target import Target
    from passdown.git.locate import Repository
    from passdown.git.reader import GitReader
    from passdown.git.state import WorktreeState
    from passdown.kernel.operations import Caller, Principal

Data = Annotated[str | None, typer.Option("--data", help="Data directory (else PASSDOWN_DATA, else the user's).")]
As = Annotated[str | None, typer.Option("--as", help="Name to record as the author (else PASSDOWN_AGENT, else you).")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a screen.")]
Listed = Annotated[int, typer.Option("--limit", help="How many to list.", min=1, max=100)]
Onward = Annotated[str | None, typer.Option("--cursor", help="Go on where a list ended.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")]


@dataclass(frozen=True)
class Place:
    """Where a command runs. ``repository`` is None outside a worktree.

    ``state`` is the recorded choice of this worktree, None where there is none to go by; ``reason`` says why: absent,
    copied (this folder is a copy of a bound one) or unreadable.
    """

    target: Target
    repository: Repository | None
    state: WorktreeState | None
    reason: str
    who: Principal

    @property
    def store(self) -> Path | str:
        """The data directory or the URL of the database, for what opens the store itself."""
        return Path(self.target.value) if self.target.kind == "folder" else self.target.value

    @property
    def scope_id(self) -> str | None:
        """The current workstream of this worktree, if one is chosen."""
        return self.state.scope_id if self.state else None

    def require_repository(self) -> Repository:
        """The repository, or ``not_a_repository`` with the reason why there is none."""
        return self.repository or _find()

    def require_scope(self) -> str:
        """The current workstream, or ``no_current_workstream`` (``not_a_repository`` outside one)."""
        self.require_repository()
        if self.scope_id is None:
            raise PassdownError("no_current_workstream", rule=self.reason)
        return self.scope_id

    @contextmanager
    def calling(self, *, create: bool = False) -> Iterator[Caller]:
        """A caller for this person: over the opened store, or over a server, where the token says who it is."""
        if self.target.kind == "server":
            from passdown.client.remote import connect

            with (
                _where_there_is_an_address(),
                connect(self.target.value, os.environ.get("PASSDOWN_TOKEN", "")) as caller,
            ):
                yield caller
            return
        with self.application(create=create) as (_, call):
            yield call

    @contextmanager
    def application(self, *, create: bool = False) -> Iterator[tuple[Application, Local]]:
        """The opened store itself and a caller, for what only its owner does on the machine that has it."""
        from passdown.app.application import open_application

        store = self.require_own_store()
        with where_there_is_a_store():
            opened = open_application(store, create=create)
        with opened as application:
            yield application, application.caller(self.who)

    def require_own_store(self) -> Path | str:
        """The data directory or the URL of the database; on a server this is the business of its own machine."""
        if self.target.kind == "server":
            guidance = "Run this on the machine of the server, with `--data` or `--database`."
            raise PassdownError("store_not_readable", rule="on_a_server", guidance=guidance)
        return self.store

    @contextmanager
    def git(self) -> Iterator[GitReader]:
        """A reader of this repository."""
        from passdown.git.reader import GitReader

        with GitReader(self.require_repository()) as reader:
            yield reader


@contextmanager
def _where_there_is_an_address() -> Iterator[None]:
    """Say what the address of a server looks like where one is none."""
    try:
        yield
    except PassdownError as error:
        if error.code != "invalid_request" or error.members.get("field") != "url":
            raise
        guidance = "`--url` and PASSDOWN_URL take a whole address with its scheme, as `passdown serve` prints one."
        raise PassdownError(error.code, field="url", rule="url", guidance=guidance) from None


@contextmanager
def where_there_is_a_store() -> Iterator[None]:
    """Say how to begin where a store is missing."""
    try:
        yield
    except PassdownError as error:
        if error.members.get("rule") != "missing" or error.code != "store_not_readable":
            raise
        guidance = "There is no store here yet: begin with `passdown init`, or name another place."
        raise PassdownError(error.code, rule="missing", guidance=guidance) from None


def now_us() -> int:
    """The time of this machine, in microseconds UTC."""
    from passdown.kernel.clock import SystemClock

    return SystemClock().now_us()


def new_instance_id() -> str:
    """An id for a worktree that has none."""
    from passdown.kernel.clock import SystemClock
    from passdown.kernel.ids import RandomIds

    return RandomIds(SystemClock()).new("ws_")


def place(data: str | None = None, name: str | None = None) -> Place:
    """Look around from the current folder. Never writes."""
    from passdown.app.target import choose
    from passdown.app.who import asserted

    repository = _repository()
    state, reason = _choice(repository) if repository else (None, "absent")
    # Another worktree of the same repository shares its store, though never its workstream.
    sibling = next(iter(siblings(repository)), None) if repository and state is None else None
    recorded = state.store if state is not None else sibling.store if sibling else None
    target = choose(os.environ, url=None, database=None, data=data, recorded=recorded)
    return Place(target, repository, state, reason, asserted(name, os.environ))


def siblings(repository: Repository) -> list[WorktreeState]:
    """What the other worktrees of this repository are on."""
    from passdown.git.state import sibling_states

    return sibling_states(repository)


def _find() -> Repository:
    from passdown.git.locate import find_repository

    try:
        return find_repository(Path.cwd())
    except FileNotFoundError:  # the current folder was removed
        raise PassdownError("not_a_repository", rule="absent") from None


def _repository() -> Repository | None:
    try:
        return _find()
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
