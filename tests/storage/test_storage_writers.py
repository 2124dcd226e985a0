"""Many writers: order, exactly one winner, bounded waits, death at any moment."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from storage_support import COMPARE_AND_SET, INSERT, answer, child, put, raw, refused, rows, told, value_of

from passdown.storage import Store, open_store
from passdown.storage.locks import FifoQueue, FileLock
from support.places import Place


def _run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_64_threads_exactly_one_wins_each_round(store: Store) -> None:
    """Catches: a lost update, two winners, or a busy error under contention."""
    rounds, writers = 8, 64
    store.write(put(b"head"))
    barrier = threading.Barrier(writers)
    winners: list[int] = []
    errors: list[BaseException] = []

    def contend() -> None:
        try:
            for seen in range(rounds):
                barrier.wait()
                if store.write(lambda s, seen=seen: s.run(COMPARE_AND_SET, name=b"head", seen=seen)) == 1:
                    winners.append(seen)
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    _run([threading.Thread(target=contend) for _ in range(writers)])
    assert errors == []
    assert Counter(winners) == dict.fromkeys(range(rounds), 1)
    assert value_of(store, b"head") == rounds
    assert store.writes() == rounds + 1


def test_of_four_processes_exactly_one_wins_each_round(store: Store, place: Place) -> None:
    """Catches: the same between processes; the insert of a second winner would fail on its key."""
    rounds = 60
    store.write(put(b"round"))
    processes = [child("contend", place.text, rounds) for _ in range(4)]
    won = []
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [answer(process) for process in processes]
    assert sum(won) == rounds
    assert value_of(store, b"round") == rounds
    between = "SELECT COUNT(*) FROM pd_counters WHERE name > :low AND name < :high"
    assert store.read(lambda s: s.one(between, low=b"winner-", high=b"winner.")) == (rounds,)


def test_writers_get_their_turn_in_order_of_arrival(file_store: Store) -> None:
    """Catches: a lock that lets late writers pass those in line."""
    store = file_store
    order: list[int] = []
    inside, go = threading.Event(), threading.Event()

    def first(session):
        inside.set()
        go.wait()
        order.append(-1)

    def later(number: int) -> None:
        store.write(lambda _: order.append(number))

    threads = [threading.Thread(target=store.write, args=(first,))]
    threads[0].start()
    inside.wait()
    for number in range(20):
        threads.append(threading.Thread(target=later, args=(number,)))
        threads[-1].start()
        while store._queue.waiting <= number:
            os.sched_yield()
    go.set()
    for thread in threads:
        thread.join()
    assert order == list(range(-1, 20))


def test_a_waiter_that_gives_up_leaves_the_line() -> None:
    """Catches: a turn handed to a thread that is gone, after which nobody writes any more."""
    queue = FifoQueue()
    assert queue.acquire(0.0)
    assert not queue.acquire(0.0)
    assert queue.waiting == 0
    queue.release()
    assert queue.acquire(0.0)


def test_a_queue_with_two_places_lets_two_in_and_the_next_in_order() -> None:
    """Catches: one place too many, or a place that is lost when nobody waits."""
    queue = FifoQueue(2)
    assert [queue.acquire(0.0) for _ in range(3)] == [True, True, False]
    queue.release()
    queue.release()
    assert [queue.acquire(0.0) for _ in range(3)] == [True, True, False]
    order: list[int] = []
    threads = []
    for number in range(5):
        threads.append(
            threading.Thread(target=lambda n=number: (queue.acquire(time.monotonic() + 30), order.append(n)))
        )
        threads[-1].start()
        while queue.waiting <= number:
            os.sched_yield()
    for number in range(5):
        queue.release()
        threads[number].join()
    assert order == [0, 1, 2, 3, 4]


def _lock_waiters() -> int:
    return sum(thread.name == "passdown-store-lock" for thread in threading.enumerate())


def test_a_file_lock_that_was_given_up_can_be_had_later(tmp_path: Path) -> None:
    """Catches: the waiter of an earlier caller keeping a lock that nobody wants, or one more thread for each caller."""
    mine, other, third = (FileLock(tmp_path / "l") for _ in range(3))
    assert mine.acquire(0.0)
    before = _lock_waiters()
    assert not other.acquire(time.monotonic())
    assert not other.acquire(time.monotonic())
    assert _lock_waiters() == before + 1
    mine.release()
    assert third.acquire(time.monotonic() + 10)
    third.release()
    third.close()
    assert other.acquire(time.monotonic() + 30)
    assert not mine.acquire(time.monotonic())
    other.release()
    assert mine.acquire(time.monotonic() + 30)
    mine.release()
    mine.close()
    other.close()
    assert (tmp_path / "l").stat().st_mode & 0o777 == 0o600


def test_a_write_that_waits_too_long_for_another_process_is_busy_and_works_afterwards(place: Place) -> None:
    """Catches: an unbounded wait for the writer who is in the way (on SQLite whoever writes, else of the same key)."""
    holder = child("hold_turn", place.text)
    assert holder.stdout.readline() == "inside\n"
    store = place.open(wait_seconds=0.1)
    assert refused(lambda: store.write(put(b"held"))).code == "store_busy"
    assert value_of(store, b"held") is None
    assert answer(holder, say="\n") == "committed"
    store.close()
    store = place.open()
    assert store.write(put(b"held")) is False
    assert store.write(put(b"mine")) is True
    assert value_of(store, b"held") == 1
    store.close()


def test_a_program_that_locks_the_database_itself_makes_writes_busy_but_not_reads(database: Path) -> None:
    """Catches: trust in the file lock alone, work begun before the lock is held, and reads that need the lock."""
    begun: list[bool] = []
    store = open_store(database, create=False, wait_seconds=0.1)
    other = raw(database)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE pd_counters SET value = 77")
    assert refused(lambda: store.write(lambda s: [begun.append(True), put(b"mine")(s)])).code == "store_busy"
    assert begun == []
    assert store.writes() == 0
    other.execute("COMMIT")
    other.close()
    assert store.write(put(b"mine")) is True
    assert store.writes() == 78
    store.close()


def test_a_writer_killed_inside_its_transaction_frees_its_place_and_leaves_nothing(store: Store, place: Place) -> None:
    """Catches: a lock that outlives its process, and half a transaction."""
    holder = child("hold_turn", place.text)
    assert holder.stdout.readline() == "inside\n"
    holder.kill()
    holder.communicate()
    assert store.write(put(b"next")) is True
    assert value_of(store, b"held") is None
    assert store.write(put(b"held", 2)) is True
    assert store.writes() == 2


def test_every_acknowledged_write_survives_kill_9_and_none_is_there_twice_or_by_half(place: Place) -> None:
    """Catches: acknowledgement before the commit, and pairs torn apart. Killed after 1, 7, 20 and 41 acknowledgements;
    the write under way may be there or not, but whole."""
    first, acknowledged = 0, []
    for rounds in (1, 7, 20, 41):
        process = child("commit_loop", place.text, first)
        for _ in range(rounds):
            acknowledged.append(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        acknowledged += [int(line) for line in rest.splitlines()]
        first = 1_000 * (first // 1_000 + 1)
    store = place.open()
    assert store.write(put(b"last")) is True  # behind whatever the servers still undo
    found = place.rows("SELECT name, value FROM pd_counters")
    left = [value for name, value in found if bytes(name).startswith(b"left-")]
    right = [value for name, value in found if bytes(name).startswith(b"right-")]
    assert sorted(left) == sorted(right)
    assert len(set(left)) == len(left)
    assert set(acknowledged) <= set(left)
    assert len(left) - len(acknowledged) <= 4
    assert store.writes() == len(left) + 1
    store.close()


def test_readers_and_writers_in_threads_see_whole_transactions_only(store: Store) -> None:
    """Catches: a pooled connection used by two threads, and reads of half a write. Two rows always move together."""
    store.write(lambda s: [put(b"x")(s), put(b"y")(s)])
    stop = threading.Event()
    torn: list[object] = []

    def write() -> None:
        for _ in range(40):
            store.write(
                lambda s: [s.run("UPDATE pd_counters SET value = value + 1 WHERE name = :n", n=n) for n in (b"x", b"y")]
            )

    def read() -> None:
        while not stop.is_set():
            x, y = store.read(lambda s: s.all("SELECT value FROM pd_counters WHERE name IN (:a, :b)", a=b"x", b=b"y"))
            if x != y:
                torn.append((x, y))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for thread in readers:
        thread.start()
    _run([threading.Thread(target=write) for _ in range(3)])
    stop.set()
    for thread in readers:
        thread.join()
    assert torn == []
    assert value_of(store, b"x") == 120


def test_a_child_process_shares_no_connection_and_writes_by_its_own(place: Place) -> None:
    """Catches: a connection shared over a fork; the child counts descriptors of the file that it inherited."""
    told_by_child = answer(child("fork_after_use", place.text))
    assert told_by_child == {"status": 0, "rows": [["before", 1], ["child", 0], ["parent", 1]]}


@pytest.mark.parametrize("where", ["read", "write"])
def test_a_child_forked_inside_a_transaction_refuses_and_the_parent_goes_on(database: Path, where: str) -> None:
    """Catches: a child that touches the transaction of its parent, or that releases its parent's lock."""
    assert answer(child("fork_inside", database, where)) == {"status": 0, "again": True}
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.engines("postgresql", "mysql", "oceanbase")
@pytest.mark.parametrize("where", ["read", "write"])
def test_a_child_forked_inside_a_transaction_of_a_server_leaves_it_alone(place: Place, where: str) -> None:
    """Catches: a child that ends the connection, or the transaction, of its parent."""
    told_by_child = answer(child("fork_inside_on_a_server", place.text, where))
    assert told_by_child == {"status": 0, "counted": 0, "again": True}


def test_a_removed_or_replaced_file_takes_no_more_writes(file_store: Store, database: Path, migrated: Path) -> None:
    """Catches: writes into a file that has no name any more."""
    store = file_store
    store.write(put(b"kept"))
    moved = database.with_name("moved.db")
    os.rename(database, moved)
    assert told(refused(lambda: store.write(put(b"lost")))) == ("store_not_writable", "missing")
    assert told(refused(store.writes)) == ("store_not_readable", "missing")
    database.write_bytes(migrated.read_bytes())
    assert told(refused(lambda: store.write(put(b"lost")))) == ("store_not_writable", "replaced")
    assert told(refused(store.writes)) == ("store_not_readable", "replaced")
    os.replace(moved, database)
    assert store.write(put(b"found")) is True
    assert value_of(store, b"kept") == 0


def test_the_insert_of_a_second_winner_is_refused_by_its_key(store: Store) -> None:
    """Catches: the storm between processes passing although two won (it relies on this refusal)."""
    store.write(put(b"winner-1"))
    assert told(refused(lambda: store.write(lambda s: s.run(INSERT, name=b"winner-1", value=2)))) == (
        "internal_error",
        "constraint",
    )
