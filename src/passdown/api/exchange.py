"""What is known of one request while it runs, and told of it when it ends: one log line and its metrics.

An :class:`Exchange` is made by the gate and travels in the ASGI scope; whoever learns something puts it there. It holds
words of closed vocabularies, numbers and the correlation id, never text of a request, an id of ours or a name.

Public operations: :class:`Exchange`, :func:`exchange_of`, :func:`log_requests_to`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import orjson

from passdown.kernel.timestamps import format_timestamp

EXCHANGE: Final = "passdown.exchange"
"""Where the gate keeps the exchange in the ASGI scope."""

_log = logging.getLogger("passdown.api")


@dataclass(slots=True)
class Exchange:
    """``operation`` is a name of ours or ``none``; ``outcome`` is ``ok``, ``gone`` or a code of the error table."""

    correlation_id: str
    operation: str = "none"
    outcome: str = "ok"
    status: int = 0
    bytes_out: int = 0
    format: str = "none"
    locale: str = "none"
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.perf_counter() - self.began

    def log(self) -> None:
        """Write the line of this request, at level INFO."""
        if _log.isEnabledFor(logging.INFO):
            _log.info(
                "%s",
                line(
                    "request",
                    correlation_id=self.correlation_id,
                    operation=self.operation,
                    status=self.status,
                    outcome=self.outcome,
                    duration_us=round(self.seconds * 1_000_000),
                    bytes=self.bytes_out,
                ),
            )


def line(event: str, **members: Any) -> str:
    """One JSON object on one line: ``at``, ``event``, then the members in the order given."""
    at = format_timestamp(time.time_ns() // 1_000)
    return orjson.dumps({"at": at, "event": event, **members}).decode("utf-8")


def exchange_of(scope: Mapping[str, Any]) -> Exchange:
    """The exchange of the request that this scope belongs to."""
    found: Exchange = scope[EXCHANGE]
    return found


def log_requests_to(stream: TextIO) -> None:
    """Write one JSON line for each request, and for each fault, to ``stream`` from now on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.propagate = False
