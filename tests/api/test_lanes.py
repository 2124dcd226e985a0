"""Bounded work: what is refused at once, what never runs, and what goes on although nobody waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from http_support import Site, check_problem

from passdown.api.lanes import Lane
from passdown.kernel.errors import PassdownError


def test_a_full_lane_refuses_at_once_and_takes_again_when_there_is_room() -> None:
    """Fault caught: a queue without an end, or a place that is never given back."""
    hold = threading.Event()

    async def scene() -> None:
        lane = Lane("reads", threads=1, waiting=1)
        inside = [asyncio.create_task(lane.run(lambda: hold.wait(30), seconds=30)) for _ in range(2)]
        while lane.inside < 2:
            await asyncio.sleep(0)
        with pytest.raises(PassdownError) as refused:
            await lane.run(lambda: None, seconds=30)
        assert (refused.value.code, refused.value.members) == ("server_busy", {"limit": 2, "rule": "reads"})
        hold.set()
        assert await asyncio.gather(*inside) == [True, True]
        assert await lane.run(lambda: "again", seconds=30) == "again"
        assert lane.inside == 0

    asyncio.run(scene())


def test_what_did_not_begin_in_time_never_runs() -> None:
    """Fault caught: a change that is made after its caller was told that nothing was done."""
    hold, entered, ran = threading.Event(), threading.Event(), threading.Event()

    def occupy() -> None:
        entered.set()
        hold.wait(30)

    async def scene() -> None:
        lane = Lane("writes", threads=1, waiting=5)
        first = asyncio.create_task(lane.run(occupy, seconds=30))
        await asyncio.to_thread(entered.wait, 30)
        with pytest.raises(PassdownError) as refused:
            await lane.run(ran.set, seconds=0.01)
        assert (refused.value.code, refused.value.members["rule"]) == ("server_busy", "writes")
        hold.set()
        await first
        await lane.run(lambda: None, seconds=30)
        assert not ran.is_set()

    asyncio.run(scene())


def test_what_runs_too_long_goes_on_and_its_outcome_is_not_claimed() -> None:
    """Fault caught: "nothing was done" said of a change that is being made."""
    hold, left = threading.Event(), threading.Event()

    def work() -> None:
        hold.wait(30)
        left.set()

    async def scene() -> None:
        lane = Lane("writes", threads=1, waiting=5)
        with pytest.raises(PassdownError) as refused:
            await lane.run(work, seconds=0.01)
        assert (refused.value.code, refused.value.members) == ("answer_timeout", {"limit": 0.01})
        hold.set()
        assert await asyncio.to_thread(left.wait, 30)

    asyncio.run(scene())


def test_a_late_answer_is_a_problem_and_a_repetition_finds_the_effect(own_site: Callable[..., Site]) -> None:
    """Fault caught: a request that waits for ever, or a time limit that undoes nothing and says it did."""
    site = own_site(answer_seconds=0.05)
    answer = site.post("/v1/notes/add", {"name": "held"})
    check_problem(answer, "answer_timeout", limit=0.05)
    assert answer.headers["retry-after"] == "1"
    site.notes.hold.set()
    assert site.notes.left.wait(30)
    assert site.post("/v1/notes/count", {}).json() == {"total": 1}


def test_reports_beyond_the_line_are_refused_while_other_reads_go_on(own_site: Callable[..., Site]) -> None:
    """Fault caught: readers of reports who take every thread, or wait without an end."""
    site = own_site(reports_waiting=1)
    hold, entered = threading.Event(), threading.Event()
    site.notes.on_print = lambda: (entered.set(), hold.wait(30))
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(site.post, "/v1/notes/print", {})
        assert entered.wait(30)
        second = pool.submit(site.post, "/v1/notes/print", {})
        gauge = site.app.state.desk.reports
        while gauge.inside < 2:
            assert site.post("/v1/notes/count", {}).status_code == 200
        third = site.post("/v1/notes/print", {})
        check_problem(third, "server_busy", rule="reports", limit=2)
        assert third.headers["retry-after"] == "1"
        assert site.post("/v1/notes/count", {}).status_code == 200
        hold.set()
        assert [each.result(30).status_code for each in (first, second)] == [200, 200]
