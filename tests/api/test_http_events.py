"""Hints of change over one long answer: when they come, what they carry, who may listen, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from http_support import NOW_US, Site, check_problem

from passdown.api.events import Hints
from passdown.kernel.errors import PassdownError
from passdown.storage import open_store

QUICK = {"poll_seconds": 0.005}


class Listener:
    """One open answer, read frame by frame."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._chunks = answer.iter_text()
        self._text = ""

    def frame(self) -> list[str]:
        """The lines of the next event or comment; empty at the end of the answer."""
        while "\n\n" not in self._text:
            chunk = next(self._chunks, None)
            if chunk is None:
                return []
            self._text += chunk
        frame, _, self._text = self._text.partition("\n\n")
        return frame.split("\n")


@contextmanager
def listening(site: Site, token: str | None = None, **headers: str) -> Iterator[Listener]:
    sent = {"Authorization": f"Bearer {token or site.agent}", **{k.replace("_", "-"): v for k, v in headers.items()}}
    with site.client.stream("GET", site.url + "/v1/events", headers=sent) as answer:
        yield Listener(answer)


def event(name: str, value: int) -> list[str]:
    return [f"event: {name}", f"id: {value}", f'data: {{"writes":{value}}}']


def test_a_listener_hears_at_once_where_the_counter_stands_and_then_of_every_change(
    own_site: Callable[..., Site],
) -> None:
    """Fault caught: a change between the reading of a page and the listening that nobody hears of."""
    site = own_site(**QUICK)
    now = site.store.writes()
    with listening(site) as listener:
        assert listener.answer.headers["content-type"].startswith("text/event-stream")
        assert listener.answer.headers["cache-control"] == "no-store"
        assert listener.frame() == event("ready", now)
        site.post("/v1/notes/add", {"name": "a"})
        assert listener.frame() == event("change", now + 1)
        site.post("/v1/notes/add", {"name": "a"})
        assert listener.frame() == event("change", now + 2)


def test_a_change_by_another_process_is_heard_too(own_site: Callable[..., Site]) -> None:
    """Fault caught: hints that only this process's own writes cause."""
    site = own_site(**QUICK)
    now = site.store.writes()
    other = open_store(site.folder / "passdown.db", create=False)
    with listening(site) as listener:
        listener.frame()
        other.write(lambda s: s.run("INSERT INTO pd_counters (name, value) VALUES (:n, 1)", n=b"other"))
        assert listener.frame() == event("change", now + 1)
    other.close()


def test_a_listener_that_comes_back_learns_at_once_whether_it_missed_something(own_site: Callable[..., Site]) -> None:
    """Fault caught: a reconnection that loses what happened meanwhile."""
    site = own_site(**QUICK)
    now = site.store.writes()
    with listening(site, Last_Event_ID=str(now)) as listener:
        assert listener.frame() == event("ready", now)
    with listening(site, Last_Event_ID=str(now - 1)) as listener:
        assert listener.frame() == event("change", now)
    # A store that was restored from a backup counts less; that is news too.
    with listening(site, Last_Event_ID=str(now + 5)) as listener:
        assert listener.frame() == event("change", now)


@pytest.mark.parametrize("value", ["-1", "1.0", "x", "", "9" * 17, "9007199254740992", "\u0661"])
def test_a_last_id_that_is_no_counter_is_refused(site: Site, value: str) -> None:
    """Fault caught: a value that is guessed, and a listener that never hears anything."""
    headers = [(b"Authorization", f"Bearer {site.agent}".encode()), (b"Last-Event-ID", value.encode())]
    answer = site.client.get(site.url + "/v1/events", headers=headers)
    check_problem(answer, "invalid_request", field="Last-Event-ID", rule="counter")


def test_nobody_listens_nothing_is_read(own_site: Callable[..., Site]) -> None:
    """Fault caught: a poll that goes on for ever after the last listener went."""
    reads = []
    site = own_site(poll_seconds=0.001, writes=lambda: reads.append(1) or len(reads))
    hints = site.app.state.hints
    assert hints.places_taken == 0
    assert hints._poller is None
    with listening(site) as listener:
        for _ in range(5):
            listener.frame()
        assert hints.places_taken == 1
    while hints.places_taken:
        site.client.get(site.url + "/healthz")
    assert hints._poller is None
    assert len(reads) >= 5


def test_listeners_are_bounded_and_a_place_is_free_again_when_one_goes(own_site: Callable[..., Site]) -> None:
    """Fault caught: connections without an end, or places that are lost with clients that just vanish."""
    site = own_site(listeners=2, **QUICK)
    with listening(site) as first:
        first.frame()
        with listening(site) as second:
            second.frame()
            answer = site.client.get(site.url + "/v1/events", headers={"Authorization": f"Bearer {site.agent}"})
            check_problem(answer, "server_busy", rule="listeners", limit=2)
            assert answer.headers["retry-after"] == "1"
        while site.app.state.hints.places_taken > 1:
            site.client.get(site.url + "/healthz")
        with listening(site) as third:
            assert third.frame()[0] == "event: ready"


def test_heartbeats_come_while_nothing_changes_and_end_with_the_token(own_site: Callable[..., Site]) -> None:
    """Fault caught: an answer that outlives the token which opened it."""
    site = own_site(heartbeat_seconds=0.01, poll_seconds=60)
    token, record = site.tokens.create("t", "ana", "agent", expires_us=NOW_US + 10)
    with listening(site, token) as listener:
        assert listener.frame()[0] == "event: ready"
        assert listener.frame() == [": still here"]
        site.clock.move(10)
        while (frame := listener.frame()) == [": still here"]:
            continue
        assert frame == []
    assert record.token_id
    while site.app.state.hints.places_taken:
        site.client.get(site.url + "/healthz")


def test_a_stopping_server_ends_the_answer_in_order(own_site: Callable[..., Site]) -> None:
    """Fault caught: a stop that waits for listeners, or cuts them off in the middle of a chunk."""
    site = own_site(**QUICK)
    with listening(site) as listener:
        listener.frame()
        site.server.should_exit = True
        assert listener.frame() == []
    site.thread.join(10)
    assert not site.thread.is_alive()


def test_listening_asks_for_a_token_that_is_not_confined_to_projects(site: Site) -> None:
    """Fault caught: hints of other projects, or a door without a lock."""
    check_problem(site.client.get(site.url + "/v1/events"), "unauthenticated", rule="missing")
    confined = site.tokens.create("c", "ana", "agent", projects=["prj_1"])[0]
    headers = {"Authorization": f"Bearer {confined}"}
    check_problem(site.client.get(site.url + "/v1/events", headers=headers), "forbidden", rule="project")
    other = site.tokens.create("o", "ana", "agent", operations=["get_handoff"])[0]
    headers = {"Authorization": f"Bearer {other}"}
    check_problem(site.client.get(site.url + "/v1/events", headers=headers), "forbidden", rule="operation")
    named = site.tokens.create("n", "ana", "reader", operations=["events"])[0]
    with listening(site, named) as listener:
        assert listener.frame()[0] == "event: ready"


def test_a_counter_that_cannot_be_read_for_a_while_ends_nobody(tmp_path: Path) -> None:
    """Fault caught: a poller that dies with the first busy store, after which no hint ever comes."""
    values = iter([PassdownError("store_busy"), PassdownError("store_not_readable"), 8])
    failures = []

    async def read() -> int:
        value = next(values, 8)
        if isinstance(value, PassdownError):
            raise value
        return value

    async def always() -> bool:
        return True

    async def scene() -> list[bytes]:
        hints = Hints(read, failures.append, poll_seconds=0.001)
        hints.take_place()
        frames = hints.listen(7, None, always)
        found = [await anext(frames), await anext(frames)]
        await frames.aclose()
        hints.close()
        with pytest.raises(PassdownError) as refused:
            hints.take_place()
        assert refused.value.code == "server_stopping"
        return found

    first, second = asyncio.run(scene())
    assert first.startswith(b"event: ready\nid: 7\n")
    assert second.startswith(b"event: change\nid: 8\n")
    assert [error.code for error in failures] == ["store_busy", "store_not_readable"]
