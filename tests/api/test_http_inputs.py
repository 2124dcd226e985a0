"""Every wrong input is refused by its own code, repeats nothing that was sent, and writes nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest
from http_support import MARK, Site, check_problem, raw_exchange
from starlette.datastructures import Headers

from passdown.api.requests import read_body
from passdown.kernel.errors import PassdownError

LIMIT = 12 * 1024 * 1024
GOOD = b'{"name": "' + MARK.encode() + b'"}'


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


BAD_BODIES: list[tuple[str, bytes, str, str]] = [
    ("an empty body", b"", "malformed_json", "empty"),
    ("only white space", b" \n\t ", "malformed_json", "empty"),
    ("no JSON", MARK.encode(), "malformed_json", "syntax"),
    ("half a document", b'{"name": "zq7mark"', "malformed_json", "syntax"),
    ("a byte order mark", b"\xef\xbb\xbf" + GOOD, "malformed_json", "byte_order_mark"),
    ("bytes that are not UTF-8", b'{"name": "zq7mark\xff"}', "malformed_json", "utf8"),
    ("UTF-16", '{"name": "zq7mark"}'.encode("utf-16-le"), "malformed_json", "syntax"),
    ("a repeated key", b'{"name": "zq7mark", "name": "b"}', "malformed_json", "duplicate_key"),
    ("a repeated key under an escape", b'{"name": "zq7mark", "n\\u0061me": "b"}', "malformed_json", "duplicate_key"),
    ("half a character", b'{"name": "zq7mark\\ud800"}', "malformed_json", "surrogate"),
    ("NaN", b'{"name": "zq7mark", "weight": NaN}', "malformed_json", "not_finite"),
    ("Infinity", b'{"name": "zq7mark", "weight": -Infinity}', "malformed_json", "not_finite"),
    ("two documents", GOOD + GOOD, "malformed_json", "trailing_data"),
    ("too deep by one", b'{"name": ' + nested(64) + b"}", "malformed_json", "depth"),
    ("very deep", b"[" * 1_000_000, "malformed_json", "depth"),
    ("an endless number", b'{"name": "zq7mark", "weight": ' + b"1" * 5_000 + b"}", "malformed_json", "integer_length"),
]


@pytest.mark.parametrize(("body", "code", "rule"), [case[1:] for case in BAD_BODIES], ids=[c[0] for c in BAD_BODIES])
def test_a_body_that_is_not_one_json_document_is_refused(site: Site, body: bytes, code: str, rule: str) -> None:
    """Fault caught: a lenient parser, or a refusal that is a bare 400 or 500."""
    before = site.store.writes()
    check_problem(site.post("/v1/notes/add", body), code, rule=rule)
    assert site.store.writes() == before


BAD_VALUES: list[tuple[str, object, str, str]] = [
    ("a list", [MARK], "", "model_type"),
    ("no members", {}, "name", "missing"),
    ("an unknown member", {"name": MARK, "colour": MARK}, "colour", "extra_forbidden"),
    ("an unknown member with a telling name", {"name": MARK, f"{MARK} secret": 1}, "?", "extra_forbidden"),
    ("a number for text", {"name": 5}, "name", "string_type"),
    ("null for text", {"name": None}, "name", "string_type"),
    ("text for a number", {"name": MARK, "weight": "5"}, "weight", "int_type"),
    ("a boolean for a number", {"name": MARK, "weight": True}, "weight", "int_type"),
    ("a number for a boolean", {"name": MARK, "pinned": 1}, "pinned", "bool_type"),
    ("a number below zero", {"name": MARK, "weight": -1}, "weight", "greater_than_equal"),
    ("a number beyond the safe range", {"name": MARK, "weight": 2**53}, "weight", "less_than_equal"),
    ("an empty name", {"name": ""}, "name", "empty"),
    ("a name one too long", {"name": MARK + "n" * (257 - len(MARK))}, "name", "too_long"),
    ("a body one too long", {"name": MARK, "body": "語" * 101}, "body", "too_long"),
]


@pytest.mark.parametrize(("value", "member", "rule"), [case[1:] for case in BAD_VALUES], ids=[c[0] for c in BAD_VALUES])
def test_a_member_that_breaks_its_rule_is_named(site: Site, value: object, member: str, rule: str) -> None:
    """Fault caught: coercion, an ignored member, or the caller's text in the refusal."""
    before = site.store.writes()
    problem = check_problem(site.post("/v1/notes/add", value), "invalid_request", error_count=1)
    assert problem["errors"] == [{"field": member, "rule": rule}]
    assert site.store.writes() == before


@pytest.mark.parametrize("number", [b"1.0", b"1e3", b"0.5"])
def test_a_number_written_as_a_fraction_is_no_integer(site: Site, number: bytes) -> None:
    """Fault caught: 1.0 taken as 1, so that two texts have one meaning and two digests."""
    answer = site.post("/v1/notes/add", b'{"name": "zq7mark", "weight": ' + number + b"}")
    assert [error["field"] for error in check_problem(answer, "invalid_request")["errors"]] == ["weight"]


def test_an_integer_beyond_64_bits_is_refused_by_name(site: Site) -> None:
    """Fault caught: an overflow in the encoder that ends as a fault of ours."""
    check_problem(site.post("/v1/notes/add", b'{"name": "zq7mark", "weight": ' + b"9" * 40 + b"}"), "invalid_request")


def test_values_at_their_limits_are_taken(site: Site) -> None:
    """Fault caught: a limit that is one too tight."""
    value = {"name": "n" * 256, "body": "語" * 100, "weight": 2**53 - 1}
    answer = site.post("/v1/notes/add", value)
    assert answer.status_code == 200
    assert answer.json()["name"] == "n" * 256


def padded(size: int) -> bytes:
    return GOOD + b" " * (size - len(GOOD))


def test_a_body_of_exactly_the_limit_is_taken(site: Site) -> None:
    """Fault caught: an off-by-one in the announced length or in the reader."""
    assert site.post("/v1/notes/add", padded(LIMIT)).status_code == 200


def test_a_body_one_byte_over_the_limit_is_refused_with_both_numbers(site: Site) -> None:
    """Fault caught: no limit, or one that lets the last byte pass."""
    before = site.store.writes()
    answer = site.post("/v1/notes/add", padded(LIMIT + 1))
    check_problem(answer, "body_too_large", limit=12_582_912, actual=12_582_913)
    assert site.store.writes() == before


def in_chunks(size: int, piece: int = 1 << 20) -> Iterator[bytes]:
    body = padded(size)
    for start in range(0, size, piece):
        yield body[start : start + piece]


def test_a_streamed_body_of_exactly_the_limit_is_taken(site: Site) -> None:
    """Fault caught: a streamed body measured another way than an announced one."""
    assert site.post("/v1/notes/add", in_chunks(LIMIT)).status_code == 200


def test_a_streamed_body_over_the_limit_is_cut_off(site: Site) -> None:
    """Fault caught: a limit that only looks at Content-Length."""
    before = site.store.writes()
    answer = site.post("/v1/notes/add", in_chunks(LIMIT + 1))
    check_problem(answer, "body_too_large", limit=12_582_912, actual=12_582_913)
    assert site.store.writes() == before


def test_a_streamed_body_far_over_the_limit_is_not_read_to_its_end(own_site: Callable[..., Site]) -> None:
    """Fault caught: a body that is counted, or kept, to the end however long it is."""
    site = own_site(max_body=1_000)
    before = site.store.writes()
    chunk = b"3e8\r\n" + b" " * 1_000 + b"\r\n"
    answer = raw_exchange(
        site.port,
        b"POST /v1/notes/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + site.agent.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3,
    )
    problem = check_problem(answer, "body_too_large", limit=1_000)
    assert "actual" not in problem
    assert site.store.writes() == before


def test_an_endless_body_is_given_up_after_twice_the_limit() -> None:
    """Fault caught: a server that swallows a body for as long as it comes."""
    given = 0

    async def receive() -> dict[str, object]:
        nonlocal given
        given += 1
        return {"type": "http.request", "body": b" " * 500, "more_body": True}

    with pytest.raises(PassdownError) as refused:
        asyncio.run(read_body(Headers(), receive, max_bytes=1_000))
    assert refused.value.code == "body_too_large"
    assert refused.value.members == {"limit": 1_000}
    assert given == 5


def test_a_client_that_waits_for_permission_to_send_too_much_is_refused_before_it_sends(site: Site) -> None:
    """Fault caught: "100 Continue" for a body that will be refused, or a wait for a body that never comes."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
        connection.sendall(
            b"POST /v1/notes/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer " + site.agent.encode() + b"\r\nExpect: 100-continue\r\n"
            b"Content-Length: 12582913\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("headers", "rule"),
    [
        ({"Content_Type": ""}, "content_type"),
        ({"Content_Type": f"text/plain; {MARK}"}, "content_type"),
        ({"Content_Type": "application/x-www-form-urlencoded"}, "content_type"),
        ({"Content_Type": "application/json-seq"}, "content_type"),
        ({"Content_Type": "application/json; charset=latin-1"}, "charset"),
        ({"Content_Encoding": "gzip"}, "content_encoding"),
    ],
)
def test_a_body_that_is_not_plain_json_is_refused(site: Site, headers: dict[str, str], rule: str) -> None:
    """Fault caught: a form of another site that is taken for a request."""
    before = site.store.writes()
    check_problem(site.post("/v1/notes/add", GOOD, **headers), "unsupported_media_type", rule=rule)
    assert site.store.writes() == before


@pytest.mark.parametrize(
    "media_type", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_json_may_say_that_it_is_utf_8(site: Site, media_type: str) -> None:
    """Fault caught: a media type compared as bytes."""
    assert site.post("/v1/notes/add", GOOD, Content_Type=media_type).status_code == 200
