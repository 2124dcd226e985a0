"""Who asks when there is no token: embedded use knows its caller only by the name that it asserts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from passdown.kernel import limits
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.text import TextRefused, normalise_identifier


def asserted(name: str | None, environment: Mapping[str, str]) -> Principal:
    """The owner of this machine's store under ``name``, else ``PASSDOWN_AGENT``, else the name of the user.

    What it captures counts as read by this host. A name that is no identifier is ``invalid_request``.
    """
    try:
        checked = normalise_identifier(
            name or environment.get("PASSDOWN_AGENT") or _user(), max_chars=limits.IDENTIFIER
        )
    except TextRefused as refused:
        raise PassdownError("invalid_request", field="principal", rule=refused.rule) from None
    return Principal(checked, "asserted", "owner", host=os.uname().nodename or "localhost")


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
