"""Where the data lives: ``--data``, else ``PASSDOWN_DATA``, else the XDG data directory of this user."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

DATABASE_NAME: Final = "passdown.db"


def data_directory(option: str | None, environment: Mapping[str, str]) -> Path:
    """The data directory. ``HOME`` may be unset or empty: the user database knows the home folder then."""
    for given in (option, environment.get("PASSDOWN_DATA")):
        if given:
            return Path(given).expanduser().absolute()
    xdg = environment.get("XDG_DATA_HOME", "")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "passdown"
    home = environment.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    return Path(home) / ".local" / "share" / "passdown"


def database_path(data: Path) -> Path:
    """The one database file of a data directory: shared by command line, hooks, tools and server."""
    return data / DATABASE_NAME
