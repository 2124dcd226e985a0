"""Answers that are bytes, and the API document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from http_support import OPERATIONS, PRINTED_JSON, PRINTED_MARKDOWN, Notes, Site, check_problem

from passdown.api.app import create_app
from passdown.api.openapi import TRANSPORT_ERRORS
from passdown.kernel.errors import ERRORS


@pytest.mark.parametrize(
    ("form", "media_type", "body"),
    [("markdown", "text/markdown; charset=utf-8", PRINTED_MARKDOWN), ("json", "application/json", PRINTED_JSON)],
)
def test_a_document_is_sent_as_exactly_its_bytes(site: Site, form: str, media_type: str, body: bytes) -> None:
    """Fault caught: bytes that are encoded again, so that their digest no longer fits."""
    answer = site.post("/v1/notes/print", {"format": form}, token=site.reader)
    assert answer.status_code == 200
    assert answer.content == body
    assert answer.headers["content-type"] == media_type
    assert answer.headers["content-length"] == str(len(body))
    assert answer.headers["passdown-selection-digest"] == "sha256:" + "1" * 64
    assert answer.headers["passdown-report-digest"] == "sha256:" + "2" * 64
    assert answer.headers["cache-control"] == "no-store"
    assert "content-disposition" not in answer.headers


def test_a_download_is_an_attachment_in_a_sandbox(site: Site) -> None:
    """Fault caught: Markdown that a browser opens as a page of this server."""
    answer = site.post("/v1/notes/print", {"download": True})
    assert answer.headers["content-disposition"] == 'attachment; filename="notes-1.md"'
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ['a".md', "a\r\nX-Injected: 1", "../a.md", ".hidden", "项目.md", "", "a" * 256])
def test_a_file_name_that_is_not_plain_never_reaches_a_header(site: Site, name: str) -> None:
    """Fault caught: a header that is split by a file name."""
    answer = site.post("/v1/notes/print", {"download": True, "file_name": name})
    check_problem(answer, "internal_error")
    assert "x-injected" not in answer.headers


def test_the_document_describes_every_operation_as_it_is(site: Site) -> None:
    """Fault caught: a document that leaves an operation, an answer or a refusal out."""
    document = site.client.get(site.url + "/openapi.json", headers={"Authorization": f"Bearer {site.reader}"}).json()
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {op.path for op in OPERATIONS} | {
        "/healthz",
        "/readyz",
        "/metrics",
        "/v1/events",
    }
    for op in OPERATIONS:
        assert list(document["paths"][op.path]) == ["post"]
        described = document["paths"][op.path]["post"]
        assert described["operationId"] == op.name
        assert described["security"] == [{"bearer": []}]
        for code in (*op.all_errors, *TRANSPORT_ERRORS):
            problem = described["responses"][str(ERRORS[code].status)]["content"]["application/problem+json"]
            assert code in problem["schema"]["allOf"][1]["properties"]["code"]["enum"]
    added = document["components"]["schemas"]
    assert added["AddNoteAsk"]["required"] == ["name"]
    assert added["AddNoteAsk"]["additionalProperties"] is False
    # An answer has every member, also one with a default.
    assert set(added["AddNoteAnswer"]["required"]) == {"name", "written_by", "identity", "host", "total", "note"}
    printed = document["paths"]["/v1/notes/print"]["post"]["responses"]["200"]
    assert set(printed["content"]) == {"application/json", "text/markdown; charset=utf-8"}
    assert {"Passdown-Selection-Digest", "Passdown-Report-Digest"} <= set(printed["headers"])


def test_every_reference_of_the_document_resolves(site: Site) -> None:
    """Fault caught: a schema that is named and not there."""
    document = site.app.openapi()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(reference := value.get("$ref"), str):
                found: Any = document
                for step in reference.removeprefix("#/").split("/"):
                    found = found[step]
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(document)
    assert json.loads(json.dumps(document)) == document


def test_an_operation_without_a_handler_is_found_when_the_application_is_made(site: Site) -> None:
    """Fault caught: an operation that fails at its first request."""
    handlers = Notes(site.store).handlers()
    del handlers["erase_notes"]
    with pytest.raises(ValueError, match="erase_notes"):
        create_app(handlers, OPERATIONS, site.tokens)
