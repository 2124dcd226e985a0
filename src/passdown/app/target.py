"""Which store a command works on: a data directory, a database server, or a Passdown server. Pure.

What is said now wins over what was said before: options, then the environment, then what the checkout was bound to,
then the data directory of this user. Within one of them a server wins over a database and a database over a directory,
so that naming the wider place never silently writes into the narrower one.

What is recorded in a checkout holds no credentials: the password of a database comes from ``PASSDOWN_DATABASE``, the
token of a server from ``PASSDOWN_TOKEN``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from passdown.app.paths import data_directory

Kind = Literal["folder", "database", "server"]

_SQLITE: Final = "sqlite:///"
_AUTHORITY: Final = re.compile(r"[^/?#]*")


@dataclass(frozen=True, slots=True)
class Target:
    """``value`` is the path of a data directory, the URL of a database, or the URL of a Passdown server."""

    kind: Kind
    value: str

    @property
    def recorded(self) -> str:
        """The same place without credentials, as a checkout remembers it and a screen shows it."""
        if self.kind == "folder":
            return self.value
        # Put together by hand: the standard library drops the slashes of a URL without a host.
        scheme, _, rest = self.value.partition("://")
        authority = _AUTHORITY.match(rest)[0]  # type: ignore[index]
        user, at, place = authority.rpartition("@")
        return f"{scheme}://{user.partition(':')[0]}{at}{place}{rest[len(authority) :]}"


def parse(value: str) -> Target:
    """A place as it was recorded or given: ``http(s)://…``, another URL, or a folder."""
    scheme, separator, _ = value.partition("://")
    if not separator:
        return Target("folder", str(Path(value).expanduser().absolute()))
    return Target("server", value) if scheme in ("http", "https") else _database(value)


def _database(url: str) -> Target:
    """A SQLite file keeps its place when the command is repeated from another folder."""
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith("/"):
        return Target("database", url)
    return Target("database", f"{_SQLITE}{Path(path).absolute()}")


def choose(
    environment: Mapping[str, str], *, url: str | None, database: str | None, data: str | None, recorded: str | None
) -> Target:
    """The place to work on. Empty values count as not given."""
    given = (
        (url, database, data),
        (environment.get("PASSDOWN_URL"), environment.get("PASSDOWN_DATABASE"), environment.get("PASSDOWN_DATA")),
    )
    for server, store, folder in given:
        if server:
            return Target("server", server)
        if store:
            return _database(store)
        if folder:
            return Target("folder", str(data_directory(folder, environment)))
    return parse(recorded) if recorded else Target("folder", str(data_directory(None, environment)))
