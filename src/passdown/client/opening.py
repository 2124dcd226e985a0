"""Opening Passdown from a program: a data directory on this machine, or a server."""

from __future__ import annotations

import os
from pathlib import Path

from passdown.client.client import Client


def open(
    place: str | Path | None = None, *, token: str | None = None, create: bool = False, principal: str | None = None
) -> Client:
    """A client for ``place``: ``http(s)://…`` is a server, anything else a data directory.

    Without a place it is ``PASSDOWN_URL`` if that is set, else the data directory of this user (``PASSDOWN_DATA``, else
    the XDG one). A server wants ``token`` (else ``PASSDOWN_TOKEN``). A directory that has no store is
    ``store_not_readable`` with rule ``missing``, unless ``create`` says to make one; ``principal`` is the name under
    which embedded writes are recorded (else ``PASSDOWN_AGENT``, else the user), and means nothing to a server, where
    the token says who asks.
    """
    named = os.environ.get("PASSDOWN_URL") if place is None else place
    if isinstance(named, str) and named.startswith(("http://", "https://")):
        return Client(named, token if token is not None else os.environ.get("PASSDOWN_TOKEN", ""))

    from passdown.app.application import open_application
    from passdown.app.paths import data_directory
    from passdown.app.who import asserted

    who = asserted(principal, os.environ)
    application = open_application(data_directory(None if place is None else str(place), os.environ), create=create)
    return Client.over(application.caller(who), application.close)
