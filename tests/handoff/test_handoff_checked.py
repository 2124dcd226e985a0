"""Test reports, documents and addresses as evidence; committed, pushed and checked are three facts."""

from __future__ import annotations

from typing import Any

import pytest
from handoff_support import CALLER, HOST, SCOPE, Desk, cite, inline, places, say

OID = "1f" * 20
SHA = "ab" * 32
REPORT = {"sha256": SHA, "size": 900, "tests": 12, "failures": 1, "errors": 1, "skipped": 2, "failing_total": 2}
RAN = {**REPORT, "commit": OID, "commit_basis": "report"}


def capture(desk: Desk, source_type: str, descriptor: dict[str, Any], who: Any = HOST, **members: Any) -> Any:
    return desk.call(
        "capture_source", who, scope_id=SCOPE, source_type=source_type, descriptor=descriptor, **members
    )["source"]  # fmt: skip


def evidence_of(desk: Desk, source_type: str) -> list[Any]:
    return [
        item
        for item in desk.latest()["evidence"]
        if item["citation"]["kind"] == "source" and item["citation"]["source_ref"]["source_type"] == source_type
    ]


def test_a_commit_is_checked_by_the_reports_that_name_it_and_by_no_other(desk: Desk) -> None:
    commit = desk.commit_fact(OID, remote_refs=[])
    capture(desk, "test_report", RAN)
    capture(desk, "test_report", {**REPORT, "sha256": "cd" * 32})
    capture(desk, "test_report", {**RAN, "sha256": "ef" * 32, "commit": "2e" * 20})
    desk.commit(state=[say("It stands.", commit)])
    (shown,) = evidence_of(desk, "git_commit")
    assert (shown["remote_refs"], shown["checks_total"]) == ([], 1)
    (run,) = shown["checks"]
    assert (run["tests"], run["failures"], run["errors"], run["skipped"]) == (12, 1, 1, 2)
    assert (run["commit_basis"], run["assurance"]) == ("report", "host_read")


def test_committed_pushed_and_checked_do_not_follow_from_one_another(desk: Desk) -> None:
    pushed = desk.commit_fact(OID, remote_refs=["origin/main"])
    desk.commit(state=[say("It stands.", pushed)])
    (shown,) = evidence_of(desk, "git_commit")
    assert (shown["remote_refs"], shown["checks"], shown["checks_total"]) == (["origin/main"], [], 0)


def test_who_said_which_commit_the_tests_ran_on_is_kept(desk: Desk) -> None:
    commit = desk.commit_fact(OID)
    capture(desk, "test_report", {**RAN, "commit_basis": "said"}, CALLER)
    desk.commit(state=[say("It stands.", commit)])
    (run,) = evidence_of(desk, "git_commit")[0]["checks"]
    assert (run["commit_basis"], run["assurance"]) == ("said", "caller_supplied")


def test_the_newest_sixteen_runs_are_listed_and_all_are_counted(desk: Desk) -> None:
    commit = desk.commit_fact(OID)
    for number in range(17):
        desk.clock.move(1)
        capture(desk, "test_report", {**RAN, "sha256": f"{number:064x}", "tests": 100 + number})
    desk.commit(state=[say("It stands.", commit)])
    (shown,) = evidence_of(desk, "git_commit")
    assert shown["checks_total"] == 17
    assert [run["tests"] for run in shown["checks"]] == [116 - number for number in range(16)]


def test_what_is_no_commit_has_no_checks(desk: Desk) -> None:
    desk.commit()
    (shown,) = evidence_of(desk, "content")
    assert (shown["checks"], shown["checks_total"]) == (None, 0)


def test_a_report_captured_again_is_a_replay_and_runs_once(desk: Desk) -> None:
    commit = desk.commit_fact(OID)
    first = capture(desk, "test_report", RAN)
    assert first["source_ref"]["source_id"].startswith(f"{SHA}@")
    assert capture(desk, "test_report", RAN)["source_ref"] == first["source_ref"]
    desk.commit(state=[say("It stands.", commit)])
    assert evidence_of(desk, "git_commit")[0]["checks_total"] == 1


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"commit": OID}, "together"),
        ({"commit_basis": "said"}, "together"),
        ({"failures": 13}, "counts"),
        ({"failing": ["a", "b", "c"]}, "counts"),
        ({"tests": -1}, "greater_than_equal"),
        ({"sha256": "x"}, "string_pattern_mismatch"),
        ({"commit": OID, "commit_basis": "guessed"}, "literal_error"),
        ({"failing": ["x"] * 101, "failing_total": 101, "tests": 200, "failures": 101}, "too_long"),
        ({"surprise": 1}, "extra_forbidden"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(desk: Desk, changes: dict[str, Any], rule: str) -> None:
    ask = {"scope_id": SCOPE, "source_type": "test_report", "descriptor": {**REPORT, **changes}}
    assert rule in {found for _, found in places(desk.refused("invalid_request", "capture_source", **ask))}


def test_a_document_is_its_role_place_and_digest(desk: Desk) -> None:
    found = capture(desk, "document", {"role": "PRD", "path": "docs/需求.md", "sha256": SHA, "size": 3})
    assert found["source_ref"]["source_id"] == f"PRD:docs/需求.md@{SHA}"
    assert found["assurance"] == "host_read"
    other = capture(desk, "document", {"role": "AD", "path": "docs/需求.md", "sha256": SHA, "size": 3})
    assert other["source_ref"] != found["source_ref"]


@pytest.mark.parametrize("who", [HOST, CALLER])
def test_an_address_is_referenced_whoever_names_it_and_proves_nothing(desk: Desk, who: Any) -> None:
    found = capture(desk, "url", {"url": "https://example.com/run/7"}, who)
    assert (found["assurance"], found["materialization"], found["read_by"]) == ("referenced", "referenced", None)
    assert found["source_ref"]["source_id"] == "https://example.com/run/7"
    desk.commit(state=[say("It is done.", cite(found["source_ref"]))], disposition="complete")
    answer = desk.latest()
    assert answer["unproved"] is True
    assert [(item["readable"], item["assurance"]) for item in answer["evidence"]] == [(True, "referenced")]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com",
        "javascript:alert(1)",
        "https://user:secret@example.com",
        "https://",
        "example.com",
        "https://a b",
        "https://[::1",
        "http://" + "a" * 2_042,
        "",
        " https://example.com",
        "https://exa\nmple.com",
    ],
)  # fmt: skip
def test_what_is_no_plain_web_address_is_refused_without_repeating_it(desk: Desk, url: str) -> None:
    error = desk.refused(
        "invalid_request", "capture_source", scope_id=SCOPE, source_type="url", descriptor={"url": url}
    )
    assert places(error)[0][0] == "descriptor.url"
    assert "secret" not in repr(error.problem())


def test_the_longest_address_is_named_by_its_digest(desk: Desk) -> None:
    url = "https://example.com/" + "a" * 2_028
    found = capture(desk, "url", {"url": url})
    assert found["source_ref"]["source_id"].startswith("sha256:")
    assert found["descriptor"]["url"] == url


def test_nobody_may_choose_the_name_that_another_reading_will_want(desk: Desk) -> None:
    for source_type, descriptor, named in (
        ("url", {"url": "https://example.com/a"}, "https://example.com/b"),
        ("test_report", REPORT, f"{'cd' * 32}@0123456789ab"),
        ("document", {"role": "PRD", "path": "a", "sha256": SHA}, f"PRD:b@{SHA}"),
    ):
        ask = {"scope_id": SCOPE, "source_type": source_type, "descriptor": descriptor, "source_id": named}
        error = desk.refused("invalid_request", "capture_source", **ask)
        assert places(error) == [("source_id", "reserved_for_derived")]


def test_a_complete_that_rests_on_a_report_that_a_host_read_is_proved(desk: Desk) -> None:
    evidence = [{"label": "tests", "source_type": "test_report", "descriptor": RAN}]
    members = {"scope_id": SCOPE, "objective": "Aim", "evidence": evidence, "commit": True, "disposition": "complete"}
    state = [say("All pass.", inline("tests"))]
    assert desk.call("hand_off_now", **members, state=state)["unproved"] is False
    said = [{**evidence[0], "said": True}]
    assert desk.call("hand_off_now", **{**members, "evidence": said}, state=state)["unproved"] is True
