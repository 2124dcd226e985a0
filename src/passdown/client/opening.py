"""Opening Passdown from a program: a data directory or a database on this machine, or a server."""

from __future__ import annotations

import os
from pathlib import Path

from passdown.app.target import choose, parse
from passdown.client.client import Client


def open(
    place: str | Path | None = None, *, token: str | None = None, create: bool = False, principal: str | None = None
) -> Client:
    """A client for ``place``: ``http(s)://…`` is a server, another URL a database, anything else a data directory.

    Without a place it is what ``PASSDOWN_URL``, ``PASSDOWN_DATABASE`` or ``PASSDOWN_DATA`` name, else the data
    directory of this user. A server wants ``token`` (else ``PASSDOWN_TOKEN``). A directory that has no store is
    ``store_not_readable`` with rule ``missing``, unless ``create`` says to make one; ``principal`` is the name under
    which embedded writes are recorded (else ``PASSDOWN_AGENT``, else the user), and means nothing to a server, where
    the token says who asks.
    """
    if place is None:
        target = choose(os.environ, url=None, database=None, data=None, recorded=None)
    else:
        target = parse(str(place))
    if target.kind == "server":
        return Client(target.value, token if token is not None else os.environ.get("PASSDOWN_TOKEN", ""))

    from passdown.app.application import open_application
    from passdown.app.who import asserted

    who = asserted(principal, os.environ)
    store = Path(target.value) if target.kind == "folder" else target.value
    application = open_application(store, create=create)
    return Client.over(application.caller(who), application.close)
