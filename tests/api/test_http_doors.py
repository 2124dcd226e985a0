"""Who may ask, where, how: tokens, roles, hosts, addresses, methods, and the connection itself."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable
from contextlib import closing

import httpx
import pytest
from http_support import MARK, NOW_US, Site, check_problem, raw_exchange

from passdown.storage import open_store

GOOD = b'{"name": "' + MARK.encode() + b'"}'
UNKNOWN_TOKEN = "pdt_" + "A" * 43


def test_a_request_without_a_token_is_unauthenticated(site: Site) -> None:
    """Fault caught: an operation that answers anybody."""
    before = site.store.writes()
    for path in ("/v1/notes/add", "/v1/notes/count", "/v1/notes/erase", "/v1/notes/print"):
        answer = site.client.post(site.url + path, content=GOOD, headers={"Content-Type": "application/json"})
        check_problem(answer, "unauthenticated", rule="missing")
        assert answer.headers["www-authenticate"] == "Bearer"
    check_problem(site.client.get(site.url + "/openapi.json"), "unauthenticated", rule="missing")
    assert site.store.writes() == before


@pytest.mark.parametrize(
    ("header", "rule"),
    [
        (f"Bearer {UNKNOWN_TOKEN}", "unknown"),
        (f"Bearer {MARK}", "malformed"),
        ("Bearer", "malformed"),
        (f"Bearer {UNKNOWN_TOKEN}{MARK}", "malformed"),
        (f"Bearer {UNKNOWN_TOKEN} {UNKNOWN_TOKEN}", "malformed"),
        (f"Basic {MARK}", "scheme"),
        (UNKNOWN_TOKEN, "scheme"),
        ("", "scheme"),
    ],
)
def test_a_token_that_is_not_one_of_ours_is_refused(site: Site, header: str, rule: str) -> None:
    """Fault caught: a header that is split, cut or guessed until it fits."""
    before = site.store.writes()
    answer = site.post("/v1/notes/add", GOOD, Authorization=header)
    check_problem(answer, "unauthenticated", rule=rule)
    assert UNKNOWN_TOKEN not in answer.text
    assert site.store.writes() == before


def test_two_authorization_headers_are_refused(site: Site) -> None:
    """Fault caught: a proxy and this server choosing different ones of two tokens."""
    headers = [
        ("Content-Type", "application/json"),
        ("Authorization", f"Bearer {site.agent}"),
        ("Authorization", f"Bearer {site.owner}"),
    ]
    check_problem(
        site.client.post(site.url + "/v1/notes/add", content=GOOD, headers=headers), "unauthenticated", rule="repeated"
    )


def test_the_scheme_is_read_in_any_case(site: Site) -> None:
    """Fault caught: an auth scheme compared as bytes."""
    assert site.post("/v1/notes/add", GOOD, Authorization=f"bEARER {site.agent}").status_code == 200


def test_an_expired_token_stops_at_its_instant(own_site: Callable[..., Site]) -> None:
    """Fault caught: an expiry that is off by one, or read only when the token is made."""
    site = own_site()
    token, _ = site.tokens.create("short", "ana", "agent", expires_us=NOW_US + 2)
    site.clock.move(1)
    assert site.post("/v1/notes/add", GOOD, token=token).status_code == 200
    site.clock.move(1)
    before = site.store.writes()
    check_problem(site.post("/v1/notes/add", GOOD, token=token), "unauthenticated", rule="expired")
    assert site.store.writes() == before


def test_a_revoked_token_stops_with_the_next_request(site: Site) -> None:
    """Fault caught: an authentication that is cached, on a connection that stays open too."""
    token, record = site.tokens.create("lost", "ana", "agent")
    assert site.post("/v1/notes/add", GOOD, token=token).status_code == 200
    site.tokens.revoke(record.token_id)
    before = site.store.writes()
    check_problem(site.post("/v1/notes/add", GOOD, token=token), "unauthenticated", rule="revoked")
    assert site.store.writes() == before


@pytest.mark.parametrize(
    ("role", "path", "allowed"),
    [
        ("reader", "/v1/notes/count", True),
        ("reader", "/v1/notes/add", False),
        ("reader", "/v1/notes/erase", False),
        ("agent", "/v1/notes/count", True),
        ("agent", "/v1/notes/add", True),
        ("agent", "/v1/notes/erase", False),
        ("owner", "/v1/notes/count", True),
        ("owner", "/v1/notes/add", True),
        ("owner", "/v1/notes/erase", True),
    ],
)
def test_a_role_allows_what_its_effect_says_and_no_more(site: Site, role: str, path: str, allowed: bool) -> None:
    """Fault caught: a reader that writes, an agent that destroys, an owner that is kept out."""
    before = site.store.writes()
    body = {} if path.endswith("count") else {"name": MARK}
    answer = site.post(path, body, token=getattr(site, role))
    if allowed:
        assert answer.status_code == 200
    else:
        check_problem(answer, "forbidden", rule="role")
        assert site.store.writes() == before


def test_a_refusal_of_the_token_comes_before_the_body_is_read(site: Site) -> None:
    """Fault caught: a stranger who can make the server hold 12 MiB, or learns from its parser."""
    head = b"POST /v1/notes/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 12000000\r\n"
    check_problem(raw_exchange(site.port, head + b"\r\n"), "unauthenticated", rule="missing")
    head += b"Authorization: Bearer " + UNKNOWN_TOKEN.encode() + b"\r\n\r\n"
    check_problem(raw_exchange(site.port, head), "unauthenticated", rule="unknown")


def test_the_handler_learns_who_the_token_says_and_nothing_from_the_body(site: Site) -> None:
    """Fault caught: a caller that is only asserted, or a host that is lost on the way."""
    answer = site.post("/v1/notes/add", {"name": "who"}).json()
    assert (answer["written_by"], answer["identity"], answer["host"]) == ("codex-2", "authenticated", "buildbox")
    answer = site.post("/v1/notes/add", {"name": "who"}, token=site.owner).json()
    assert (answer["written_by"], answer["host"]) == ("olga", None)


@pytest.mark.parametrize(
    "path", ["/", f"/{MARK}", "/v1/notes", "/v1/notes/add/", "/v1/notes/Add", "/docs", "/v1//notes/add"]
)
def test_an_address_that_is_not_there_is_not_found(site: Site, path: str) -> None:
    """Fault caught: a redirect, a page of the framework, or an error of another shape."""
    check_problem(site.post(path, GOOD), "not_found")
    check_problem(site.client.get(site.url + path), "not_found")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "ZQ7MARK"])
def test_another_method_is_told_which_one_is_answered(site: Site, method: str) -> None:
    """Fault caught: a 405 without Allow, with a method that is not served, or without a problem."""
    answer = site.client.request(method, site.url + "/v1/notes/add", content=GOOD)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    if method == "HEAD":
        assert answer.content == b""
    else:
        check_problem(answer, "method_not_allowed")


def test_a_probe_tells_both_of_its_methods(site: Site) -> None:
    """Fault caught: an Allow header with one method where two are answered."""
    answer = site.client.post(site.url + "/healthz")
    check_problem(answer, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "host",
    [
        "zq7mark.example",
        "localhost.zq7mark.example",
        "127.0.0.1.zq7mark.example:8765",
        "zq7mark@127.0.0.1",
        "127.0.0.1:8765:1",
        "[::1",
        "192.0.2.7",
        "localhost.",
    ],
)
def test_a_host_that_is_not_ours_is_misdirected(site: Site, host: str) -> None:
    """Fault caught: DNS rebinding, where a page of another site has its own name point at this server."""
    before = site.store.writes()
    check_problem(site.post("/v1/notes/add", GOOD, Host=host), "host_not_allowed")
    check_problem(site.client.get(site.url + "/healthz", headers={"Host": host}), "host_not_allowed")
    assert site.store.writes() == before


def test_a_request_without_a_host_is_misdirected(site: Site) -> None:
    """Fault caught: a check that only looks at a header that is there."""
    check_problem(raw_exchange(site.port, b"GET /healthz HTTP/1.0\r\n\r\n"), "host_not_allowed")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8765", "passdown.example:443", "[2001:db8::1]"]
)
def test_loopback_and_the_named_hosts_are_ours(own_site: Callable[..., Site], host: str) -> None:
    """Fault caught: a proxy's public name that cannot be allowed, or a name compared with its port."""
    site = own_site(allowed_hosts=("Passdown.example", "2001:db8::1"))
    assert site.client.get(site.url + "/healthz", headers={"Host": host}).status_code == 200


def test_the_probes_need_no_token_and_say_little(site: Site) -> None:
    """Fault caught: a probe that needs a secret or gives details away."""
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        answer = site.client.get(site.url + path)
        assert (answer.status_code, answer.json()) == (200, {"status": status})
        assert site.client.head(site.url + path).content == b""


@pytest.mark.parametrize("given", ["a", "A-1._z", "x" * 128])
def test_a_plain_request_id_comes_back(site: Site, given: str) -> None:
    """Fault caught: a correlation id that is replaced although it is fine."""
    answer = site.client.get(site.url + "/nowhere", headers={"X-Request-ID": given})
    assert check_problem(answer, "not_found")["correlation_id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, f"{MARK} {MARK}", f"{MARK}<", f"{MARK};"])
def test_another_request_id_is_replaced(site: Site, given: str) -> None:
    """Fault caught: text of the caller that is reflected, or grows without limit in logs."""
    answer = site.client.get(site.url + "/nowhere", headers={"X-Request-ID": given})
    assert len(check_problem(answer, "not_found")["correlation_id"]) == 32


def test_every_request_without_an_id_gets_its_own(site: Site) -> None:
    """Fault caught: one id for all."""
    ids = {site.client.get(site.url + "/healthz").headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3


def test_a_success_is_private_and_names_its_request(site: Site) -> None:
    """Fault caught: answers of the store that a cache keeps."""
    answer = site.post("/v1/notes/count", X_Request_ID="abc")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"] == "abc"


def test_nothing_is_answered_across_origins(site: Site) -> None:
    """Fault caught: a CORS header that lets another site read."""
    answer = site.post("/v1/notes/count", Origin="https://zq7mark.example")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = site.client.options(site.url + "/v1/notes/count", headers={"Origin": "https://zq7mark.example"})
    check_problem(preflight, "method_not_allowed")


def test_a_typed_refusal_of_a_handler_keeps_its_members(site: Site) -> None:
    """Fault caught: members that are lost on the way out."""
    answer = site.post("/v1/notes/add", {"name": "conflict"})
    check_problem(answer, "source_conflict", current={"revision": 3})


def test_a_busy_store_says_when_to_come_back(site: Site) -> None:
    """Fault caught: a 503 that gives no hint."""
    answer = site.post("/v1/notes/add", {"name": "busy"})
    check_problem(answer, "store_busy")
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("name", ["fault", "wrong-answer"])
def test_a_fault_of_ours_is_answered_and_logged_without_private_text(
    site: Site, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault caught: a traceback or the caller's text in an answer or a log line, or an answer of the wrong model."""
    with caplog.at_level(logging.DEBUG):
        answer = site.post("/v1/notes/add", {"name": name, "body": MARK}, X_Request_ID="look-here")
    check_problem(answer, "internal_error")
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(lines) == 1
    assert "look-here" in lines[0]
    assert "Error" in lines[0]
    assert MARK not in caplog.text
    assert "private text" not in caplog.text


def test_a_request_is_one_log_line_without_ids(own_site: Callable[..., Site], caplog: pytest.LogCaptureFixture) -> None:
    """Fault caught: noise, names of projects and scopes in the log, or a line that no program can read."""
    site = own_site()
    with caplog.at_level(logging.INFO, logger="passdown"):
        refused = site.post("/v1/notes/add", {"name": MARK, "weight": -1}, X_Request_ID="look-here")
        site.post("/v1/notes/add", {"name": MARK})
        site.client.get(f"{site.url}/{MARK}")
        site.stop()
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "passdown.api"]
    assert [list(line) for line in lines] == [
        ["at", "event", "correlation_id", "operation", "status", "outcome", "duration_us", "bytes"]
    ] * 3
    assert [(line["event"], line["operation"], line["status"], line["outcome"]) for line in lines] == [
        ("request", "add_note", 422, "invalid_request"),
        ("request", "add_note", 200, "ok"),
        ("request", "none", 404, "not_found"),
    ]
    assert (lines[0]["correlation_id"], lines[0]["bytes"]) == ("look-here", len(refused.content))
    assert MARK not in caplog.text


def test_a_body_that_does_not_come_is_a_timeout(own_site: Callable[..., Site]) -> None:
    """Fault caught: a client that holds a connection for ever with half a body."""
    site = own_site(body_seconds=0.05)
    before = site.store.writes()
    answer = raw_exchange(
        site.port,
        b"POST /v1/notes/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + site.agent.encode() + b"\r\nContent-Length: 40\r\n\r\n" + GOOD[:5],
    )
    check_problem(answer, "request_timeout", limit=0.05)
    assert answer.headers["connection"] == "close"
    assert site.store.writes() == before


def test_a_head_that_does_not_come_is_a_timeout(own_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault caught: a client that holds a connection for ever with half a request."""
    monkeypatch.setattr("passdown.api.connection.Connection.head_seconds", 0.05)
    site = own_site()
    check_problem(raw_exchange(site.port, b"POST /zq7mark HTTP/1.1\r\nHost: 127"), "request_timeout", limit=0.05)
    check_problem(raw_exchange(site.port, b""), "request_timeout", limit=0.05)


@pytest.mark.parametrize(
    "sent",
    [
        b"zq7mark\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: zq7mark.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nzq7mark\r\n\r\n",
        b"POST /v1/notes/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: zq7mark\r\n\r\n",
        b"POST /v1/notes/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nzq7mark",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03zq7mark\r\n\r\n",
    ],
)
def test_bytes_that_are_no_http_get_a_problem_too(site: Site, sent: bytes) -> None:
    """Fault caught: the plain text of the server library, or two readings of one request."""
    answer = raw_exchange(site.port, sent)
    check_problem(answer, "malformed_http")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("size", [70_000, 3_000_000])
def test_a_huge_head_is_refused_with_its_limit(site: Site, size: int) -> None:
    """Fault caught: a head that is kept however long, or an answer that is lost in a reset connection."""
    before = site.store.writes()
    sent = b"POST /v1/notes/add HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Big: " + MARK.encode() * (size // len(MARK))
    check_problem(raw_exchange(site.port, sent), "headers_too_large", limit=65_536)
    assert site.store.writes() == before


def test_a_refused_connection_swallows_what_is_still_coming(
    own_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault caught: a connection that is reset under a client that is still sending, and loses the answer."""
    monkeypatch.setattr("passdown.api.connection.Connection.linger_seconds", 60)
    site = own_site()
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
        connection.sendall(b"zq7mark\r\n\r\n")
        received = b""
        while piece := connection.recv(65_536):  # to the end of what the server says
            received += piece
        assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert received.count(b"malformed_http") == 2  # once as type, once as code: one answer
        for _ in range(20):
            connection.sendall(b"zq7mark\r\n\r\n" * 5_000)


def test_a_head_of_60_kilobytes_is_taken(site: Site) -> None:
    """Fault caught: a limit below what proxies and cookies of a browser produce."""
    assert site.client.get(site.url + "/healthz", headers={"X-Big": "n" * 60_000}).status_code == 200


def test_a_broken_chunk_ends_the_request_and_writes_nothing(site: Site) -> None:
    """Fault caught: a half body that is parsed, or a fault while the refusal is sent."""
    before = site.store.writes()
    answer = raw_exchange(
        site.port,
        b"POST /v1/notes/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + site.agent.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\nzq7mark\r\n",
    )
    check_problem(answer, "malformed_http")
    assert site.store.writes() == before


def test_a_client_that_goes_away_in_the_middle_writes_nothing_and_logs_nothing(
    own_site: Callable[..., Site], caplog: pytest.LogCaptureFixture
) -> None:
    """Fault caught: half a body that is handled, or a traceback for every closed laptop."""
    site = own_site()
    before = site.store.writes()
    with caplog.at_level(logging.INFO), socket.create_connection(("127.0.0.1", site.port)) as connection:
        connection.sendall(
            b"POST /v1/notes/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer " + site.agent.encode() + b"\r\nContent-Length: 1000\r\n\r\n" + GOOD
        )
    assert site.client.get(site.url + "/healthz").status_code == 200
    site.stop()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    with closing(open_store(site.folder / "passdown.db", create=False)) as store:
        assert store.writes() == before


def test_an_upgrade_is_answered_as_plain_http(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Fault caught: advice of the server library to install something, in the log of every scanner."""
    answer = site.client.get(site.url + "/healthz", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert answer.status_code == 200
    assert caplog.text == ""


def test_several_requests_use_one_connection(site: Site) -> None:
    """Fault caught: a refusal that leaves the connection out of step, so that the next request reads a rest."""
    with httpx.Client(trust_env=False, limits=httpx.Limits(max_connections=1)) as client:
        for _ in range(3):
            refused = client.post(site.url + "/v1/notes/add", content=b"x" * 100_000)
            check_problem(refused, "unauthenticated")
            assert client.get(site.url + "/healthz").json() == {"status": "ok"}
