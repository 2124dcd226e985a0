"""Commits beside readers: 8 clients read the report of 100 workstreams over and over while one client commits.

Every client is a thread of its own process and does as little as it can, so that what is measured is the server. The
rates are taken in turns within one run, since a shared machine is never equally quick twice.
"""

from __future__ import annotations

import http.client
import multiprocessing
import statistics
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import orjson

from bench.stores import fill, handoff, served
from bench.table import row
from passdown.app.application import open_application
from passdown.identity.service import TokenService
from passdown.kernel.wire import dump
from passdown.report.operations import GET_REPORT

READERS = 8
SECONDS = 4.0
TURNS = 2


def rows() -> list[dict[str, Any]]:
    """The rate of commits without and with readers, and what the readers wait."""
    with tempfile.TemporaryDirectory(prefix="passdown-bench-") as folder:
        data = Path(folder)
        with open_application(data, create=True) as application:
            project_id = fill(application, workstreams=100, revisions=10, key="large")
            tokens = TokenService(application.store, application.clock, application.ids)
            token, _ = tokens.create("bench", "bench", "owner")
        with served(data) as address:
            port = int(address.rpartition(":")[2])
            idle, beside, waits = _measure(port, token, project_id)
    ratio = round(statistics.median(beside) / statistics.median(idle), 2)
    median = round(statistics.median(waits) * 1000)
    worst = round(sorted(waits)[int(len(waits) * 0.99)] * 1000)
    return [
        row("handoffs over HTTP, idle", round(statistics.median(idle)), "1/s", f"one client, {TURNS} turns"),
        row("handoffs over HTTP, beside readers", round(statistics.median(beside)), "1/s", f"{READERS} readers"),
        row("beside readers against idle", ratio, "ratio", "same run, in turns", at_least=0.8),
        row("report JSON, 100 x 10, 8 readers, p50", median, "ms", "beside the commits", at_most=500),
        row("report JSON, 100 x 10, 8 readers, p99", worst, "ms", f"{len(waits)} reports"),
    ]


def _measure(port: int, token: str, project_id: str) -> tuple[list[float], list[float], list[float]]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    readers = context.Process(target=_read, args=(there, port, token, project_id))
    readers.start()
    here.recv()
    idle, beside, waits = [], [], []
    writer = _Writer(port, token)
    writer.run(1.0)
    for _ in range(TURNS):
        idle.append(writer.run(SECONDS))
        here.send("go")
        here.recv()
        beside.append(writer.run(SECONDS))
        here.send("stop")
        waits += here.recv()
    here.send("end")
    readers.join()
    return idle, beside, waits


class _Writer:
    """Commits one handoff after the other, each with six new notes."""

    def __init__(self, port: int, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._number = 0

    def run(self, seconds: float) -> float:
        """Commits per second."""
        begun, done = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            self._number += 1
            body = orjson.dumps(dump(handoff("bench-commits", 0, self._number)))
            _post(self._connection, "/v1/handoff/hand-off-now", body, self._headers)
            done += 1
        return done / (time.perf_counter() - begun)


def _post(connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]) -> None:
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status}")


def _read(pipe: Connection, port: int, token: str, project_id: str) -> None:
    """The process of the readers: reads between ``go`` and ``stop``, then sends what each report took."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = orjson.dumps({"project_id": project_id, "format": "json"})
    pipe.send("ready")
    while pipe.recv() == "go":
        stop, waits = threading.Event(), list[float]()
        first = threading.Barrier(READERS + 1)

        def read(stop: threading.Event = stop, waits: list[float] = waits, first: threading.Barrier = first) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            _post(connection, GET_REPORT.path, body, headers)
            first.wait()
            while not stop.is_set():
                begun = time.perf_counter()
                _post(connection, GET_REPORT.path, body, headers)
                waits.append(time.perf_counter() - begun)
            connection.close()

        threads = [threading.Thread(target=read) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        first.wait()
        pipe.send("reading")
        pipe.recv()
        stop.set()
        for thread in threads:
            thread.join()
        pipe.send(waits)
