"""Servers that are down, closed to us, of another kind, or that vanish in the middle: typed, and never twice."""

from __future__ import annotations

import re
import socket
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from storage_support import COMPARE_AND_SET, INSERT, VALUE, put, refused, told, value_of

from passdown.kernel.errors import PassdownError
from passdown.storage import Store, open_store
from support.places import ServerPlace
from support.proxy import Proxy
from support.servers import PASSWORD, QUOTED, Server, free_port

pytestmark = pytest.mark.engines("postgresql", "mysql", "oceanbase")


def through(place: ServerPlace, proxy: Proxy) -> str:
    """The URL of a place, by way of a proxy."""
    user = {"postgresql": "postgres", "mysql": "passdown", "oceanbase": "root"}[place.engine]
    return f"{place.engine}://{user}@127.0.0.1:{proxy.port}/{place.database}"


def proxy_for(place: ServerPlace) -> Proxy:
    server: Any = place.server
    return Proxy(server.socket_file() if place.engine == "oceanbase" else server.port)


def shown(error: BaseException) -> str:
    """Everything that a log could show of an error, with its causes."""
    return "".join(traceback.format_exception(error)) + repr(error)


def test_a_server_that_is_not_there_is_unreachable(engine: str, tmp_path: Any) -> None:
    """Catches: a wait, a bare error of the driver, or a store made somewhere else instead."""
    places = [f"{engine}://someone:{QUOTED}@127.0.0.1:{free_port()}/d"]
    if engine != "postgresql":
        places.append(f"{engine}://someone:{QUOTED}@/d?unix_socket={tmp_path}/none.sock")
    for url in places:
        error = refused(lambda url=url: open_store(url, create=True))
        assert told(error) == ("store_not_readable", "unreachable")
        assert error.spec.status == 503
        assert PASSWORD not in shown(error)
        assert QUOTED not in shown(error)


def test_something_else_that_listens_there_is_unreachable(engine: str) -> None:
    """Catches: a handshake with a stranger that ends in an untyped error."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def hang_up() -> None:
            connection, _ = stranger.accept()
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        port = stranger.getsockname()[1]
        error = refused(lambda: open_store(f"{engine}://u@127.0.0.1:{port}/d", create=True))
        thread.join()
    assert told(error) == ("store_not_readable", "unreachable")


def test_a_wrong_password_is_denied_and_shown_nowhere(place: ServerPlace) -> None:
    """Catches: a secret in a message, a log or the URL, and a denial taken for a server that is down."""
    server = place.server
    wrong = "wr0ng-w0rd"
    error = refused(lambda: open_store(server.url(place.database, user="locked", password=wrong), create=False))
    assert told(error) == ("store_not_readable", "denied")
    assert wrong not in shown(error)


def test_a_user_without_rights_is_denied_and_with_them_works(place: ServerPlace) -> None:
    """Catches: a password that is mangled on its way, a right that is needed beyond those on rows."""
    server, database = place.server, place.database
    url = server.url(database, user="locked", password=QUOTED)
    error = refused(lambda: open_store(url, create=False))
    assert told(error) == ("store_not_readable", "denied")
    if place.engine == "postgresql":
        grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO locked"
        server.execute(grant, database=database)
    else:
        server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO locked")
    store = open_store(url, create=False)
    assert PASSWORD not in store.url
    assert QUOTED not in store.url
    assert store.write(put(b"by locked", 1)) is True
    store.close()
    if place.engine == "postgresql":
        server.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM locked", database=database)
    else:
        server.execute(f"REVOKE SELECT, INSERT, UPDATE, DELETE ON {database}.* FROM locked")


def test_a_user_who_may_not_create_tables_is_refused_with_nothing_made(fresh_place: ServerPlace) -> None:
    """Catches: half a schema made by a user who should not make any."""
    server, database = fresh_place.server, fresh_place.database
    if fresh_place.engine != "postgresql":
        server.execute(f"GRANT SELECT ON {database}.* TO guest")
    error = refused(lambda: open_store(server.url(database, user="guest"), create=True))
    assert told(error) == ("store_not_writable", "denied")
    assert fresh_place.tables() == set()


def test_a_database_that_does_not_exist_is_missing(place: ServerPlace) -> None:
    """Catches: a database made by us, or a failure that reads like a server that is down."""
    error = refused(lambda: open_store(place.server.url("nowhere"), create=True))
    assert told(error) == ("store_not_readable", "missing")


def test_tables_that_vanish_under_a_running_store_are_missing(fresh_place: ServerPlace) -> None:
    """Catches: a fault of ours told for a schema that somebody dropped."""
    store = fresh_place.open(create=True)
    fresh_place.rows("DROP TABLE alembic_version")
    assert told(refused(store.writes)) == ("store_not_readable", "missing")
    assert told(refused(lambda: store.write(put(b"x")))) == ("store_not_readable", "missing")
    store.close()


@pytest.mark.engines("mysql")
def test_a_server_of_another_engine_is_not_used_by_its_neighbours_rules(
    place: ServerPlace, pytestconfig: pytest.Config, server_of: Callable[[str], Server], engine: str
) -> None:
    """Catches: OceanBase without its settings, found only when two writers wait for each other."""
    error = refused(lambda: open_store(place.target.replace("mysql://", "oceanbase://"), create=False))
    assert told(error) == ("store_not_readable", "other_engine")
    if pytestconfig.getoption("engines") == "all":
        url = server_of("oceanbase").url("test").replace("oceanbase://", "mysql://")
        assert told(refused(lambda: open_store(url, create=True))) == ("store_not_readable", "other_engine")


def test_a_store_answers_typed_while_its_server_is_down_and_works_again_afterwards(
    store: Store, place: ServerPlace
) -> None:
    """Catches: pooled connections to a server that is gone, kept or handed out again; untyped errors meanwhile."""
    store.write(put(b"before", 1))
    assert value_of(store, b"before") == 1
    for end in (place.server.stop, place.server.kill):
        end()
        try:
            for _ in range(2):
                assert told(refused(store.writes)) == ("store_not_readable", "unreachable")
                assert told(refused(lambda: store.write(put(b"lost")))) == ("store_not_writable", "unreachable")
        finally:
            place.server.start()
        assert value_of(store, b"before") == 1
        assert store.write(put(b"after %d" % store.writes())) is True
    assert store.writes() == 3
    assert value_of(store, b"lost") is None


def test_a_connection_lost_before_the_commit_is_repeated_without_a_word(place: ServerPlace) -> None:
    """Catches: an error for what can be done again safely, or work that is done on top of its first attempt."""
    with proxy_for(place) as proxy:
        store = open_store(through(place, proxy), create=False)
        calls: list[bool] = []

        def work(session: Any) -> None:
            calls.append(session.insert_new(INSERT, name=b"once", value=len(calls)))
            if len(calls) == 1:
                proxy.armed = "before"
                refused(lambda: session.all("SELECT 1 /* COMMIT */"))

        store.write(work)
        store.close()
    assert proxy.lost == 1
    assert calls == [True, True]
    assert place.rows(f"SELECT value FROM pd_counters WHERE name = {place.literal(b'once')}") == [(1,)]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_commit_whose_answer_was_lost_is_told_as_unknown_and_not_repeated(place: ServerPlace, moment: Any) -> None:
    """Catches: a repeated commit that writes twice, and "nothing was written" said of what is there.

    Lost before the server saw it nothing is there, lost after it everything is; nobody on this side can know which."""
    with proxy_for(place) as proxy:
        store = open_store(through(place, proxy), create=False)
        calls: list[bool] = []

        def work(session: Any) -> None:
            proxy.armed = moment
            calls.append(session.insert_new(INSERT, name=b"once", value=1))

        error = refused(lambda: store.write(work))
        assert error.code == "store_outcome_unknown"
        assert error.spec.status == 503
        assert len(calls) == proxy.lost == 1
        # The caller's way on: the same request again decides by what is there.
        assert store.write(put(b"once", 1)) is (moment == "before")
        assert value_of(store, b"once") == 1
        assert store.writes() == 1
        store.close()


def test_writers_that_wait_for_each_other_both_get_through(store: Store) -> None:
    """Catches: a deadlock told to the caller. Each writer holds its first row until the other has its own, once."""
    store.write(lambda s: [put(b"x")(s), put(b"y")(s)])
    both = threading.Barrier(2)
    done: list[bytes] = []
    met: list[int] = []

    def writer(first: bytes, second: bytes) -> None:
        tries: list[int] = []

        def work(session: Any) -> None:
            tries.append(1)
            session.run("UPDATE pd_counters SET value = value + 1 WHERE name = :n", n=first)
            if len(tries) == 1:
                both.wait(30)
            session.run("UPDATE pd_counters SET value = value + 1 WHERE name = :n", n=second)

        store.write(work)
        done.append(first)
        met.append(len(tries))

    threads = [threading.Thread(target=writer, args=names) for names in ((b"x", b"y"), (b"y", b"x"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [b"x", b"y"]
    assert sum(met) > 2, "nobody met a deadlock"
    assert (value_of(store, b"x"), value_of(store, b"y"), store.writes()) == (2, 2, 3)


def test_a_key_taken_between_a_look_and_an_update_is_looked_at_again(store: Store) -> None:
    """Catches: a fault of ours for two callers who want the same name at once; SQLite never lets them meet."""
    store.write(lambda s: [put(b"a", 1)(s), put(b"b", 2)(s)])
    seen: list[object] = []

    def rename(session: Any) -> str:
        seen.append(session.one(VALUE, name=b"wanted"))
        if seen[-1] is not None:
            return "taken"
        if len(seen) == 1:
            other = threading.Thread(target=lambda: store.write(put(b"wanted", 9)))
            other.start()
            other.join()
        session.run("UPDATE pd_counters SET name = :new WHERE name = :old", new=b"wanted", old=b"a")
        return "renamed"

    assert store.write(rename) == "taken"
    assert seen == [None, (9,)]
    assert value_of(store, b"a") == 1


def test_a_comparison_sees_what_was_committed_while_it_waited(store: Store) -> None:
    """Catches: a writer that compares with its own old snapshot and overwrites, or that is refused as stale."""
    store.write(put(b"head"))
    held, go = threading.Event(), threading.Event()

    def slow(session: Any) -> int:
        won: int = session.run(COMPARE_AND_SET, name=b"head", seen=0)
        held.set()
        go.wait(30)
        return won

    won: list[int] = []
    first = threading.Thread(target=lambda: won.append(store.write(slow)))
    first.start()
    held.wait(30)

    def late(session: Any) -> int:
        threading.Timer(0.05, go.set).start()
        touched: int = session.run(COMPARE_AND_SET, name=b"head", seen=0)
        return touched

    lost = store.write(late)
    first.join()
    assert (won, lost) == ([1], 0)
    assert value_of(store, b"head") == 1


def test_a_value_that_an_update_finds_unchanged_counts_as_touched(store: Store) -> None:
    """Catches: rows counted as changed instead of found, on which a comparison would seem to fail."""
    store.write(put(b"same", 5))
    sql = "UPDATE pd_counters SET value = 5 WHERE name = :n AND value = 5"
    assert store.write(lambda s: s.run(sql, n=b"same")) == 1


def test_more_readers_and_writers_than_connections_wait_their_turn(store: Store) -> None:
    """Catches: a pool that refuses what it could serve a moment later, or that hands one connection to two."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(60)

    def use(number: int) -> None:
        try:
            barrier.wait(30)
            store.write(put(b"n%d" % number, number))
            assert value_of(store, b"n%d" % number) == number
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.writes() == 60


def test_an_interrupted_transaction_gives_back_no_connection_in_the_middle_of_something(store: Store) -> None:
    """Catches: the next user of a pooled connection reading the answer to somebody else's question."""

    def interrupted(session: Any) -> None:
        session.run(INSERT, name=b"half", value=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.write(interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.read(interrupt)
    assert value_of(store, b"half") is None
    assert store.write(put(b"half", 2)) is True


def interrupt(session: Any) -> None:
    session.one(VALUE, name=b"writes")
    raise KeyboardInterrupt


def test_a_counter_that_is_gone_is_damage_and_stops_the_write(store: Store, place: ServerPlace) -> None:
    """Catches: writes that wake nobody from then on."""
    place.rows(f"DELETE FROM pd_counters WHERE name = {place.literal(b'writes')}")
    assert told(refused(lambda: store.write(put(b"x")))) == ("store_not_readable", "damaged")
    assert value_of(store, b"x") is None


def test_statements_show_no_values_in_what_a_log_may_keep(store: Store) -> None:
    """Catches: private text in the message of an error of the driver."""
    secret = b"zq-private-zq"
    error = refused(lambda: store.write(lambda s: s.run("INSERT INTO pd_counters (name) VALUES (:n)", n=secret)))
    assert isinstance(error, PassdownError)
    assert not re.search(secret.decode(), f"{error} {error.problem()}")
