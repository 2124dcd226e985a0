"""What the server counts, in the text form of Prometheus.

Labels are words of closed vocabularies only: operation, format, locale, outcome. Nothing of a project, a scope, a
person or a token is in them, so the page may be kept anywhere, and its size does not grow with what is stored.

Public operations: :class:`Meters`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from passdown.api.exchange import Exchange

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Meters:
    """The counters of one application; they begin at zero with the process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "passdown_requests",
            "Requests by operation and outcome (ok, gone, or an error code).",
            ("operation", "outcome"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "passdown_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ("operation",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._bytes = Counter(
            "passdown_answer_bytes",
            "Bytes of answer bodies as sent.",
            ("operation",),
            registry=self._registry,
        )
        self._reports = Counter(
            "passdown_reports",
            "Reports asked for, by format, locale (project: the one of the project) and outcome.",
            ("format", "locale", "outcome"),
            registry=self._registry,
        )
        self.poll_failures = Counter(
            "passdown_event_poll_failures",
            "Times that the counter of writes could not be read for waiting listeners.",
            registry=self._registry,
        )

    def watch(self, name: str, description: str, value: Callable[[], int]) -> None:
        """Add a gauge that is read when somebody asks."""
        Gauge(f"passdown_{name}", description, registry=self._registry).set_function(value)

    def count(self, exchange: Exchange) -> None:
        """Count a request that has ended."""
        self._requests.labels(exchange.operation, exchange.outcome).inc()
        self._seconds.labels(exchange.operation).observe(exchange.seconds)
        self._bytes.labels(exchange.operation).inc(exchange.bytes_out)
        if exchange.format != "none":
            self._reports.labels(exchange.format, exchange.locale, exchange.outcome).inc()

    def page(self) -> bytes:
        """Everything counted so far."""
        return generate_latest(self._registry)
