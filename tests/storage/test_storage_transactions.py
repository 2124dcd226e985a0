"""What one transaction promises to the rooms above."""

from __future__ import annotations

from pathlib import Path

import pytest
from storage_support import INSERT, VALUE, put, raw, refused, told, value_of

from passdown.storage import CHUNK, Store, chunks, in_list, in_pairs, table_of_pairs
from support.places import AGAIN, Place


def test_an_exception_rolls_the_whole_write_back(store: Store) -> None:
    """Catches: a commit in a finally block, or one statement committed by itself."""

    class Halt(Exception):
        pass

    def work(session):
        session.run(INSERT, name=b"one", value=1)
        session.run(INSERT, name=b"two", value=2)
        raise Halt

    with pytest.raises(Halt):
        store.write(work)
    assert value_of(store, b"one") is None
    assert value_of(store, b"two") is None
    assert store.writes() == 0


def test_a_failed_statement_dooms_the_write_even_if_its_error_is_swallowed(store: Store) -> None:
    """Catches: going on after SQLite may have rolled back, which commits later statements one by one."""

    def work(session):
        session.run(INSERT, name=b"first", value=1)
        refused(lambda: session.run("INSERT INTO pd_counters (name, value) VALUES (:n, NULL)", n=b"x"))
        refused(lambda: session.run(INSERT, name=b"second", value=2))

    assert told(refused(lambda: store.write(work))) == ("internal_error", "constraint")
    assert value_of(store, b"first") is None
    assert store.write(put(b"first")) is True


def test_a_key_that_is_taken_answers_false_and_the_transaction_goes_on(store: Store) -> None:
    """Catches: a violated key that undoes the statements before it."""

    def work(session):
        first = session.insert_new(INSERT, name=b"key", value=1)
        second = session.insert_new(INSERT, name=b"key", value=2)
        third = session.insert_new(INSERT, name=b"other", value=3)
        return first, second, third

    assert store.write(work) == (True, False, True)
    assert (value_of(store, b"key"), value_of(store, b"other")) == (1, 3)


def test_only_a_key_makes_insert_new_answer_false(store: Store) -> None:
    """Catches: every integrity error read as "already there"."""

    def work(session):
        return session.insert_new("INSERT INTO pd_counters (name, value) VALUES (:n, NULL)", n=b"null")

    assert told(refused(lambda: store.write(work))) == ("internal_error", "constraint")


def test_the_counter_of_writes_goes_up_once_for_each_write_that_changed_something(store: Store, place: Place) -> None:
    """Catches: a counter bumped by losers of a comparison, or outside the transaction."""
    assert store.writes() == 0
    store.write(put(b"a"))
    store.write(put(b"a"))  # taken: changes nothing
    store.write(lambda session: session.all("SELECT * FROM pd_counters"))
    store.write(lambda session: [put(b"b")(session), put(b"c")(session)])
    assert store.writes() == 2
    assert place.rows("SELECT value FROM pd_counters ORDER BY value DESC LIMIT 1") == [(2,)]


def test_a_reader_beside_an_open_write_sees_the_old_state_and_does_not_wait(store: Store) -> None:
    """Catches: one connection for both, or a read that asks for the write lock (it would wait for itself here)."""

    def work(session):
        session.run(INSERT, name=b"new", value=1)
        inside = value_of(store, b"new")
        return inside, session.one(VALUE, name=b"new")

    assert store.write(work) == (None, (1,))
    assert value_of(store, b"new") == 1


def test_a_read_keeps_the_snapshot_it_began_with(store: Store) -> None:
    """Catches: statements of one read that see different states, or a snapshot that begins at the first statement."""

    def work(session):
        store.write(put(b"early"))
        first = session.one(VALUE, name=b"early")
        store.write(put(b"late"))
        return first, session.one(VALUE, name=b"late")

    assert store.read(work) == (None, None)
    assert (value_of(store, b"early"), value_of(store, b"late")) == (0, 0)


def test_a_read_changes_nothing_whatever_its_statements_are(store: Store) -> None:
    """Catches: a read connection that can write."""
    assert told(refused(lambda: store.read(put(b"sly")))) == ("internal_error", "change_in_read")
    refused(lambda: store.read(lambda s: s.all(INSERT, name=b"sly", value=1)))
    assert value_of(store, b"sly") is None


def test_work_that_meets_a_retryable_error_is_run_again_from_the_start(store: Store) -> None:
    """Catches: no retry, or a retry on top of the first attempt's changes. A checkpoint inside a transaction is
    answered by SQLite with SQLITE_LOCKED; the servers raise what a deadlock raises."""
    calls = []

    def work(session):
        calls.append(session.insert_new(INSERT, name=b"again", value=len(calls)))
        if len(calls) == 1:
            session.all(AGAIN[store.engine])

    store.write(work)
    assert calls == [True, True]
    assert value_of(store, b"again") == 1
    assert store.writes() == 1


def test_retries_end_and_leave_nothing(store: Store) -> None:
    """Catches: an endless loop over an error that stays."""
    calls = []

    def work(session):
        calls.append(session.run(INSERT, name=b"never", value=1))
        session.all(AGAIN[store.engine])

    assert refused(lambda: store.write(work)).code == "store_busy"
    assert 1 < len(calls) < 10
    assert value_of(store, b"never") is None


@pytest.mark.parametrize("value", ["text", True, 1.5, bytearray(b"x"), [1]])
def test_a_parameter_that_is_neither_integer_nor_bytes_is_refused(store: Store, value: object) -> None:
    """Catches: text that silently compares unequal to the same bytes."""
    assert told(refused(lambda: store.read(lambda s: s.one(VALUE, name=value)))) == ("internal_error", "parameter_type")


def test_an_integer_of_64_bits_is_kept_and_one_more_is_refused(store: Store) -> None:
    """Catches: wrapped or rounded integers, and a bare OverflowError."""
    store.write(put(b"most", 2**63 - 1))
    assert value_of(store, b"most") == 2**63 - 1
    assert refused(lambda: store.write(put(b"more", 2**63))).code == "internal_error"
    assert value_of(store, b"more") is None


def test_identities_that_differ_by_case_accent_width_or_trailing_space_are_different(store: Store) -> None:
    """Catches: any collation between two identities."""
    names = ["N1", "n1", "e", "\u00e9", "e\u0301", "n1 ", "n1\0", "\U0001f600", "\U0001f601", "\uff4e1"]
    for number, name in enumerate(names):
        assert store.write(put(name.encode(), number)) is True
    assert [value_of(store, name.encode()) for name in names] == list(range(len(names)))


def test_more_than_one_row_is_a_fault_where_one_was_asked(store: Store) -> None:
    """Catches: an arbitrary row taken for the only one."""
    store.write(put(b"second"))
    error = refused(lambda: store.read(lambda s: s.one("SELECT value FROM pd_counters")))
    assert told(error) == ("internal_error", "more_than_one_row")


def test_a_session_ends_with_its_transaction(store: Store) -> None:
    """Catches: a session kept by a caller that then runs outside any transaction."""
    for kept in (store.read(lambda s: s), store.write(lambda s: s)):
        assert told(refused(lambda kept=kept: kept.all("SELECT 1"))) == ("internal_error", "session_ended")


def test_a_write_inside_a_write_is_refused_instead_of_waiting_for_itself(store: Store) -> None:
    """Catches: a deadlock of a thread with itself."""
    error = refused(lambda: store.write(lambda _: store.write(put(b"inner"))))
    assert told(error) == ("internal_error", "nested_write")
    assert store.write(put(b"outer")) is True


def test_a_closed_store_refuses_and_may_be_closed_again(store: Store) -> None:
    """Catches: a connection opened after the end that nobody closes."""
    store.close()
    store.close()
    assert told(refused(store.writes)) == ("internal_error", "store_closed")
    assert told(refused(lambda: store.write(put(b"x")))) == ("internal_error", "store_closed")


def test_statements_are_counted_without_those_of_the_store(store: Store) -> None:
    """Catches: a count that grows with BEGIN, COMMIT or the checks of the store."""

    def work(session):
        put(b"a")(session)
        session.all("SELECT 1")
        session.run("DELETE FROM pd_counters WHERE name = :n", n=b"a")
        return session.statements

    assert store.write(work) == 3


def test_lists_and_pairs_find_exactly_what_they_name_at_every_size(store: Store) -> None:
    """Catches: a value lost or invented by filling up, and the limit of a list."""

    def fill(session):
        for number in range(CHUNK + 1):
            session.run(INSERT, name=b"n%d" % number, value=number % 7)

    store.write(fill)
    for size in (0, 1, 2, 3, 5, 64, 65, CHUNK):
        names = [b"n%d" % number for number in range(size)]
        fragment, params = in_list("n", names)
        found = store.read(
            lambda s, f=fragment, p=params: s.all(f"SELECT name FROM pd_counters WHERE name IN {f}", **p)
        )
        assert sorted(row[0] for row in found) == sorted(names)
        fragment, params = in_pairs("name", "value", "p", [(name, i % 7) for i, name in enumerate(names)])
        found = store.read(lambda s, f=fragment, p=params: s.all(f"SELECT name FROM pd_counters WHERE {f}", **p))
        assert sorted(row[0] for row in found) == sorted(names)
        if names:
            asked, params = table_of_pairs("n", "v", "p", [(name, i % 7) for i, name in enumerate(names)])
            sql = f"SELECT c.name FROM {asked} a JOIN pd_counters c ON c.name = a.n AND c.value = a.v"
            found = store.read(lambda s, q=sql, p=params: s.all(q, **p))
            assert sorted(row[0] for row in found) == sorted(names)
    fragment, params = in_pairs("name", "value", "p", [(b"n1", 2), (b"n2", 1)])
    assert store.read(lambda s: s.all(f"SELECT name FROM pd_counters WHERE {fragment}", **params)) == []
    for too_long in (
        lambda: in_list("n", [1] * (CHUNK + 1)),
        lambda: in_pairs("a", "b", "p", [(1, 1)] * (CHUNK + 1)),
        lambda: table_of_pairs("a", "b", "p", [(1, 1)] * (CHUNK + 1)),
    ):
        assert told(refused(too_long)) == ("internal_error", "list_too_long")
    assert told(refused(lambda: table_of_pairs("a", "b", "p", []))) == ("internal_error", "list_empty")


def test_chunks_keep_order_and_lose_nothing() -> None:
    """Catches: the last, shorter run left out."""
    assert [list(run) for run in chunks([1, 2, 3, 4, 5], 2)] == [[1, 2], [3, 4], [5]]
    assert [len(run) for run in chunks(range(2 * CHUNK))] == [CHUNK, CHUNK]
    assert list(chunks([])) == []


def test_pairs_are_looked_up_by_key_and_not_by_scanning(database: Path) -> None:
    """Catches: a fragment that the planner answers with a scan of the table."""
    fragment, params = in_pairs("scope_id", "revision", "p", [(b"s%d" % n, n) for n in range(100)])
    connection = raw(database)
    try:
        plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM pd_handoff_revisions WHERE {fragment}", params)
        details = [row[3] for row in plan]
    finally:
        connection.close()
    assert not [detail for detail in details if detail.startswith("SCAN")]
    assert any("(scope_id=? AND revision=?)" in detail for detail in details)
