"""Which database a URL names.

Forms: ``sqlite:///PATH`` (an absolute path has four slashes), and ``SCHEME://[USER[:PASSWORD]@][HOST[:PORT]]/DATABASE``
with options behind ``?``. User, password, host, database and options are percent-decoded; the path of a SQLite file is
taken as it stands.

Invariant: a password is shown nowhere: not in ``url``, not in ``repr``, not in a refusal. A URL is refused as
``invalid_request`` with ``field`` ``database`` and rule ``too_long``, ``unknown_scheme``, ``malformed``,
``no_database`` or ``unknown_option``.

Public operations: :func:`locate`, :meth:`Address.option`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from passdown.kernel.errors import PassdownError

MAX_URL: Final = 2_048
_SQLITE: Final = "sqlite:///"
ENGINE_OF: Final = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "oceanbase": "oceanbase",
}
_TLS: Final = frozenset({"ssl_ca", "ssl_cert", "ssl_key"})
OPTIONS: Final = {
    "postgresql": frozenset({"host", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs"}),
    "mysql": frozenset({"unix_socket"}) | _TLS,
    "oceanbase": frozenset({"unix_socket"}) | _TLS,
}
"""What may stand behind ``?``. Anything that could hold a secret or change how statements are read is not among it."""


@dataclass(frozen=True, slots=True)
class Address:
    """A database on a server; what the URL left out is None and means the default of the driver."""

    engine: str
    host: str | None
    port: int | None
    user: str | None
    password: str | None = field(repr=False)
    database: str
    options: Mapping[str, str]

    def option(self, name: str) -> str | None:
        """The value of an option, or None."""
        return self.options.get(name)

    @property
    def url(self) -> str:
        """The URL without the password."""
        user = "" if self.user is None else quote(self.user, safe="") + "@"
        host = self.host or ""
        place = f"[{host}]" if ":" in host else quote(host, safe="")
        port = "" if self.port is None else f":{self.port}"
        behind = "&".join(f"{name}={quote(value, safe='/')}" for name, value in sorted(self.options.items()))
        return f"{self.engine}://{user}{place}{port}/{quote(self.database, safe='')}" + (behind and f"?{behind}")


def locate(url: str) -> Path | Address:
    """The SQLite file or the server that ``url`` names; ``invalid_request`` if it names neither."""
    if len(url) > MAX_URL:
        raise _refused("too_long")
    if url.startswith(_SQLITE):
        path = url.removeprefix(_SQLITE)
        if not path or "\0" in path:
            raise _refused("malformed")
        return Path(path)
    engine = ENGINE_OF.get(url.partition("://")[0])
    if engine is None:
        raise _refused("unknown_scheme")
    try:
        # Characters that are not printable are dropped without a word by the splitting, so they are refused before.
        if not url.isprintable() or " " in url:
            raise ValueError
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)) if parts.query else {}
        user, password, host, database = (
            None if part is None else unquote(part, errors="strict")
            for part in (parts.username, parts.password, parts.hostname, parts.path.removeprefix("/"))
        )
    except ValueError:
        raise _refused("malformed") from None
    if not database:
        raise _refused("no_database")
    if parts.fragment or any("\0" in (part or "") for part in (user, password, host, database, *options.values())):
        raise _refused("malformed")
    if not options.keys() <= OPTIONS[engine] or _repeats(parts):
        raise _refused("unknown_option")
    return Address(engine, host or None, port, user or None, password, database, options)


def _repeats(parts: SplitResult) -> bool:
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return len(names) != len(set(names))


def _refused(rule: str) -> PassdownError:
    return PassdownError("invalid_request", field="database", rule=rule)
