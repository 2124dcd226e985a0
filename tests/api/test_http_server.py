"""The server process: where it listens, what it prints, how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_support import Site, check_problem

from passdown.api.server import bind_listener, url_of
from passdown.kernel.errors import PassdownError
from passdown.storage import open_store

CHILD = Path(__file__).with_name("http_child.py")


class Child:
    """A server in a process of its own."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", port: int = 0) -> None:
        open_store(folder / "passdown.db", create=True).close()  # here it is quick: the migration is loaded already
        command = [sys.executable, str(CHILD), str(folder), host, str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.token = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str, str]:
        """Exit code, the rest of stdout, stderr."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, err = self.process.stdout.read(), self.process.stderr.read()
        return self.process.wait(30), out, err


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    started: list[Child] = []

    def start(**options: Any) -> Child:
        started.append(Child(tmp_path / str(len(started)), **options))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


@pytest.fixture
def child(children: Callable[..., Child]) -> Child:
    return children()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_server_prints_one_line_when_it_answers_and_ends_cleanly(child: Child, stop: signal.Signals) -> None:
    """Fault caught: a ready line that comes too early, noise on either stream, an end by a signal or a traceback."""
    words, _, url = child.line().rpartition(" ")
    assert words == "passdown: serving"
    with httpx.Client(trust_env=False) as client:
        assert client.get(url + "/healthz").json() == {"status": "ok"}
        headers = {"Authorization": f"Bearer {child.token}"}
        assert client.post(url + "/v1/notes/add", json={"name": "a"}, headers=headers).json()["total"] == 1
        child.process.send_signal(stop)
        assert child.end() == (0, "ended\n", "")


def test_half_a_request_does_not_keep_the_server_from_ending(child: Child) -> None:
    """Fault caught: an end that waits for a client that says nothing more."""
    port = int(child.line().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"POST /v1/notes/add HTTP/1.1\r\nHost: loc")
        child.process.send_signal(signal.SIGTERM)
        assert child.end()[:2] == (0, "ended\n")


def test_a_port_that_is_taken_is_said_before_anything_is_served(children: Callable[..., Child]) -> None:
    """Fault caught: a second server that prints that it serves, or ends with a traceback."""
    with bind_listener("127.0.0.1", 0) as taken:
        assert children(port=taken.getsockname()[1]).end() == (5, "address_not_available in_use\n", "")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.7"])
def test_only_loopback_is_bound_without_a_proxy_statement(host: str) -> None:
    """Fault caught: an empty or unspecified host that means every interface."""
    with pytest.raises(PassdownError) as refused:
        bind_listener(host, 0).close()
    assert (refused.value.code, refused.value.members["rule"]) == ("address_not_available", "not_loopback")


def test_a_name_with_one_address_beyond_loopback_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault caught: a name that is trusted for the first of its addresses."""
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in ("127.0.0.1", "192.0.2.7")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_named: both)
    with pytest.raises(PassdownError) as refused:
        bind_listener("two.example", 0).close()
    assert refused.value.members["rule"] == "not_loopback"


def test_behind_a_proxy_any_own_address_is_bound() -> None:
    """Fault caught: a statement that has no effect."""
    with bind_listener("0.0.0.0", 0, behind_tls_proxy=True) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


@pytest.mark.parametrize(
    ("host", "port", "rule"),
    [
        ("192.0.2.7", 0, "not_here"),
        ("no-such-host.invalid", 0, "unknown_host"),
        ("a" * 300, 0, "unknown_host"),
        ("..", 0, "unknown_host"),
        ("127.0.0.1", 65_536, "port"),
        ("127.0.0.1", -1, "port"),
    ],
)
def test_an_address_that_cannot_be_bound_says_why(host: str, port: int, rule: str) -> None:
    """Fault caught: an error of the socket library that reaches the user."""
    with pytest.raises(PassdownError) as refused:
        bind_listener(host, port, behind_tls_proxy=True).close()
    assert (refused.value.code, refused.value.members["rule"]) == ("address_not_available", rule)
    assert host not in str(refused.value.problem())


def test_the_url_is_the_host_as_named_and_the_port_as_bound() -> None:
    """Fault caught: port 0 in the line, or an IPv6 address that no client can read."""
    with bind_listener("localhost", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of("localhost", listener) == f"http://localhost:{port}"
        assert url_of("::1", listener) == f"http://[::1]:{port}"


def test_a_request_under_way_is_finished_when_the_server_stops(own_site: Callable[..., Site]) -> None:
    """Fault caught: a stop that cuts off an answer that was about to come."""
    site = own_site()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(site.post, "/v1/notes/add", {"name": "held"})
        assert site.notes.entered.wait(30)
        site.server.should_exit = True
        site.notes.hold.set()
        assert answer.result(30).status_code == 200


def test_a_request_that_outlasts_the_stop_is_answered_with_a_problem(own_site: Callable[..., Site]) -> None:
    """Fault caught: a connection that just breaks, or an answer of the server library."""
    site = own_site()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(site.post, "/v1/notes/add", {"name": "held"})
        assert site.notes.entered.wait(30)
        site.server.should_exit = True
        check_problem(answer.result(30), "server_stopping")
        site.notes.hold.set()
        assert site.notes.left.wait(30)


def test_waiting_writers_keep_no_reader_waiting(own_site: Callable[..., Site]) -> None:
    """Fault caught: one pool of threads for everything, which a queue of writers fills."""
    site = own_site()
    with ThreadPoolExecutor(48) as pool:
        writers = [pool.submit(site.post, "/v1/notes/add", {"name": "held"}) for _ in range(48)]
        assert site.notes.entered.wait(30)
        with httpx.Client(trust_env=False, timeout=30) as client:
            headers = {"Authorization": f"Bearer {site.reader}"}
            assert client.post(site.url + "/v1/notes/count", json={}, headers=headers).json() == {"total": 0}
        site.notes.hold.set()
        assert sorted(each.result(30).json()["total"] for each in writers) == list(range(1, 49))
