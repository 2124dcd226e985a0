"""The operations of the product over real HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx
import orjson
import pytest
import rfc8785
from http_support import MARK, Site, check_problem, start_site

from passdown.app.operations import OPERATIONS
from passdown.kernel.operations import Op

NAMES = {op.name: op for op in OPERATIONS}
COMMIT_ID = "0123456789abcdef0123456789abcdef01234567"
_numbers = count(1)


@pytest.fixture(scope="module")
def handoffs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The whole product behind one server."""
    running = start_site(tmp_path_factory.mktemp("handoffs"), whole=True)
    yield running
    running.stop()


@pytest.fixture
def scope() -> str:
    """A workstream of the test's own."""
    return f"scope-{next(_numbers)}"


def ask(site: Site, name: str, value: Any, token: str | None = None) -> dict[str, Any]:
    answer = site.post(NAMES[name].path, value, token=token)
    assert answer.status_code == 200, answer.text
    parsed: dict[str, Any] = answer.json()
    return parsed


def hand_off(scope_id: str, objective: str, **more: Any) -> dict[str, Any]:
    cited = [{"kind": "inline", "label": "note"}]
    return {
        "scope_id": scope_id,
        "objective": objective,
        "evidence": [{"label": "note", "source_type": "content", "content": f"what {objective} rests on"}],
        "state": [{"text": "The parser is written.", "citations": cited}],
        "disposition": "continuable",
        "commit": True,
        **more,
    }


def test_a_handoff_goes_from_source_to_continue_with_one_digest(handoffs: Site, scope: str) -> None:
    """Fault caught: content that changes between two operations, or an answer that misses a member."""
    source = ask(handoffs, "capture_source", {"scope_id": scope, "source_type": "content", "content": "a fact"})[
        "source"
    ]
    cited = [{"kind": "source", "source_ref": source["source_ref"]}]
    draft = ask(
        handoffs,
        "prepare_handoff",
        {
            "scope_id": scope,
            "objective": "Ship 项目 é",
            "state": [{"text": "Half done.", "citations": cited}],
            "next_action": {"text": "Write the rest.", "citations": cited},
        },
    )["draft"]
    prepared = ask(handoffs, "finalize_handoff", {"scope_id": scope, "draft": draft})
    expected = "sha256:" + hashlib.sha256(rfc8785.dumps(prepared["content"])).hexdigest()
    assert prepared["content_digest"] == expected
    assert prepared["base"] is None
    committed = ask(handoffs, "commit_handoff", prepared)
    assert (committed["status"], committed["replayed"], committed["content_digest"]) == ("committed", False, expected)
    assert committed["handoff_ref"]["revision"] == 1
    assert ask(handoffs, "commit_handoff", prepared)["replayed"] is True
    shown = ask(
        handoffs,
        "continue_handoff",
        {"scope_id": scope, "target": {"kind": "latest"}, "confirm_scope": scope},
        token=handoffs.reader,
    )
    assert (shown["trust"], shown["status"]) == ("untrusted_history", "resolved")
    assert shown["content"] == prepared["content"]
    assert shown["content_digest"] == expected
    assert shown["recorded_by"] == {"principal_id": "codex-2", "identity": "authenticated"}
    read = ask(handoffs, "get_handoff", {"scope_id": scope}, token=handoffs.reader)["handoff"]
    assert read["content"] == prepared["content"]
    listed = ask(handoffs, "list_handoff_revisions", {"scope_id": scope}, token=handoffs.reader)
    assert [each["handoff_ref"] for each in listed["revisions"]] == [committed["handoff_ref"]]


def test_only_a_token_with_a_host_makes_a_commit_read_by_that_host(handoffs: Site, scope: str) -> None:
    """Fault caught: an invented commit that counts as read because the body or any token says so."""
    descriptor = {"oid": COMMIT_ID, "subject": "Invented"}
    captured = {"scope_id": scope, "source_type": "git_commit", "descriptor": descriptor}
    said = ask(handoffs, "capture_source", captured, token=handoffs.owner)["source"]
    assert (said["assurance"], said["read_by"]) == ("caller_supplied", None)
    read = ask(
        handoffs, "capture_source", {**captured, "descriptor": {**descriptor, "subject": "Read"}}, token=handoffs.agent
    )["source"]
    assert (read["assurance"], read["read_by"]) == ("host_read", "buildbox")
    check_problem(
        handoffs.post(NAMES["capture_source"].path, {**captured, "assurance": "host_read"}), "invalid_request"
    )


def test_a_stale_base_is_a_conflict_that_names_the_current_head(handoffs: Site, scope: str) -> None:
    """Fault caught: a lost update, or a conflict that nobody can act on."""
    prepared = ask(handoffs, "hand_off_now", hand_off(scope, "one", commit=False))["prepared"]
    head = ask(handoffs, "hand_off_now", hand_off(scope, "two"))["committed"]["handoff_ref"]
    before = handoffs.store.writes()
    check_problem(handoffs.post(NAMES["commit_handoff"].path, prepared), "handoff_conflict", current=head)
    assert handoffs.store.writes() == before


def test_of_many_writers_from_one_base_one_wins(handoffs: Site, scope: str) -> None:
    """Fault caught: two revisions from one base, or a loser that gets anything but the conflict."""
    made = [ask(handoffs, "hand_off_now", hand_off(scope, f"w{n}", commit=False))["prepared"] for n in range(24)]
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda prepared: handoffs.post(NAMES["commit_handoff"].path, prepared), made))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 23
    listed = ask(handoffs, "list_handoff_revisions", {"scope_id": scope})
    assert [each["handoff_ref"]["revision"] for each in listed["revisions"]] == [1]


@pytest.mark.parametrize("op", OPERATIONS, ids=[op.name for op in OPERATIONS])
def test_every_operation_refuses_what_is_not_its_request(handoffs: Site, op: Op[Any, Any]) -> None:
    """Fault caught: an operation that is wired without its token, its strict reader or its model."""
    before = handoffs.store.writes()
    unknown_member = orjson.dumps({"scope_id": "nowhere", f"{MARK} ?": MARK})
    without_token = handoffs.client.post(
        handoffs.url + op.path, content=unknown_member, headers={"Content-Type": "application/json"}
    )
    check_problem(without_token, "unauthenticated", rule="missing")
    check_problem(handoffs.post(op.path, b""), "malformed_json", rule="empty")
    check_problem(
        handoffs.post(op.path, b'{"scope_id":"zq7mark","scope_id":"b"}'), "malformed_json", rule="duplicate_key"
    )
    check_problem(handoffs.post(op.path, b'["zq7mark"]'), "invalid_request")
    found = check_problem(handoffs.post(op.path, unknown_member), "invalid_request")["errors"]
    assert {"field": "?", "rule": "extra_forbidden"} in found
    check_problem(handoffs.client.get(handoffs.url + op.path), "method_not_allowed")
    assert handoffs.store.writes() == before


@pytest.mark.parametrize("op", OPERATIONS, ids=[op.name for op in OPERATIONS])
def test_a_reader_may_use_exactly_the_operations_that_read(handoffs: Site, op: Op[Any, Any]) -> None:
    """Fault caught: an effect that is described wrongly, or not looked at."""
    before = handoffs.store.writes()
    answer = handoffs.post(op.path, b'{"no member": 1}', token=handoffs.reader)
    check_problem(answer, "invalid_request" if op.effect == "read" else "forbidden")
    assert handoffs.store.writes() == before


def test_a_citation_of_an_unknown_kind_keeps_its_own_code(handoffs: Site, scope: str) -> None:
    """Fault caught: a code of the model's that is flattened into another on the way."""
    state = [{"text": "x", "citations": [{"kind": "url", "url": MARK}]}]
    before = handoffs.store.writes()
    answer = handoffs.post(NAMES["hand_off_now"].path, hand_off(scope, "x", state=state))
    check_problem(answer, "unsupported_citation_kind")
    assert handoffs.store.writes() == before


def test_what_was_said_over_http_is_the_same_for_another_client(handoffs: Site, scope: str) -> None:
    """Fault caught: state that a server keeps between requests or connections."""
    ask(handoffs, "hand_off_now", hand_off(scope, "shared"))
    with httpx.Client(trust_env=False) as other:
        answer = other.post(
            handoffs.url + NAMES["get_handoff"].path,
            json={"scope_id": scope},
            headers={"Authorization": f"Bearer {handoffs.reader}"},
        )
    assert answer.json()["handoff"]["content"]["objective"] == "shared"


def project_with_a_handoff(site: Site, scope: str, title: str) -> str:
    key = f"key-{scope}"
    created = ask(site, "create_handoff_report_project", {"key": key, "title": title, "default_locale": "en"})
    project_id: str = created["project"]["project_id"]
    ask(
        site,
        "register_handoff_report_workstream",
        {"project_id": project_id, "scope_id": scope, "key": "main", "title": "Main"},
    )
    ask(site, "hand_off_now", hand_off(scope, "Ship 项目"))
    return project_id


def test_a_json_report_is_canonical_and_its_headers_carry_its_digests(handoffs: Site, scope: str) -> None:
    """Fault caught: a report that is encoded again on its way, or headers of another report."""
    project_id = project_with_a_handoff(handoffs, scope, "One 项目")
    answer = handoffs.post(
        NAMES["get_handoff_report"].path, {"project_id": project_id, "format": "json"}, token=handoffs.reader
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    report = answer.json()
    assert rfc8785.dumps(report) == answer.content
    digest = report.pop("report_digest")
    assert "sha256:" + hashlib.sha256(rfc8785.dumps(report)).hexdigest() == digest
    assert answer.headers["passdown-report-digest"] == digest
    assert answer.headers["passdown-selection-digest"] == report["selection_digest"]


def test_a_downloaded_report_is_an_attachment_whose_name_holds_no_title(handoffs: Site, scope: str) -> None:
    """Fault caught: a title in a header, or a report that opens as a page."""
    project_id = project_with_a_handoff(handoffs, scope, MARK)
    path = NAMES["get_handoff_report"].path
    answer = handoffs.post(path, {"project_id": project_id, "download": True, "locale": "en"})
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith("---\n")
    name = answer.headers["content-disposition"]
    assert name.startswith(f'attachment; filename="handoff-report-{project_id}-')
    assert name.endswith('.md"')
    assert MARK not in name
    assert answer.headers["content-security-policy"] == "sandbox"


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("locale", "fr", "unsupported_report_locale"),
        ("format", "pdf", "unsupported_report_format"),
        ("project_id", "prj_nowhere", "project_not_found"),
    ],
)
def test_a_report_that_cannot_be_made_says_why(handoffs: Site, scope: str, member: str, value: str, code: str) -> None:
    """Fault caught: a refusal of the report that loses its code over HTTP."""
    project_id = project_with_a_handoff(handoffs, scope, "One")
    before = handoffs.store.writes()
    answer = handoffs.post(NAMES["get_handoff_report"].path, {"project_id": project_id, member: value})
    check_problem(answer, code)
    assert handoffs.store.writes() == before


def test_the_document_of_the_whole_product_is_open_api_3_1(handoffs: Site) -> None:
    """Fault caught: a model of the product that the document cannot describe, or two that take one name."""
    headers = {"Authorization": f"Bearer {handoffs.reader}"}
    document = handoffs.client.get(handoffs.url + "/openapi.json", headers=headers).json()
    for op in OPERATIONS:
        described = document["paths"][op.path]["post"]
        assert described["operationId"] == op.name
        reference = described["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        schema = document["components"]["schemas"][reference]
        assert set(schema["properties"]) == {field.alias or name for name, field in op.ask.model_fields.items()}
        assert schema["additionalProperties"] is False
    report = document["paths"][NAMES["get_handoff_report"].path]["post"]["responses"]["200"]["content"]
    assert report["application/json"]["schema"]["$ref"].startswith("#/components/schemas/HandoffReport")
