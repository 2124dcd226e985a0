"""One exchange at a time: what is sent again and what is not, what is believed, and how connections are kept."""

from __future__ import annotations

import asyncio
import gzip
import http.client as http_client
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from client_support import Scripted, Server, http, problem, read_request

import passdown
from passdown.app.repeating import KEYED
from passdown.client.client import Client
from passdown.client.messages import MAX_ANSWER, place_of, request_of
from passdown.client.remote import Http, connect
from passdown.client.remote_async import AsyncHttp
from passdown.client.retries import LONGEST_PAUSE, Retries, retry_after
from passdown.handoff.operations import GET_HANDOFF, GetHandoffAsk
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import dump
from passdown.report.operations import (
    LIST_PROJECTS,
    REGISTER_WORKSTREAM,
    ListProjectsAnswer,
    ListProjectsAsk,
    RegisterWorkstreamAsk,
)

TOKEN = "pdt_" + "A" * 43
EMPTY = ListProjectsAnswer(projects=(), next_cursor=None)
GOOD = http(200, EMPTY.model_dump_json().encode())
ASK = ListProjectsAsk()
REGISTER = RegisterWorkstreamAsk(project_id="prj_1", title="Queue")

Called = tuple[Any, list[float]]


def call_sync(url: str, op: Any = LIST_PROJECTS, ask: Any = ASK) -> Called:
    """The answer or the refusal, and the pauses between attempts."""
    pauses: list[float] = []
    with Http(url, TOKEN, timeout=30, retries=Retries(dice=lambda: 1.0), pause=pauses.append) as caller:
        try:
            return caller(op, ask), pauses
        except PassdownError as error:
            return error, pauses


def call_async(url: str, op: Any = LIST_PROJECTS, ask: Any = ASK) -> Called:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def scene() -> Any:
        async with AsyncHttp(url, TOKEN, timeout=30, retries=Retries(dice=lambda: 1.0), pause=pause) as caller:
            try:
                return await caller(op, ask)
            except PassdownError as error:
                return error

    return asyncio.run(scene()), pauses


BOTH = pytest.mark.parametrize("call", [call_sync, call_async])
Call = Callable[..., Called]


def refusal(called: Called) -> tuple[str, Any]:
    assert isinstance(called[0], PassdownError)
    return called[0].code, called[0].members.get("rule")


# --- sending again ----------------------------------------------------------------------------------------------------


@BOTH
def test_a_read_without_an_answer_is_sent_again(call: Call, script: Callable[..., Scripted]) -> None:
    """Fault caught: a connection that breaks once and a program that ends for it."""
    server = script(None, None, GOOD)
    assert call(server.url) == (EMPTY, [0.1, 0.2])
    assert len(server.requests) == 3


@BOTH
def test_a_busy_server_is_asked_again_after_the_pause_it_names(call: Call, script: Callable[..., Scripted]) -> None:
    """Fault caught: a client that hammers a server which asked for a second."""
    server = script(problem("store_busy"), problem("server_busy", rule="reads"), GOOD)
    assert call(server.url) == (EMPTY, [1.1, 1.2])


@BOTH
def test_a_write_is_sent_again_with_its_key_and_its_bytes(call: Call, script: Callable[..., Scripted]) -> None:
    """Fault caught: a repetition that the server takes for a new request."""
    server = script(None, problem("store_busy"), problem("project_not_found", field="project_id"))
    assert refusal(call(server.url, REGISTER_WORKSTREAM, REGISTER)) == ("project_not_found", None)
    keys = {server.headers(number)["idempotency-key"] for number in range(3)}
    assert len(keys) == 1
    assert len(keys.pop()) == 32
    assert len({server.body(number) for number in range(3)}) == 1


def test_each_call_has_a_key_of_its_own_and_only_where_one_is_taken(script: Callable[..., Scripted]) -> None:
    """Fault caught: a key that is made once for a client, so that the second call is answered with the first."""
    refused = problem("project_not_found")
    server = script([refused, refused, GOOD])
    with Http(server.url, TOKEN) as caller:
        for _ in range(2):
            with pytest.raises(PassdownError):
                caller(REGISTER_WORKSTREAM, REGISTER)
        caller(LIST_PROJECTS, ASK)
    assert server.headers(0)["idempotency-key"] != server.headers(1)["idempotency-key"]
    assert "idempotency-key" not in server.headers(2)
    assert REGISTER_WORKSTREAM.name in KEYED


@BOTH
@pytest.mark.parametrize("code", ["project_not_found", "forbidden", "store_not_writable", "internal_error"])
def test_a_refusal_that_says_what_is_wrong_is_final(call: Call, script: Callable[..., Scripted], code: str) -> None:
    """Fault caught: four times the same refusal, or a full disk that is tried again and again."""
    server = script(problem(code, rule="r", limit=3))
    error, pauses = call(server.url)
    assert (error.code, error.members, pauses) == (code, {"rule": "r", "limit": 3}, [])
    assert error.__notes__ == ["correlation_id abc"]


@BOTH
def test_attempts_are_bounded_and_the_last_refusal_is_told(call: Call, script: Callable[..., Scripted]) -> None:
    """Fault caught: a client that tries for ever."""
    server = script(*[problem("store_busy")] * 4)
    error, pauses = call(server.url)
    assert (error.code, pauses) == ("store_busy", [1.1, 1.2, 1.4])


def test_pauses_are_jittered_and_bounded() -> None:
    """Fault caught: many clients that come back in the same instant, or one that sleeps for an hour."""
    busy = PassdownError("store_busy")

    def pause(asked: float | None, **options: Any) -> float | None:
        return Retries(**options).pause_after(1, "get_handoff", "read", busy, asked)

    assert pause(None, dice=lambda: 0.0) == 0.0
    assert pause(None, dice=lambda: 0.5) == 0.05
    assert pause(3600.0) == LONGEST_PAUSE
    assert pause(None, attempts=1) is None
    assert len({pause(None) for _ in range(50)}) > 40
    unknown = Retries().pause_after(1, "a_new_write", "append", busy, None)
    assert unknown is None
    assert [retry_after(value) for value in ("2", None, "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "9" * 5)] == [
        2.0,
        None,
        None,
        None,
        None,
    ]


def test_a_change_whose_answer_was_lost_is_made_once(serve: Callable[..., Server]) -> None:
    """Fault caught: a workstream that is registered twice because the network broke behind the commit."""
    server = serve()
    with Client(server.url, server.token) as direct:
        project_id = direct.create_handoff_report_project(key="p", title="P").project.project_id
        with socket.create_server(("127.0.0.1", 0)) as front:

            def lose_the_first_answer() -> None:
                for turn in range(2):
                    client, _ = front.accept()
                    with client, socket.create_connection(("127.0.0.1", server.port)) as behind:
                        request = read_request(client)
                        assert request is not None
                        behind.sendall(request)
                        answer = read_request(behind)
                        assert answer is not None
                        if turn == 1:
                            client.sendall(answer)

            front.settimeout(20)
            thread = threading.Thread(target=lose_the_first_answer, daemon=True)
            thread.start()
            # The name in `Host` is that of the place in front; the server knows loopback names whatever the port.
            with Client(f"http://127.0.0.1:{front.getsockname()[1]}", server.token) as client:
                made = client.register_handoff_report_workstream(project_id=project_id, title="Queue").workstream
            thread.join(30)
        found = direct.list_handoff_report_workstreams(project_id=project_id).workstreams
    assert [item.scope_id for item in found] == [made.scope_id]


# --- what is believed -------------------------------------------------------------------------------------------------


def bomb() -> bytes:
    return http(200, gzip.compress(bytes(MAX_ANSWER + 1)), Content_Encoding="gzip")


@BOTH
@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (http(200, b"<html>hello</html>", "text/html"), "answer"),
        (http(200, b'{"projects":[],"next_cursor":null,"more":1}'), "answer"),
        (http(200, b'{"projects":[]}'), "answer"),
        (http(302, b"", Location="http://elsewhere.example/"), "status"),
        (http(500, b"oops", "text/plain"), "status"),
        (http(409, b'{"code":"a_code_of_tomorrow"}', "application/problem+json"), "status"),
        (http(409, b'["code"]', "application/problem+json"), "status"),
        (http(200, b"not gzip", Content_Encoding="gzip"), "encoding"),
        (bomb(), "too_large"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "http"),
    ],
)
def test_what_is_no_answer_of_ours_is_not_understood(
    call: Call, script: Callable[..., Scripted], answer: bytes, rule: str
) -> None:
    """Fault caught: a traceback of a library, a redirect that carries the token away, memory without an end."""
    server = script(answer)
    assert refusal(call(server.url)) == ("server_not_understood", rule)


@BOTH
def test_a_proxy_that_says_503_is_asked_again(call: Call, script: Callable[..., Scripted]) -> None:
    """Fault caught: a restart behind a proxy that ends every program."""
    server = script(http(503, b"<html>no upstream</html>", "text/html"), GOOD)
    assert call(server.url) == (EMPTY, [0.1])


@BOTH
def test_an_answer_that_breaks_off_is_no_answer(call: Call, script: Callable[..., Scripted]) -> None:
    """Fault caught: half a list that is taken for all of it."""
    server = script(GOOD[:-5], GOOD)
    assert call(server.url) == (EMPTY, [0.1])


@BOTH
def test_a_server_that_is_not_there_is_not_reachable(call: Call) -> None:
    """Fault caught: an error of the socket library."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    called = call(f"http://127.0.0.1:{port}")
    assert refusal(called) == ("server_not_reachable", "refused")
    assert len(called[1]) == 3


def test_a_name_that_nothing_has_is_not_reachable() -> None:
    """Fault caught: the refusal of the resolver instead of ours."""
    assert refusal(call_sync("http://no-such-host.invalid"))[0] == "server_not_reachable"


def test_a_server_that_says_nothing_runs_into_the_time_limit() -> None:
    """Fault caught: a program that hangs for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Http(url, TOKEN, timeout=0.02, retries=Retries(attempts=1)) as caller,
            pytest.raises(PassdownError) as late,
        ):
            caller(LIST_PROJECTS, ASK)
    assert (late.value.code, late.value.members["rule"]) == ("server_not_reachable", "timeout")


# --- connections ------------------------------------------------------------------------------------------------------


def test_one_connection_serves_many_calls(script: Callable[..., Scripted]) -> None:
    """Fault caught: a handshake for every call."""
    server = script([GOOD, GOOD, GOOD])
    with Http(server.url, TOKEN) as caller:
        assert [caller(LIST_PROJECTS, ASK) for _ in range(3)] == [EMPTY] * 3


def test_an_idle_connection_that_the_server_closed_is_not_used(script: Callable[..., Scripted]) -> None:
    """Fault caught: a first call after a pause that fails, or costs an attempt."""
    server = script([GOOD], GOOD)
    pauses: list[float] = []
    with Http(server.url, TOKEN, pause=pauses.append) as caller:
        caller(LIST_PROJECTS, ASK)
        idle = caller._idle[0]
        assert idle.sock is not None
        idle.sock.settimeout(30)
        assert idle.sock.recv(1, socket.MSG_PEEK) == b""  # the end has arrived
        assert caller(LIST_PROJECTS, ASK) == EMPTY
    assert pauses == []


def test_an_answer_before_the_whole_request_was_read_is_still_read(serve: Callable[..., Server]) -> None:
    """Fault caught: "broken pipe" where the server said why it refused."""
    server = serve()
    with Client(server.url, TOKEN) as client, pytest.raises(PassdownError) as refused:
        client.capture_source(scope_id="s", source_type="content", content="x" * 8_000_000)
    assert (refused.value.code, refused.value.members["rule"]) == ("unauthenticated", "unknown")


def test_the_answer_is_read_also_when_the_sending_broke(
    script: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault caught: the reason of a server that closes its ear early, lost behind an error of the pipe."""
    real = http_client.HTTPConnection.request

    def breaking(self: http_client.HTTPConnection, *given: Any, **named: Any) -> None:
        real(self, *given, **named)
        raise BrokenPipeError

    monkeypatch.setattr(http_client.HTTPConnection, "request", breaking)
    server = script(problem("body_too_large", limit=3))
    error, pauses = call_sync(server.url)
    assert (error.code, error.members, pauses) == ("body_too_large", {"limit": 3}, [])


def test_a_closed_client_calls_nobody() -> None:
    """Fault caught: a call that opens connections again behind its end."""
    client = Client("http://127.0.0.1:1", TOKEN, retries=Retries(attempts=1))
    client.close()
    client.close()
    with pytest.raises(PassdownError) as refused:
        client.list_handoff_report_projects()
    assert (refused.value.code, refused.value.members["rule"]) == ("server_not_reachable", "closed")


def test_many_threads_share_a_client(serve: Callable[..., Server]) -> None:
    """Fault caught: two answers that are mixed up on one connection."""
    from concurrent.futures import ThreadPoolExecutor

    server = serve()
    with Client(server.url, server.token) as client, ThreadPoolExecutor(12) as pool:
        keys = [f"k{number}" for number in range(36)]
        made = pool.map(lambda key: client.create_handoff_report_project(key=key, title=key).project.title, keys)
        assert list(made) == keys


def test_compression_is_asked_for_only_beyond_this_machine(serve: Callable[..., Server]) -> None:
    """Fault caught: time spent on packing for loopback, or an answer that stays packed."""
    assert request_of(LIST_PROJECTS, ASK, TOKEN, key="", compressed=False).headers["Accept-Encoding"] == "identity"
    server = serve(host="127.0.0.2")
    assert not place_of(server.url).is_loopback
    with Client(server.url, server.token) as client:
        project_id = client.create_handoff_report_project(key="p", title="P").project.project_id
        report = client.get_handoff_report(project_id=project_id, format="json")
    value = orjson.loads(report.body)
    assert value["report_digest"] == report.report_digest
    assert value.pop("report_digest") == passdown.digest(value)


# --- what a caller may give -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://127.0.0.1:8765", ("http", "127.0.0.1", 8765, "")),
        ("https://passdown.example/", ("https", "passdown.example", 443, "")),
        ("http://[::1]/a/b/", ("http", "::1", 80, "/a/b")),
    ],
)
def test_a_place_is_read_from_its_url(url: str, place: tuple[str, str, int, str]) -> None:
    """Fault caught: a prefix of a proxy that is lost, or a port that is guessed wrong."""
    found = place_of(url)
    assert (found.scheme, found.host, found.port, found.prefix) == place
    assert place_of(found.url) == found


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8765", "ftp://host", "http://", "http://a:b@host", "http://h?q", "http://h#f", "http://h:99999",
     "http://h:x", "http://h\r\nX: y", "http://h ost", "http://h\u00f6st", "file:///etc/passwd"],
)  # fmt: skip
def test_a_url_that_names_no_server_is_refused(url: str) -> None:
    """Fault caught: a header that is smuggled in, a password that is kept, or a file that is opened."""
    with pytest.raises(PassdownError) as refused:
        connect(url, TOKEN)
    assert (refused.value.code, refused.value.members) == ("invalid_request", {"field": "url", "rule": "url"})


@pytest.mark.parametrize(
    ("token", "rule"), [("", "missing"), ("a\r\nX: y", "malformed"), ("a b", "malformed"), ("\u00e9", "malformed")]
)
def test_a_token_that_no_header_can_carry_is_refused(token: str, rule: str) -> None:
    """Fault caught: a token that adds a header."""
    with pytest.raises(PassdownError) as refused:
        connect("http://127.0.0.1:1", token)
    assert (refused.value.code, refused.value.members["rule"]) == ("unauthenticated", rule)


def test_a_request_is_given_as_a_model_or_as_members(tmp_path: Path) -> None:
    """Fault caught: members that are coerced, mixed with a model, or taken for another operation."""
    with passdown.open(tmp_path, create=True) as client:
        by_model = client.create_handoff_report_project(key="a", title="A").project
        ask = GetHandoffAsk(scope_id="s")
        for given in ({"scope_id": "s"}, {"scope_id": "s", "handoff_ref": None}):
            with pytest.raises(PassdownError) as refused:
                client.get_handoff(**given)
            assert refused.value.code == "handoff_not_found"
        cases: list[tuple[Callable[[], Any], str]] = [
            (lambda: client.get_handoff(ask, scope_id="s"), "model_or_members"),
            (lambda: client.get_handoff(ASK), "model_type"),  # type: ignore[arg-type]
        ]
        for wrong, rule in cases:
            with pytest.raises(PassdownError) as refused:
                wrong()
            assert refused.value.members == {"field": "ask", "rule": rule}
        for members in ({}, {"scope_id": 3}, {"scope_id": "s", "more": 1}, {"scope_id": object()}):
            with pytest.raises(PassdownError) as refused:
                client.get_handoff(**members)
            assert refused.value.code == "invalid_request"
        again = client.get_handoff_report_project(project_id=by_model.project_id).project
        assert dump(again) == dump(by_model)
    assert GET_HANDOFF.name == "get_handoff"
