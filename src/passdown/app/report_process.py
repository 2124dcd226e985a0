"""Reports built in a process of their own, so that commits beside many readers keep their pace.

A report is some tens of milliseconds of work for the processor. Inside the server that work would hold the interpreter
while commits wait for it; here it runs on another processor, at lower priority, over the same store.

States of the child: absent -> starting -> ready -> absent again (it ends by itself after ``idle_seconds`` without a
request, or with its parent, however that ends). While it starts, reports are built in the process that asked, so nobody
waits for it. Invariants: one request at a time; a child that broke is replaced once, and its request repeated, which is
safe since a report only reads; the time in a report is that of the parent's clock.

Public operations: :class:`ReportProcess`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from passdown.kernel.clock import Clock, FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Handler, Principal
from passdown.report.models import GetHandoffReportAsk
from passdown.report.operations import GET_REPORT, RenderedReport

IDLE_SECONDS: Final = 300.0
NICENESS: Final = 10
_READY: Final = b"ready"


class ReportProcess:
    """A handler of ``get_handoff_report`` that a child process carries out.

    ``target`` names the store as for :func:`passdown.app.application.open_application`; ``here`` is the handler of this
    process, used while the child starts. Close it, or the child ends with this process.
    """

    def __init__(self, target: Path | str, clock: Clock, here: Handler, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._target = target
        self._clock = clock
        self._here = here
        self._idle_seconds = idle_seconds
        self._turn = threading.Lock()
        self._child: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._ready = False

    def __call__(self, who: Principal, ask: GetHandoffReportAsk) -> RenderedReport:
        """See ``get_handoff_report``; a child that breaks twice is ``internal_error`` with rule ``report_process``."""
        with self._turn:
            for _ in range(2):
                if self._pipe is None:
                    self._start()
                try:
                    if not self._is_ready():
                        break
                    return self._ask_child(who, ask)
                except (EOFError, OSError):
                    self._end()
            else:
                raise PassdownError("internal_error", rule="report_process")
        answer: RenderedReport = self._here(who, ask)
        return answer

    def wait_until_ready(self) -> None:
        """Start the child and wait for it, for those who measure."""
        with self._turn:
            if self._pipe is None:
                self._start()
            if self._pipe is not None and not self._ready:
                self._ready = self._pipe.recv_bytes() == _READY

    def close(self) -> None:
        """End the child."""
        with self._turn:
            self._end()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, self._target, self._idle_seconds)
        self._child = context.Process(target=_serve, args=arguments, name="passdown-reports", daemon=True)
        self._child.start()
        theirs.close()
        self._ready = False

    def _is_ready(self) -> bool:
        if not self._ready and self._pipe is not None and self._pipe.poll(0):
            self._ready = self._pipe.recv_bytes() == _READY
        return self._ready

    def _ask_child(self, who: Principal, ask: GetHandoffReportAsk) -> RenderedReport:
        if self._pipe is None:
            raise EOFError
        self._pipe.send((who, ask.model_dump_json(), self._clock.now_us()))
        kind, told = self._pipe.recv()
        if kind == "report":
            body = self._pipe.recv_bytes()
            return RenderedReport(body=body, **told)
        if kind == "refused":
            raise PassdownError(told["code"], **told["members"])
        raise RuntimeError(f"the report process failed: {told}")

    def _end(self) -> None:
        pipe, self._pipe = self._pipe, None
        child, self._child = self._child, None
        if pipe is not None:
            pipe.close()
        if child is not None:
            child.terminate()
            child.join()
            child.close()


def _serve(pipe: Connection, target: Path | str, idle_seconds: float) -> None:
    """The child: answers one request after the other until its parent goes or nothing is asked for a while."""
    from passdown.app.application import open_application

    # An interrupt from the terminal reaches the whole group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    clock = FixedClock(0)
    with open_application(target, create=False, clock=clock) as application, pipe:
        handler = application.handler(GET_REPORT.name)
        pipe.send_bytes(_READY)
        while pipe.poll(idle_seconds):
            try:
                who, asked, now_us = pipe.recv()
            except EOFError:
                return
            clock.move(now_us - clock.now_us())
            _answer(pipe, handler, who, asked)


def _answer(pipe: Connection, handler: Handler, who: Principal, asked: str) -> None:
    try:
        report: RenderedReport = handler(who, GetHandoffReportAsk.model_validate_json(asked))
    except PassdownError as error:
        pipe.send(("refused", {"code": error.code, "members": error.members}))
        return
    except Exception as fault:  # noqa: BLE001  the outermost place of this process: the parent answers and logs it
        pipe.send(("failed", type(fault).__name__))
        return
    told: dict[str, Any] = {
        "media_type": report.media_type,
        "selection_digest": report.selection_digest,
        "report_digest": report.report_digest,
        "file_name": report.file_name,
    }
    pipe.send(("report", told))
    pipe.send_bytes(report.body)
