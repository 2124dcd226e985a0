"""How fast a report is, in process and over HTTP, and how fast commits are over HTTP."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson

from bench.stores import WHO, fill, handoff, served
from bench.table import row
from passdown.app.application import Application, open_application
from passdown.identity.service import TokenService
from passdown.kernel.wire import build, dump
from passdown.report.models import GetHandoffReportAsk
from passdown.report.operations import GET_REPORT

ROUNDS = 30
COMMITS = 200


def rows() -> list[dict[str, Any]]:
    """Reports of 100 and 10 workstreams with 10 revisions each, and commits in sequence."""
    with tempfile.TemporaryDirectory(prefix="passdown-bench-") as folder:
        data = Path(folder)
        with open_application(data, create=True) as application:
            large = fill(application, workstreams=100, revisions=10, key="large")
            small = fill(application, workstreams=10, revisions=10, key="small")
            found = _in_process(application, large)
            tokens = TokenService(application.store, application.clock, application.ids)
            token, _ = tokens.create("bench", "bench", "owner")
        with served(data) as address:
            found += _over_http(address, token, large, small)
    return found


def _p50(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return round(statistics.median(times) * 1000, 1)


def _in_process(application: Application, project_id: str) -> list[dict[str, Any]]:
    call = application.caller(WHO)

    def make(form: str, *, checks: bool) -> Callable[[], object]:
        ask = build(GetHandoffReportAsk, project_id=project_id, format=form, include_evidence_checks=checks)
        return lambda: call(GET_REPORT, ask)

    on, off = _p50(make("json", checks=True)), _p50(make("json", checks=False))
    size = len(call(GET_REPORT, build(GetHandoffReportAsk, project_id=project_id, format="json")).body)
    return [
        row("report JSON, 100 x 10, in process, p50", on, "ms", f"{size} bytes, checks on"),
        row("evidence checks on against off", round(on / off, 2), "ratio", "same run", at_most=1.5),
        row("report Markdown, 100 x 10, in process, p50", _p50(make("markdown", checks=True)), "ms", "checks on"),
    ]


def _over_http(address: str, token: str, large: str, small: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as client:

        def ask(project_id: str, form: str) -> Callable[[], object]:
            body = orjson.dumps({"project_id": project_id, "format": form})
            return lambda: client.post(GET_REPORT.path, content=body).raise_for_status()

        found = [
            row("report JSON, 100 x 10, HTTP, p50", _p50(ask(large, "json")), "ms", "one client", at_most=60),
            row("report Markdown, 100 x 10, HTTP, p50", _p50(ask(large, "markdown")), "ms", "one client", at_most=90),
            row("report JSON, 10 x 10, HTTP, p50", _p50(ask(small, "json")), "ms", "one client", at_most=15),
        ]
        bodies = [orjson.dumps(dump(handoff("bench-commits", 0, number))) for number in range(COMMITS)]
        start = time.perf_counter()
        for body in bodies:
            client.post("/v1/handoff/hand-off-now", content=body).raise_for_status()
        rate = round(COMMITS / (time.perf_counter() - start))
    return [*found, row("handoffs over HTTP in sequence", rate, "1/s", "6 notes captured with each", at_least=150)]
