"""Compressed answers: for whom, which, and that they hold the same bytes."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import orjson
import pytest
from http_support import Site, check_problem

from passdown.api.encoding import SMALLEST, accepts_gzip, encode

DOCUMENT = "/openapi.json"


def raw(site: Site, accept: str) -> tuple[dict[str, str], bytes]:
    """The API document as it travels."""
    headers = {"Authorization": f"Bearer {site.reader}", "Accept-Encoding": accept}
    with site.client.stream("GET", site.url + DOCUMENT, headers=headers) as answer:
        body = b"".join(answer.iter_raw())
        return dict(answer.headers), body


@pytest.mark.parametrize("accept", ["gzip", "deflate, gzip;q=0.5", "br;q=1.0, *;q=0.1", "GZIP"])
def test_a_large_answer_is_compressed_for_those_who_take_it(site: Site, accept: str) -> None:
    """Fault caught: other bytes, a length of the plain form, or no word about what the form depends on."""
    plain_headers, plain = raw(site, "identity")
    headers, body = raw(site, accept)
    assert "content-encoding" not in plain_headers
    assert headers["content-encoding"] == "gzip"
    assert headers["vary"] == plain_headers["vary"] == "Accept-Encoding"
    assert int(headers["content-length"]) == len(body) < len(plain) // 4
    assert gzip.decompress(body) == plain


@pytest.mark.parametrize(
    "accept", ["", "identity", "gzip;q=0", "gzip;q=0.000, *", "br", "*;q=0", "gzip;q=2", "gzip;x=1"]
)
def test_who_does_not_take_it_gets_plain_bytes(site: Site, accept: str) -> None:
    """Fault caught: gzip read as a word anywhere in the header, also where its weight is zero."""
    headers, body = raw(site, accept)
    assert "content-encoding" not in headers
    assert orjson.loads(body)["openapi"] == "3.1.0"


def test_of_several_headers_all_members_count() -> None:
    """Fault caught: only the first header being read."""
    assert accepts_gzip(["br", "gzip"]) is True
    assert accepts_gzip([]) is False


@pytest.mark.parametrize(("size", "compressed"), [(SMALLEST, False), (SMALLEST + 1, True)])
def test_compression_begins_beyond_its_limit(size: int, compressed: bool) -> None:
    """Fault caught: small answers that grow, or a limit that is off by one."""
    from starlette.responses import Response

    answer = encode(Response(b"a" * size), accepted=True)
    assert ("content-encoding" in answer.headers) is compressed


def test_a_report_is_compressed_with_its_digests_in_front(own_site: Callable[..., Site]) -> None:
    """Fault caught: headers of a document that are lost with compression, or a body that is not the document."""
    site = own_site(whole=True)
    created = site.post("/v1/handoff-reports/projects/create", {"key": "p", "title": "P"}).json()
    ask = {"project_id": created["project"]["project_id"], "format": "json"}
    plain = site.post("/v1/handoff-reports/get", ask, Accept_Encoding="identity")
    packed = site.post("/v1/handoff-reports/get", ask, Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content
    for name in ("passdown-report-digest", "passdown-selection-digest", "passdown-file-name"):
        assert packed.headers[name] == plain.headers[name]


def test_a_refusal_stays_plain(site: Site) -> None:
    """Fault caught: problem details that a simple client cannot read."""
    answer = site.client.get(site.url + DOCUMENT, headers={"Accept-Encoding": "gzip"})
    check_problem(answer, "unauthenticated")
    assert "content-encoding" not in answer.headers
