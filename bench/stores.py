"""A store with workstreams and revisions, made the same way each time, and a server over it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from passdown.app.application import Application
from passdown.handoff.operations import HAND_OFF_NOW, HandOffNowAsk
from passdown.kernel.operations import Principal
from passdown.kernel.wire import build, validate
from passdown.report.operations import CREATE_PROJECT, REGISTER_WORKSTREAM, CreateProjectAsk, RegisterWorkstreamAsk

WHO = Principal("bench", "asserted", "owner", host="bench")
STATEMENTS = 6
_STATES = ("continuable", "blocked", "complete")


def handoff(scope_id: str, number: int, revision: int) -> HandOffNowAsk:
    """One handoff of six statements, English and Chinese, each citing a note of its own."""
    labels = [f"note {index}" for index in range(STATEMENTS)]
    return validate(
        HandOffNowAsk,
        {
            "scope_id": scope_id,
            "objective": f"Objective of workstream {number}: 支付网关迁移",
            "state": [
                {
                    "text": f"Statement {index} of revision {revision}: the retry queue is wired, 已完成部分迁移。",
                    "citations": [{"kind": "inline", "label": label}],
                }
                for index, label in enumerate(labels)
            ],
            "disposition": _STATES[number % 3],
            "next_action": {"text": "Wire the worker.", "citations": [{"kind": "inline", "label": labels[0]}]},
            "evidence": [
                {"label": label, "source_type": "content", "content": f"{scope_id} {revision} {label}"}
                for label in labels
            ],
            "commit": True,
        },
    )


def fill(application: Application, *, workstreams: int, revisions: int, key: str = "bench") -> str:
    """Make a project of that size and return its id."""
    call = application.caller(WHO)
    project_id = call(CREATE_PROJECT, build(CreateProjectAsk, key=key, title=key)).project.project_id
    for number in range(workstreams):
        ask = build(RegisterWorkstreamAsk, project_id=project_id, title=f"Workstream {number}", key=f"w{number}")
        scope_id = call(REGISTER_WORKSTREAM, ask).workstream.scope_id
        for revision in range(1, revisions + 1):
            call(HAND_OFF_NOW, handoff(scope_id, number, revision))
    return project_id


@contextmanager
def served(data: Path) -> Iterator[str]:
    """A real server process over a data directory; yields its address."""
    command = [sys.executable, "-m", "passdown", "--data", str(data), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("no output")
            line = process.stdout.readline()
            yield line.strip().rsplit(" ", 1)[-1]
        finally:
            process.terminate()
            process.wait(10)
