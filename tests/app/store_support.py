"""A store with something of every kind in it, made through the operations themselves."""

from __future__ import annotations

from typing import Any

from engine_support import HOST, START_US, Desk

from passdown.identity.service import TokenService

FIRST = "scp_first"
SECOND = "scp_second"
LOOSE = "scp_loose"
TESTED = "scp_tested"


def furnish(desk: Desk) -> None:
    """Projects with a history, workstreams in several states, citations of every kind, tokens, a kept answer."""
    project = desk.call("create_handoff_report_project", key="shop", title="Shop", timezone="Asia/Shanghai")["project"]
    other = desk.call("create_handoff_report_project", key="other", title="Other")["project"]
    desk.call("update_handoff_report_project", project_id=project["project_id"], expected_version=1, title="The shop")
    desk.call(
        "update_handoff_report_project", project_id=other["project_id"], expected_version=1, catalog_state="archived"
    )
    refs = [{"kind": "issue", "provider": "tracker", "external_id": "7", "url": None}]
    for scope_id, more in ((FIRST, {"key": "first", "labels": ["é", "a"]}), (SECOND, {"external_refs": refs})):
        desk.call(
            "register_handoff_report_workstream",
            project_id=project["project_id"],
            scope_id=scope_id,
            title=scope_id,
            **more,
        )
    desk.call("update_handoff_report_workstream", scope_id=FIRST, expected_version=1, title="First", clear=["key"])
    desk.call("update_handoff_report_workstream", scope_id=FIRST, expected_version=2, key="erste", labels=[])
    first = desk.hand_off(FIRST)["committed"]["handoff_ref"]
    revision = {"kind": "artifact", "artifact_ref": first}
    note = desk.note({"a": [1, None, "原因"]}, scope_id=FIRST)
    desk.hand_off(
        FIRST,
        objective="Go on",
        state=[{"text": "Both stand.", "citations": [revision, note]}, {"text": "Again.", "citations": [revision]}],
        next_action={"text": "Do it.", "citations": [note]},
        omissions=[{"text": "Not looked at.", "citation": revision}, {"text": "Nor this.", "citation": None}],
    )
    desk.hand_off(FIRST, objective="Done", disposition="complete")
    desk.hand_off(SECOND, disposition="blocked")
    loose = desk.hand_off(LOOSE)["committed"]["handoff_ref"]
    desk.note("Nobody cites this.", scope_id="scp_without_handoff")
    run = {"commit": "1f" * 20, "commit_basis": "report", "sha256": "ab" * 32, "size": 9, "tests": 3, "failures": 1}
    report = {**run, "errors": 0, "skipped": 1, "failing": ["a.b"], "failing_total": 1}
    desk.call("capture_source", scope_id=TESTED, source_type="test_report", descriptor=report)
    exact = {"kind": "exact", "handoff_ref": loose}
    checks = [{"claim": "state", "state_index": 0, "result": "refuted", "note": "原因"}]
    taken = {"scope_id": LOOSE, "target": exact, "verdict": "declined", "reason": "Not mine.", "checks": checks}
    desk.call("acknowledge_handoff", **taken)
    lost = {"kind": "prepared", "content_digest": "sha256:" + "0" * 64}
    desk.call("acknowledge_handoff", scope_id=LOOSE, target=lost, verdict="accepted")
    tokens = TokenService(desk.store, desk.clock, desk.ids)
    tokens.create("ci", "builder", "agent", projects=[project["project_id"]], operations=["hand_off_now"])
    _, gone = tokens.create("old", "somebody", "reader", expires_us=START_US + 10**9)
    tokens.revoke(gone.token_id)
    desk.application.replays().once(HOST, "capture_source", "key-1", b"{}", lambda: b'{"answer": 1}')


def pages(url: str) -> dict[str, Any]:
    """What a person or a colleague would be given: every report in both forms, every handoff as it is continued."""
    found: dict[str, Any] = {}
    with Desk(url) as desk:
        listed = desk.call("list_handoff_report_projects", include_archived=True)["projects"]
        for project in listed:
            for form in ("json", "markdown"):
                ask = {"project_id": project["project_id"], "format": form, "filters": {"include_archived": True}}
                found[f"{project['project_key']} {form}"] = desk.ask("get_handoff_report", ask)
        for scope_id in (FIRST, SECOND, LOOSE):
            target = {"scope_id": scope_id, "target": {"kind": "latest"}, "confirm_scope": scope_id}
            found[scope_id] = desk.ask("continue_handoff", target)
        found["sources"] = desk.call("list_sources", scope_id=FIRST)
        found["tokens"] = TokenService(desk.store, desk.clock, desk.ids).list()
    return found
