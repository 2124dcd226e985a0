"""Reports from a process of their own: the same bytes, the same refusals, and what happens when it dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from passdown.app.application import Application, open_application
from passdown.app.report_process import ReportProcess
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.report.models import GetHandoffReportAsk
from passdown.report.operations import CREATE_PROJECT, GET_REPORT, CreateProjectAsk, RenderedReport

WHO = Principal("ana", "authenticated", "reader")
NOW_US = 1_800_000_000_000_000


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW_US)


@pytest.fixture
def application(tmp_path: Path, clock: FixedClock) -> Iterator[Application]:
    with open_application(tmp_path, create=True, clock=clock) as opened:
        yield opened


@pytest.fixture
def project_id(application: Application) -> str:
    made = application.caller(WHO)(CREATE_PROJECT, CreateProjectAsk(key="p", title="项目"))
    return made.project.project_id


class Here:
    """The handler of this process, counted."""

    def __init__(self, application: Application) -> None:
        self.calls = 0
        self._handler = application.handler(GET_REPORT.name)

    def __call__(self, who: Principal, ask: Any) -> RenderedReport:
        self.calls += 1
        report: RenderedReport = self._handler(who, ask)
        return report


@pytest.fixture
def here(application: Application) -> Here:
    return Here(application)


@pytest.fixture
def reports(tmp_path: Path, clock: FixedClock, here: Here) -> Iterator[ReportProcess]:
    made = ReportProcess(tmp_path, clock, here)
    yield made
    made.close()


def ask(project_id: str, form: str = "json", **members: Any) -> GetHandoffReportAsk:
    return GetHandoffReportAsk(project_id=project_id, format=form, **members)  # type: ignore[arg-type]


def test_a_report_is_the_same_to_the_byte_wherever_it_is_built(
    reports: ReportProcess, here: Here, project_id: str, clock: FixedClock
) -> None:
    """Fault caught: another clock, a member that is lost on the way, or a child that is never used."""
    for form in ("json", "markdown"):
        for locale in (None, "en"):
            expected = here(WHO, ask(project_id, form, locale=locale))
            reports.wait_until_ready()
            before = here.calls
            assert reports(WHO, ask(project_id, form, locale=locale)) == expected
            assert here.calls == before
            clock.move(1_000_000)


def test_nobody_waits_for_the_child_to_start(reports: ReportProcess, here: Here, project_id: str) -> None:
    """Fault caught: a first report that takes the time of an interpreter's start."""
    reports(WHO, ask(project_id))
    assert here.calls == 1


def test_a_refusal_comes_back_with_its_members(reports: ReportProcess, here: Here) -> None:
    """Fault caught: a refusal that becomes a fault when it crosses the process."""
    with pytest.raises(PassdownError) as expected:
        here(WHO, ask("prj_missing"))
    reports.wait_until_ready()
    with pytest.raises(PassdownError) as refused:
        reports(WHO, ask("prj_missing"))
    assert refused.value.code == expected.value.code == "project_not_found"
    assert refused.value.members == expected.value.members


def test_a_killed_child_is_replaced_and_the_report_is_answered(
    reports: ReportProcess, here: Here, project_id: str
) -> None:
    """Fault caught: a server that can build no report any more after one kill."""
    reports.wait_until_ready()
    expected = reports(WHO, ask(project_id))
    child = reports._child
    assert child is not None
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert reports(WHO, ask(project_id)) == expected
    reports.wait_until_ready()
    assert reports._child is not child
    before = here.calls
    assert reports(WHO, ask(project_id)) == expected
    assert here.calls == before


def test_an_idle_child_ends_by_itself_and_another_one_follows(
    tmp_path: Path, clock: FixedClock, here: Here, project_id: str
) -> None:
    """Fault caught: memory that is kept for a report a week ago, or an end that nobody notices."""
    reports = ReportProcess(tmp_path, clock, here, idle_seconds=0.01)
    try:
        reports.wait_until_ready()
        child = reports._child
        assert child is not None
        child.join(30)
        assert child.exitcode == 0
        assert reports(WHO, ask(project_id)) == here(WHO, ask(project_id))
    finally:
        reports.close()


def test_closing_ends_the_child(reports: ReportProcess) -> None:
    """Fault caught: processes that are left behind."""
    reports.wait_until_ready()
    child = reports._child
    assert child is not None
    pid = child.pid
    assert pid is not None
    reports.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
