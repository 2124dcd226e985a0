"""One operation as an HTTP request and its answer as a model or a refusal. Pure: nothing is sent here.

Synchronous and asynchronous clients share this, so that both speak exactly the same protocol.

Public operations: :func:`request_of`, :func:`answer_of`, :func:`refusal_of`, :func:`is_temporary`, :func:`place_of`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import orjson
from pydantic import BaseModel, ValidationError

from passdown.app.repeating import KEYED
from passdown.kernel.errors import ERRORS, PassdownError
from passdown.kernel.operations import Op

Q = TypeVar("Q")
A = TypeVar("A")

MAX_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of an answer; the largest one that a server makes is a report of 10 MiB."""

PROBLEM: Final = "application/problem+json"
_OWN_MEMBERS: Final = frozenset({"type", "title", "status", "code", "next_step", "correlation_id"})
_TEMPORARY: Final = frozenset(
    {"store_busy", "store_outcome_unknown", "handoff_report_busy", "server_busy", "server_stopping", "answer_timeout"}
)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKEN: Final = re.compile(r"[\x21-\x7e]+\Z")
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is: scheme, host, port, and the path in front of every address (empty or ``/prefix``)."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def url(self) -> str:
        """The place as a URL without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    @property
    def is_loopback(self) -> bool:
        """Whether the server is named as one of this machine; compressing for it would only cost time."""
        return self.host in _LOOPBACK


@dataclass(frozen=True, slots=True)
class Request:
    """What is posted: the path below the place, the headers, the body."""

    path: str
    headers: Mapping[str, str]
    body: bytes


def place_of(url: str) -> Place:
    """The place that a URL names; anything but ``http(s)://HOST[:PORT][/PREFIX]`` is ``invalid_request``."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise PassdownError("invalid_request", field="url", rule="url") from None
    plain = url.isascii() and not (parts.query or parts.fragment or parts.username or parts.password)
    if not plain or parts.scheme not in ("http", "https") or not _HOST.match(host) or " " in url:
        raise PassdownError("invalid_request", field="url", rule="url")
    default = 443 if parts.scheme == "https" else 80
    return Place(parts.scheme, host, default if port is None else port, parts.path.rstrip("/"))


def checked_token(token: str) -> str:
    """The token as a header can carry it; else ``unauthenticated`` with rule ``missing`` or ``malformed``."""
    if not _TOKEN.match(token):
        raise PassdownError("unauthenticated", rule="malformed" if token else "missing")
    return token


def request_of(op: Op[Any, Any], ask: Any, token: str, *, key: str, compressed: bool) -> Request:
    """``key`` travels as ``Idempotency-Key`` with the operations that take one."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept-Encoding": "gzip" if compressed else "identity",
    }
    if op.name in KEYED:
        headers["Idempotency-Key"] = key
    return Request(op.path, headers, cast(BaseModel, ask).model_dump_json().encode("utf-8"))


def answer_of(op: Op[Q, A], status: int, headers: Mapping[str, str], body: bytes) -> A:
    """The model of an answer with status 200, or the refusal raised. Header names are in lower case."""
    if status != 200:
        raise refusal_of(status, headers, body)
    try:
        if not issubclass(op.answer, BaseModel):  # bytes with a media type of their own
            return cast(Callable[..., A], op.answer)(
                body=body,
                media_type=headers["content-type"],
                selection_digest=headers["passdown-selection-digest"],
                report_digest=headers["passdown-report-digest"],
                file_name=headers["passdown-file-name"],
            )
        return cast(A, op.answer.model_validate_json(body))
    except (KeyError, ValidationError):
        raise PassdownError("server_not_understood", rule="answer") from None


def refusal_of(status: int, headers: Mapping[str, str], body: bytes) -> PassdownError:
    """The refusal that problem details tell, with its members; anything else is ``server_not_understood``.

    The correlation id stands in a note of the error, since it belongs to the exchange and not to the refusal.
    """
    try:
        problem = orjson.loads(body)
    except orjson.JSONDecodeError:
        problem = None
    is_problem = headers.get("content-type", "").partition(";")[0].strip() == PROBLEM and isinstance(problem, dict)
    if not is_problem or problem.get("code") not in ERRORS:
        return PassdownError("server_not_understood", rule="status", status_code=status)
    error = PassdownError(
        problem["code"], **{name: value for name, value in problem.items() if name not in _OWN_MEMBERS}
    )
    correlation_id = problem.get("correlation_id")
    if isinstance(correlation_id, str):
        error.add_note(f"correlation_id {correlation_id[:128]}")
    return error


def is_temporary(error: PassdownError) -> bool:
    """Whether the same request may fare better in a moment: no answer came, or the server is only busy."""
    if error.code == "server_not_understood":
        return error.members.get("status_code") == 503
    return error.code == "server_not_reachable" or error.code in _TEMPORARY
