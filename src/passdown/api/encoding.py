"""Compressed answers: gzip where the client takes it and the answer is large enough to gain.

Compression is work for the thread that made the answer: it lets other threads run meanwhile, and the event loop never
waits for it. The fastest level is used; it already shrinks a report to a tenth.

Public operations: :func:`accepts_gzip`, :func:`encode`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

SMALLEST: Final = 1024
"""Answers of more bytes than this are compressed."""

VARY: Final = "Accept-Encoding"
_LEVEL: Final = 1
_QUALITY: Final = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\Z")


def accepts_gzip(accept_encoding: Sequence[str]) -> bool:
    """Whether these ``Accept-Encoding`` headers take gzip: by its name, or by ``*`` if it is not named.

    A weight of zero refuses; a member that cannot be read counts as not there.
    """
    named: dict[str, bool] = {}
    for member in ",".join(accept_encoding).lower().split(","):
        coding, *parameters = (part.strip() for part in member.split(";"))
        weights = [value for name, _, value in (each.partition("=") for each in parameters) if name == "q"]
        if len(parameters) > 1 or len(weights) != len(parameters):
            continue
        if weights and not _QUALITY.match(weights[0]):
            continue
        named[coding] = not weights or float(weights[0]) > 0
    return named.get("gzip", named.get("x-gzip", named.get("*", False)))


def encode(response: Response, *, accepted: bool) -> Response:
    """The same answer, compressed if that is accepted and worth it; either way it says what it depends on."""
    response.headers["Vary"] = VARY
    body = bytes(response.body)
    if accepted and len(body) > SMALLEST:
        response.body = gzip.compress(body, compresslevel=_LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response
