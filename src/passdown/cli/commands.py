"""The commands by name, each made when it is first asked for.

Making a command means reading the signature of its function and the types in it; for all of them together that takes
longer than the work of a short one. So a call that names its command makes that one only, and help makes all.

Public: :class:`Commands`, :data:`ALL`, :data:`HANDOFF`, :data:`DAILY`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

import typer

Where = Mapping[str, tuple[str, str]]
"""Module and attribute of each command by its name."""

ALL: Final[Where] = {
    "init": ("passdown.cli.init", "init"),
    "start": ("passdown.cli.init", "start"),
    "switch": ("passdown.cli.init", "switch"),
    "handoff": ("passdown.cli.handoff", "handoff_app"),
    "continue": ("passdown.cli.continuing", "continue_"),
    "report": ("passdown.cli.report", "report_app"),
    "serve": ("passdown.cli.serve", "serve"),
    "source": ("passdown.cli.sources", "source_app"),
    "token": ("passdown.cli.serve", "token_app"),
    "db": ("passdown.cli.db", "db_app"),
}

HANDOFF: Final[Where] = {
    "show": ("passdown.cli.reviewing", "show"),
    "history": ("passdown.cli.reviewing", "history"),
    "diff": ("passdown.cli.reviewing", "diff"),
    "ack": ("passdown.cli.reviewing", "ack"),
    "send": ("passdown.cli.transferring", "send"),
    "receive": ("passdown.cli.transferring", "receive"),
    "recover": ("passdown.cli.transferring", "recover"),
    "export": ("passdown.cli.carrying", "export"),
    "verify": ("passdown.cli.carrying", "verify"),
}
"""Below ``passdown handoff``."""

DAILY: Final = ("init", "start", "switch", "handoff", "continue", "report", "serve")
"""Commands in the order in which a person meets them; help lists all others under "More"."""


class Commands(Mapping[str, Any]):
    """What a group of commands keeps them in: knows every name, and makes a command on access."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, attribute = self._where[name]
            self._made[name] = _command(name, getattr(import_module(module), attribute))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


def _command(name: str, found: Any) -> Any:
    """A command of a function, or the group that a module made itself."""
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(found)
    return typer.main.get_command(alone)
