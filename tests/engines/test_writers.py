"""Many writers at once on every engine: one winner, one history, nothing lost that was acknowledged."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from engine_support import SCOPE, Desk, child, hear, one_winner, outcome, prepared, tell

from support.places import Place

WRITERS = 64


@pytest.fixture
def desk(place: Place) -> Iterator[Desk]:
    with Desk(place.url) as opened:
        yield opened


def test_of_64_threads_exactly_one_makes_the_next_revision_each_round(desk: Desk) -> None:
    """Catches: a check and a write that are not one step, and losers told of a revision that is not the current one."""
    note = desk.note()
    base = None
    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(3):
            barrier = threading.Barrier(WRITERS)

            def commit(writer: int, base: Any = base, number: int = number, barrier: Any = barrier) -> Any:
                value = prepared(note, base, objective=f"Round {number} writer {writer}")
                barrier.wait(60)
                return outcome(lambda: desk.ask("commit_handoff", value))

            base = one_winner(list(pool.map(commit, range(WRITERS))), number)
    assert desk.numbers() == [3, 2, 1]


def test_of_four_processes_exactly_one_makes_the_next_revision_each_round(desk: Desk, place: Place) -> None:
    """Catches: the same between processes, each with a store of its own."""
    note = desk.note()
    base = None
    with ExitStack() as stack:
        processes = [stack.enter_context(child("commit_given", place.url)) for _ in range(4)]
        assert [hear(process) for process in processes] == ["ready"] * 4
        for number in range(8):
            for writer, process in enumerate(processes):
                tell(process, json.dumps(prepared(note, base, objective=f"Round {number} writer {writer}")))
            base = one_winner([hear(process) for process in processes], number)
    assert desk.numbers() == [8, 7, 6, 5, 4, 3, 2, 1]


def test_the_same_handoff_from_many_writers_is_made_once_and_is_no_conflict(desk: Desk) -> None:
    """Catches: a retry that races its first attempt told as a conflict, or given the id of an artifact that is not."""
    note = desk.note()
    base = None
    with ThreadPoolExecutor(16) as pool:
        for number in range(3):
            value = prepared(note, base, objective=f"Round {number}")
            barrier = threading.Barrier(16)

            def commit(_: int, value: Any = value, barrier: Any = barrier) -> Any:
                barrier.wait(60)
                return outcome(lambda: desk.ask("commit_handoff", value))

            answers = list(pool.map(commit, range(16)))
            base = answers[0]["handoff_ref"]
            assert {json.dumps(answer.get("handoff_ref")) for answer in answers} == {json.dumps(base)}, answers
            assert sorted(answer["replayed"] for answer in answers) == [False] + [True] * 15
    assert desk.numbers() == [3, 2, 1]


def test_every_acknowledged_revision_survives_kill_9(desk: Desk, place: Place) -> None:
    """Catches: an acknowledgement before the commit, half a revision, a number given twice."""
    note = desk.note()
    acknowledged: dict[int, str] = {}
    base = None
    for turn, count in enumerate((1, 5, 12)):
        with child("commit_loop", place.url, json.dumps(note), f"turn {turn}", json.dumps(base)) as process:
            for _ in range(count):
                told = hear(process)
                acknowledged[told["ref"]["revision"]] = told["digest"]
            process.send_signal(signal.SIGKILL)
            rest, _ = process.communicate()
            for line in rest.splitlines():
                told = json.loads(line)
                acknowledged[told["ref"]["revision"]] = told["digest"]
        # What the server may still be undoing stands in the way of this one, which is on the head or a conflict.
        desk.note(f"behind turn {turn}")
        base = desk.call("get_handoff", scope_id=SCOPE)["handoff"]["handoff_ref"]
    revisions = desk.call("list_handoff_revisions", scope_id=SCOPE, limit=100)["revisions"]
    found = {item["handoff_ref"]["revision"]: item["content_digest"] for item in revisions}
    assert sorted(found) == list(range(1, len(found) + 1))
    assert acknowledged.items() <= found.items()
    assert len(found) - len(acknowledged) <= 3
    evidence = {row[0] for row in place.rows("SELECT revision FROM pd_handoff_evidence")}
    assert evidence == set(found)


def test_workstreams_registered_at_once_are_counted_one_by_one(desk: Desk, place: Place) -> None:
    """Catches: two changes of a project with the same number, or one that nobody can list."""
    project = desk.call("create_handoff_report_project", key="shop", title="Shop")["project"]["project_id"]
    barrier = threading.Barrier(24)

    def register(number: int) -> Any:
        barrier.wait(60)
        ask = {"project_id": project, "title": "t", "key": f"k{number % 12}"}
        return outcome(lambda: desk.ask("register_handoff_report_workstream", ask))

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(register, range(24)))
    made = [answer for answer in answers if "workstream" in answer]
    assert len(made) == 12
    assert [answer["code"] for answer in answers if "code" in answer] == ["workstream_conflict"] * 12
    assert sorted(answer["project_revision"] for answer in made) == list(range(2, 14))
    counted = place.rows("SELECT catalog_revision FROM pc_handoff_report_workstream_revisions ORDER BY 1")
    assert counted == [(number,) for number in range(2, 14)]
    assert len(desk.call("list_handoff_report_workstreams", project_id=project)["workstreams"]) == 12


def test_two_projects_that_want_the_same_key_at_once_are_told_apart(desk: Desk) -> None:
    """Catches: a fault of ours where one of two had to lose."""
    ids = [
        desk.call("create_handoff_report_project", key=f"p{number}", title="t")["project"]["project_id"]
        for number in range(16)
    ]
    barrier = threading.Barrier(16)

    def rename(project: str) -> Any:
        barrier.wait(60)
        ask = {"project_id": project, "expected_version": 1, "key": "wanted"}
        return outcome(lambda: desk.ask("update_handoff_report_project", ask))

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(rename, ids))
    assert len([answer for answer in answers if "project" in answer]) == 1
    assert [answer["code"] for answer in answers if "code" in answer] == ["project_conflict"] * 15
