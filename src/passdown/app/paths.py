"""Where the data lives: ``--data``, else ``PASSDOWN_DATA``, else the XDG data directory of this user."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from passdown.kernel.errors import PassdownError

DATABASE_NAME: Final = "passdown.db"


def data_directory(option: str | None, environment: Mapping[str, str]) -> Path:
    """The data directory. ``HOME`` may be unset or empty: the user database knows the home folder then.

    Refused as ``invalid_request`` with ``field`` ``data``: rule ``unknown_place`` for a path that leads nowhere, rule
    ``no_home`` where neither the environment nor the user database names a home folder.
    """
    for given in (option, environment.get("PASSDOWN_DATA")):
        if given:
            return _absolute(given)
    xdg = environment.get("XDG_DATA_HOME", "")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "passdown"
    return Path(environment.get("HOME") or _home()) / ".local" / "share" / "passdown"


def _absolute(given: str) -> Path:
    try:
        return Path(given).expanduser().absolute()
    except (RuntimeError, FileNotFoundError):  # ~NAME of nobody; a relative path in a folder that was removed
        raise PassdownError("invalid_request", field="data", rule="unknown_place") from None


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise PassdownError("invalid_request", field="data", rule="no_home") from None


def database_path(data: Path) -> Path:
    """The one database file of a data directory: shared by command line, hooks, tools and server."""
    return data / DATABASE_NAME
