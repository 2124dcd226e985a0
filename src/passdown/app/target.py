"""Which store a command works on: a data directory, a database server, or a Passdown server. Pure.

What is said now wins over what was said before: options, then the environment, then what the checkout was bound to,
then the data directory of this user. Within one of them a server wins over a database and a database over a directory,
so that naming the wider place never silently writes into the narrower one.

What is recorded in a checkout holds no credentials: the password of a database comes from ``PASSDOWN_DATABASE``, the
token of a server from ``PASSDOWN_TOKEN``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from passdown.app.paths import data_directory

Kind = Literal["folder", "database", "server"]


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
        parts = urlsplit(self.value)
        user, at, place = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{place}"))


def parse(value: str) -> Target:
    """A place as it was recorded or given: ``http(s)://…``, another URL, or a folder."""
    scheme, separator, _ = value.partition("://")
    if not separator:
        return Target("folder", str(Path(value).expanduser().absolute()))
    return Target("server" if scheme in ("http", "https") else "database", value)


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
            return Target("database", store)
        if folder:
            return Target("folder", str(data_directory(folder, environment)))
    return parse(recorded) if recorded else Target("folder", str(data_directory(None, environment)))
