"""Ids: form, order, uniqueness. Oracle: the number that the 26 characters spell, computed here."""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passdown.kernel.clock import FixedClock, SystemClock
from passdown.kernel.ids import PREFIXES, RandomIds, SequentialIds

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
FORM = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")


def number(ulid: str) -> int:
    value = 0
    for char in ulid:
        value = value * 32 + CROCKFORD.index(char)
    return value


def milliseconds(new_id: str) -> int:
    return number(new_id[-26:]) >> 80


@pytest.mark.parametrize("prefix", sorted(PREFIXES))
def test_an_id_is_its_prefix_and_a_ulid_of_the_clock(prefix: str) -> None:
    new_id = RandomIds(FixedClock(1_469_918_176_385_999)).new(prefix)
    assert new_id.startswith(prefix)
    assert FORM.fullmatch(new_id[len(prefix) :])
    # The example of the ULID description: 1469918176385 ms is 01ARYZ6S41.
    assert new_id[len(prefix) :].startswith("01ARYZ6S41")


@pytest.mark.parametrize("prefix", ["", "prj", "prj_x", "PRJ_", "foo_", "../"])
def test_an_unknown_prefix_is_refused(prefix: str) -> None:
    for source in (RandomIds(FixedClock(0)), SequentialIds()):
        with pytest.raises(ValueError, match="unknown id prefix"):
            source.new(prefix)


def test_the_last_eighty_bits_are_the_entropy_given() -> None:
    # Would catch a weaker or shorter source of randomness.
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return bytes(range(1, count + 1))

    new_id = RandomIds(FixedClock(0), entropy).new("evt_")
    assert asked == [10]
    assert number(new_id[4:]) == int.from_bytes(bytes(range(1, 11)), "big")


@given(st.lists(st.integers(-3_000, 3_000), max_size=40))
@settings(deadline=None)
def test_ids_increase_whatever_the_clock_does(moves: list[int]) -> None:
    clock = FixedClock(10**15)
    source = RandomIds(clock)
    made = [source.new("evt_")]
    for move in moves:
        clock.move(move)
        made.append(source.new("evt_"))
    assert made == sorted(set(made))


def test_ids_of_later_milliseconds_sort_later_across_sources() -> None:
    made = [RandomIds(FixedClock(us)).new("hnd_") for us in range(10**15, 10**15 + 50_000, 1_000)]
    assert made == sorted(made)


def test_an_overflow_within_one_millisecond_goes_on_in_the_next() -> None:
    source = RandomIds(FixedClock(5_000), lambda count: b"\xff" * count)
    first, second = source.new("evt_"), source.new("evt_")
    assert (milliseconds(first), milliseconds(second)) == (5, 6)
    assert first < second


@pytest.mark.parametrize(("us", "expected"), [(-1, 0), (-(10**18), 0), (2**48 * 1_000, 2**48 - 1)])
def test_a_clock_outside_the_range_still_gives_well_formed_ids(us: int, expected: int) -> None:
    new_id = RandomIds(FixedClock(us)).new("evt_")
    assert FORM.fullmatch(new_id[4:])
    assert milliseconds(new_id) == expected


def test_threads_never_get_the_same_id_and_each_sees_its_own_increase() -> None:
    source, count, threads = RandomIds(SystemClock()), 500, 8
    barrier = threading.Barrier(threads)
    made: list[list[str]] = [[] for _ in range(threads)]

    def work(mine: list[str]) -> None:
        barrier.wait()
        mine.extend(source.new("evt_") for _ in range(count))

    workers = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(mine == sorted(mine) for mine in made)
    assert len({new_id for mine in made for new_id in mine}) == count * threads


def test_two_threads_are_never_inside_one_source_at_once() -> None:
    # Would catch a lost lock: both threads would meet while they draw, and then overwrite each other's state.
    meeting = threading.Barrier(2)
    met: list[int] = []

    def entropy(count: int) -> bytes:
        with suppress(threading.BrokenBarrierError):
            met.append(meeting.wait(timeout=0.2))
        return bytes(count)

    source = RandomIds(FixedClock(0), entropy)
    made: list[str] = []
    workers = [threading.Thread(target=lambda: made.append(source.new("evt_"))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert met == []
    assert len(set(made)) == 2


def test_a_forked_process_makes_other_ids_in_the_same_millisecond() -> None:
    # Would catch counting up by one: both processes hold the same last id.
    source = RandomIds(FixedClock(5_000))
    source.new("evt_")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.new("evt_").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        of_child = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert FORM.fullmatch(of_child[4:])
    assert of_child != source.new("evt_")


def test_sequential_ids_are_the_same_every_time_and_count_by_prefix() -> None:
    def run() -> list[str]:
        source = SequentialIds()
        return [source.new(prefix) for prefix in ("src_", "evt_", "src_", *("prj_",) * 40)]

    first = run()
    assert first == run()
    assert [number(new_id[-26:]) for new_id in first] == [1, 1, 2, *range(1, 41)]
    assert all(FORM.fullmatch(new_id[-26:]) for new_id in first)
    assert first[3:] == sorted(first[3:])
