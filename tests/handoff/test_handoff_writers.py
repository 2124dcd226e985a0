"""Many writers, readers beside them, and writers that die: one linear history, whole at every moment."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from handoff_support import HOST, SCOPE, Desk, content, digest_of, draft, inline, prepared, say

from passdown.handoff.rules import Head
from passdown.handoff.store import append_revision
from passdown.kernel.errors import PassdownError

CHILDREN = Path(__file__).with_name("handoff_children.py")
WRITERS = 64


@contextmanager
def child(role: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(CHILDREN), role, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the child ended"
    return json.loads(line)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except PassdownError as error:
        return {"code": error.code, "current": error.members.get("current")}


def one_winner(answers: list[Any], base: int) -> dict[str, Any]:
    """Exactly one new revision behind ``base``; everybody else is told of it."""
    won = [answer for answer in answers if "status" in answer]
    assert [answer["handoff_ref"]["revision"] for answer in won] == [base + 1]
    assert (won[0]["status"], won[0]["replayed"]) == ("committed", False)
    lost = [answer for answer in answers if "status" not in answer]
    assert lost == [{"code": "handoff_conflict", "current": won[0]["handoff_ref"]}] * (len(answers) - 1)
    ref: dict[str, Any] = won[0]["handoff_ref"]
    return ref


def test_of_64_threads_on_one_base_exactly_one_wins_each_round(desk: Desk) -> None:
    """Catches a check and a write that are not one step."""
    note = desk.note()
    base = None
    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(4):
            barrier = threading.Barrier(WRITERS)

            def commit(writer: int, base: Any = base, number: int = number, barrier: Any = barrier) -> Any:
                value = prepared(content([say("x", note)], objective=f"Round {number} writer {writer}"), base)
                barrier.wait()
                return outcome(lambda: desk.ask("commit_handoff", value))

            base = one_winner(list(pool.map(commit, range(WRITERS))), number)
    assert desk.numbers() == [4, 3, 2, 1]


def test_of_64_threads_that_hand_off_now_exactly_one_wins_and_the_others_leave_nothing(desk: Desk) -> None:
    base = desk.commit()["handoff_ref"]
    barrier = threading.Barrier(WRITERS)

    def commit(writer: int) -> Any:
        evidence = [{"label": "n", "source_type": "content", "content": f"Note of {writer}."}]
        ask = {"scope_id": SCOPE, "commit": True, "evidence": evidence, "expected_base": base}
        ask |= draft([say("x", inline("n"))], objective=f"Writer {writer}")
        barrier.wait()
        return outcome(lambda: desk.ask("hand_off_now", ask))

    with ThreadPoolExecutor(WRITERS) as pool:
        answers = list(pool.map(commit, range(WRITERS)))
    one_winner([answer.get("committed") or answer for answer in answers], 1)
    assert desk.rows("SELECT COUNT(*) FROM pd_sources") == [(2,)]


def test_64_threads_with_the_same_content_get_the_same_revision(desk: Desk) -> None:
    """One makes it, the others are told that it is made: a retry in parallel is no conflict."""
    value = desk.finalize()
    barrier = threading.Barrier(WRITERS)

    def commit(_: int) -> Any:
        barrier.wait()
        return outcome(lambda: desk.ask("commit_handoff", value))

    with ThreadPoolExecutor(WRITERS) as pool:
        answers = list(pool.map(commit, range(WRITERS)))
    assert {answer["handoff_ref"]["revision"] for answer in answers} == {1}
    assert sum(not answer["replayed"] for answer in answers) == 1
    assert desk.numbers() == [1]


def test_64_threads_capture_one_source_once(desk: Desk) -> None:
    barrier = threading.Barrier(WRITERS)

    def capture(_: int) -> Any:
        barrier.wait()
        return desk.call("capture_source", scope_id=SCOPE, source_type="content", content="The same.")["replayed"]

    with ThreadPoolExecutor(WRITERS) as pool:
        assert sorted(pool.map(capture, range(WRITERS))) == [False] + [True] * (WRITERS - 1)


def test_of_four_processes_on_one_base_exactly_one_wins_each_round(desk: Desk, data: Path) -> None:
    note = desk.note()
    base = None
    with (
        child("commit_given", data) as a,
        child("commit_given", data) as b,
        child("commit_given", data) as c,
        child("commit_given", data) as d,
    ):
        writers = (a, b, c, d)
        assert [hear(writer) for writer in writers] == ["ready"] * 4
        for number in range(20):
            for at, writer in enumerate(writers):
                value = prepared(content([say("x", note)], objective=f"Round {number} writer {at}"), base)
                tell(writer, json.dumps(value))
            base = one_winner([hear(writer) for writer in writers], number)
    assert desk.numbers() == list(range(20, 0, -1))


def test_every_commit_that_was_acknowledged_before_a_kill_is_there_exactly_once(desk: Desk, data: Path) -> None:
    """Catches an answer that comes before the disk has it, and a retry that appends a second time."""
    note = desk.note()
    acknowledged: dict[int, str] = {}
    for life in range(3):
        with child("commit_loop", data, SCOPE, json.dumps(note), f"Life {life}") as writer:
            sent: dict[str, Any] = {}
            while len(acknowledged) < 12 * (life + 1):
                word = hear(writer)
                if "sent" in word:
                    sent = word["sent"]
                else:
                    ref = word["answer"]["handoff_ref"]
                    acknowledged[ref["revision"]] = word["answer"]["content_digest"]
            writer.kill()
            assert writer.stdout is not None
            for line in writer.stdout.read().splitlines(keepends=True):
                if not line.endswith("\n"):
                    continue
                word = json.loads(line)
                if "sent" in word:
                    sent = word["sent"]
                else:
                    ref = word["answer"]["handoff_ref"]
                    acknowledged[ref["revision"]] = word["answer"]["content_digest"]
            writer.wait()
        # The last answer may have been lost with the process: asking again finds the revision or makes it, once.
        again = desk.ask("commit_handoff", sent)
        acknowledged[again["handoff_ref"]["revision"]] = again["content_digest"]
        assert desk.ask("commit_handoff", sent) == again | {"replayed": True}
    numbers = desk.numbers()
    assert numbers == list(range(len(numbers), 0, -1))
    digests = {}
    for number in numbers:
        ref = desk.latest()["current_revision"] | {"revision": number}
        handoff = desk.call("get_handoff", scope_id=SCOPE, handoff_ref=ref)["handoff"]
        assert handoff["content_digest"] == digest_of(handoff["content"])
        digests[number] = handoff["content_digest"]
    assert len(set(digests.values())) == len(digests)
    assert digests == acknowledged


def test_killed_at_any_statement_of_a_commit_the_old_head_or_the_new_one_is_there_whole(desk: Desk, data: Path) -> None:
    """Every window of the transaction, each in a process of its own that is killed there."""
    notes = [desk.note(f"Note {number}.", source_id=f"n{number}") for number in range(3)]
    first = desk.commit(state=[say("Before.", *notes)])["handoff_ref"]
    value = prepared(content([say("After.", *notes)]), first)
    old = desk.everything()
    killed = 0
    with child("die_everywhere", data) as writer:
        tell(writer, json.dumps(value))
        while True:
            ended = hear(writer)
            if not ended["killed"]:
                assert ended["exit"] == 0
                break
            killed += 1
            assert desk.everything() == old
            assert desk.latest()["content"]["state"][0]["text"] == "Before."
            tell(writer, "next")
        tell(writer, "done")
    # Head, two digests, evidence, the move of the head, the revision and three citations: and the commit behind them.
    assert killed >= 9
    assert desk.latest()["content"] == value["content"]
    assert desk.numbers() == [2, 1]
    assert desk.ask("commit_handoff", value)["replayed"] is True


@pytest.mark.parametrize("seen", [0, 1])
def test_a_head_that_moved_is_not_moved_by_whoever_saw_it_before(desk: Desk, seen: int) -> None:
    """The last guard, below the decision: where transactions overlap, the row itself says who came first."""
    desk.commit(objective="One")
    artifact_id = desk.commit(objective="Two")["handoff_ref"]["artifact_id"]
    stale = Head(artifact_id, seen) if seen else None
    new = Head(artifact_id, seen + 1)
    before = desk.everything()
    moved = desk.application.store.write(
        lambda session: append_revision(
            session,
            SCOPE,
            base=stale,
            new=new,
            content=b"{}",
            digest="sha256:" + "0" * 64,
            references=[],
            now_us=0,
            who=HOST,
        )
    )
    assert moved is False
    assert desk.everything() == before


def test_a_reader_beside_a_writer_never_sees_a_gap_or_a_head_without_content(desk: Desk) -> None:
    """Catches a list and a head that are read from two moments."""
    note = desk.note()
    done = threading.Event()
    seen: list[int] = []
    turn = threading.Barrier(3)

    def read() -> int:
        last = 0
        turn.wait()
        while True:
            ending = done.is_set()
            numbers = desk.numbers()
            assert numbers == list(range(len(numbers), 0, -1))
            assert len(numbers) >= last
            last = len(numbers)
            if last:
                answer = desk.latest()
                assert answer["content_digest"] == digest_of(answer["content"])
                assert answer["is_current"]
                assert answer["current_revision"]["revision"] >= last
                assert answer["content"]["objective"] == f"Objective {answer['current_revision']['revision']}"
            seen.append(last)
            if ending:
                return last

    def write() -> None:
        turn.wait()
        try:
            for number in range(1, 81):
                desk.commit(objective=f"Objective {number}", state=[say("x", note)])
        finally:
            done.set()

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        pool.submit(write).result()
        assert [reader.result() for reader in readers] == [80, 80]
    assert len(seen) >= 2


@pytest.mark.slow
def test_four_processes_and_a_reader_share_one_history_without_loss(desk: Desk, data: Path) -> None:
    """Each writer goes on as fast as it can; every acknowledged commit is one revision, in one order."""
    note = desk.note()
    wanted = 40
    won: dict[int, str] = {}
    with (
        child("commit_loop", data, SCOPE, json.dumps(note), "a") as a,
        child("commit_loop", data, SCOPE, json.dumps(note), "b") as b,
        child("commit_loop", data, SCOPE, json.dumps(note), "c") as c,
        child("commit_loop", data, SCOPE, json.dumps(note), "d") as d,
    ):
        lock = threading.Lock()

        def collect(writer: subprocess.Popen[str]) -> int:
            mine = 0
            while mine < wanted:
                word = hear(writer).get("answer")
                if word is None or "code" in word:
                    assert word is None or word["code"] == "handoff_conflict"
                    continue
                mine += 1
                with lock:
                    assert word["handoff_ref"]["revision"] not in won
                    won[word["handoff_ref"]["revision"]] = word["content_digest"]
            writer.kill()
            return mine

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(collect, (a, b, c, d))) == [wanted] * 4
    numbers = desk.numbers()
    assert numbers == list(range(len(numbers), 0, -1))
    head = desk.latest()["current_revision"]
    for number, digest in won.items():
        ref = head | {"revision": number}
        assert desk.call("get_handoff", scope_id=SCOPE, handoff_ref=ref)["handoff"]["content_digest"] == digest
