"""Continue: history shown as history, checked and compared; nothing of it is adopted."""

from __future__ import annotations

from typing import Any

import pytest
from handoff_support import CALLER, HOST, SCOPE, Desk, cite, cite_revision, content, digest_of, places, prepared, say

OID = "1f" * 20
CLEAN = {"head": OID, "dirty": False, "relation": "aligned", "changed_paths": [], "uncommitted": None}
CLEAN |= {"unknown_because": None, "remarks": [], "notes": []}


def go(desk: Desk, target: dict[str, Any], **members: Any) -> Any:
    return desk.call("continue_handoff", scope_id=SCOPE, target=target, **members)


def exact(ref: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "exact", "handoff_ref": ref}


def with_action(desk: Desk, **members: Any) -> dict[str, Any]:
    head = desk.commit_fact(OID, subject="Fix the tail")
    return {"state": [say("It stands.", head)], "next_action": say("Write the test.", head)} | members


def test_the_latest_is_shown_as_untrusted_history_with_everything_that_was_stored(desk: Desk) -> None:
    desk.commit(objective="Earlier")
    value = desk.finalize(**with_action(desk))
    committed = desk.ask("commit_handoff", value)
    desk.clock.move(60_000_000)
    answer = desk.latest()
    assert (answer["trust"], answer["status"], answer["selection"]) == ("untrusted_history", "resolved", "latest")
    assert (answer["content"], answer["content_digest"]) == (value["content"], digest_of(value["content"]))
    assert answer["selected_revision"] == answer["current_revision"] == committed["handoff_ref"]
    assert answer["is_current"] is True
    assert answer["recorded_at"] == "2026-05-28T20:26:40.000000Z"
    assert answer["recorded_by"] == {"principal_id": "reader", "identity": "asserted"}


def test_reading_writes_nothing(desk: Desk) -> None:
    value = desk.finalize(**with_action(desk))
    ref = desk.ask("commit_handoff", value)["handoff_ref"]
    before = desk.everything()
    for target in ({"kind": "latest"}, exact(ref), {"kind": "prepared", "prepared": value}):
        go(desk, target, confirm_scope=SCOPE, current_objective="Another", workspace=CLEAN)
    desk.call("get_handoff", scope_id=SCOPE)
    desk.call("list_handoff_revisions", scope_id=SCOPE)
    desk.call("list_sources", scope_id=SCOPE)
    assert desk.everything() == before


def test_a_scope_without_a_handoff_is_empty_not_an_error(desk: Desk) -> None:
    answer = desk.latest("nowhere", current_objective="Something", workspace=CLEAN)
    assert answer["status"] == "empty"
    for name in ("content", "content_digest", "selected_revision", "current_revision", "recorded_at", "recorded_by"):
        assert answer[name] is None
    assert (answer["evidence"], answer["evidence_checks"], answer["is_current"]) == ([], [], False)
    assert (answer["next_action_usable"], answer["next_action_reasons"]) == (False, ["no_next_action"])
    assert answer["unproved"] is False


@pytest.mark.parametrize("confirm", [None, "else", "SCP_QUEUE"])
def test_the_latest_needs_the_scope_confirmed(desk: Desk, confirm: str | None) -> None:
    desk.commit()
    ask = {"scope_id": SCOPE, "target": {"kind": "latest"}, "confirm_scope": confirm}
    error = desk.refused("scope_not_confirmed", "continue_handoff", **ask)
    assert error.members["field"] == "confirm_scope"


def test_an_exact_revision_needs_no_confirmation_and_says_that_it_is_not_current(desk: Desk) -> None:
    first = desk.commit(**with_action(desk, objective="First"))["handoff_ref"]
    second = desk.commit(objective="Second")["handoff_ref"]
    answer = go(desk, exact(first), workspace=CLEAN)
    assert (answer["content"]["objective"], answer["selected_revision"]) == ("First", first)
    assert (answer["current_revision"], answer["is_current"]) == (second, False)
    assert answer["next_action_reasons"] == ["superseded"]


def test_a_handoff_of_another_scope_is_refused(desk: Desk) -> None:
    desk.commit()
    foreign = desk.commit(scope_id="else")["handoff_ref"]
    ask = {"scope_id": SCOPE, "target": exact(foreign)}
    error = desk.refused("handoff_scope_mismatch", "continue_handoff", **ask)
    assert error.members["field"] == "target.handoff_ref"
    value = desk.finalize(scope_id="else", objective="Not committed")
    ask = {"scope_id": SCOPE, "target": {"kind": "prepared", "prepared": value}}
    error = desk.refused("handoff_scope_mismatch", "continue_handoff", **ask)
    assert error.members["field"] == "target.prepared.scope_id"


def test_a_revision_that_does_not_exist_is_not_found(desk: Desk) -> None:
    head = desk.commit()["handoff_ref"]
    for ref in (head | {"revision": 2}, head | {"artifact_id": "hnd_never"}, head | {"family": "report"}):
        desk.refused("handoff_not_found", "continue_handoff", scope_id=SCOPE, target=exact(ref))


# --- a transferred, uncommitted handoff -------------------------------------------------------------------------------


def test_a_prepared_handoff_is_continued_before_anybody_commits_it(desk: Desk) -> None:
    value = desk.finalize(**with_action(desk))
    answer = go(desk, {"kind": "prepared", "prepared": value}, workspace=CLEAN)
    assert (answer["content"], answer["content_digest"]) == (value["content"], value["content_digest"])
    assert (answer["selection"], answer["selected_revision"], answer["is_current"]) == ("prepared", None, False)
    assert (answer["recorded_at"], answer["recorded_by"]) == (None, None)
    assert answer["next_action_usable"] is True
    desk.ask("commit_handoff", value)
    assert go(desk, {"kind": "prepared", "prepared": value}, workspace=CLEAN)["next_action_usable"] is True


def test_a_prepared_handoff_that_others_overtook_has_no_usable_next_action(desk: Desk) -> None:
    """Catches an old order that looks fresh because it was never committed."""
    value = desk.finalize(**with_action(desk))
    desk.commit(objective="Theirs")
    answer = go(desk, {"kind": "prepared", "prepared": value}, workspace=CLEAN)
    assert answer["next_action_reasons"] == ["superseded"]


def test_a_damaged_prepared_handoff_is_refused(desk: Desk) -> None:
    value = desk.finalize()
    value["content"]["disposition"] = "complete"
    ask = {"scope_id": SCOPE, "target": {"kind": "prepared", "prepared": value}}
    desk.refused("prepared_digest_mismatch", "continue_handoff", **ask)


def test_a_prepared_handoff_with_evidence_that_is_not_here_is_shown_with_the_gap(desk: Desk) -> None:
    gone = [
        cite({"source_type": "file", "source_id": "a.txt@1"}),
        cite_revision({"family": "report", "artifact_id": "r", "revision": 1}),
        cite_revision({"family": "minutes", "artifact_id": "r", "revision": 1}),
    ]
    good = desk.note()
    value = prepared(content([say("One.", good), say("Two.", good, *gone)], next_action=say("Go.", gone[0])))
    answer = go(desk, {"kind": "prepared", "prepared": value}, workspace=CLEAN)
    checks = [
        {"claim": "state", "state_index": 0, "status": "available", "unavailable_evidence": []},
        {"claim": "state", "state_index": 1, "status": "unavailable", "unavailable_evidence": gone},
        {"claim": "next_action", "state_index": None, "status": "unavailable", "unavailable_evidence": gone[:1]},
    ]
    assert answer["evidence_checks"] == checks
    assert [item["citation"] for item in answer["evidence"]] == [good, *gone]
    assert [item["readable"] for item in answer["evidence"]] == [True, False, False, False]
    assert answer["next_action_reasons"] == ["evidence_unavailable"]


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_each_piece_of_evidence_is_shown_once_with_who_read_it(desk: Desk) -> None:
    read = desk.commit_fact(OID, subject="Fix the tail", remote_refs=["origin/main"])
    unlooked = desk.commit_fact("2e" * 20, who=CALLER)
    nowhere = desk.commit_fact("3d" * 20, remote_refs=[])
    said = desk.note("A note.", name="the note")
    earlier = desk.commit()["handoff_ref"]
    desk.commit(
        state=[say("One.", read, said), say("Two.", read, unlooked)],
        next_action=say("Go.", said),
        omissions=[
            {"text": "Left out.", "citation": nowhere},
            {"text": "Earlier.", "citation": cite_revision(earlier)},
        ],
    )
    evidence = desk.latest()["evidence"]
    assert [item["citation"] for item in evidence] == [read, said, unlooked, nowhere, cite_revision(earlier)]
    assert [item["assurance"] for item in evidence] == [
        "host_read",
        "caller_supplied",
        "caller_supplied",
        "host_read",
        None,
    ]
    assert [item["read_by"] for item in evidence] == ["workbench", None, None, "workbench", None]
    assert [item["remote_refs"] for item in evidence] == [["origin/main"], None, None, [], None]
    assert [item["label"] for item in evidence] == [
        f"{OID[:12]} Fix the tail",
        "the note",
        "2e" * 6,
        "3d" * 6,
        "handoff #1",
    ]
    assert all(item["readable"] for item in evidence)


def test_there_is_one_check_per_claim(desk: Desk) -> None:
    desk.commit(**with_action(desk, state=[say(f"Statement {number}.", desk.note()) for number in range(3)]))
    checks = desk.latest()["evidence_checks"]
    assert [(item["claim"], item["state_index"]) for item in checks] == [
        ("state", 0),
        ("state", 1),
        ("state", 2),
        ("next_action", None),
    ]
    assert {item["status"] for item in checks} == {"available"}


# --- objective and next action ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "relation"),
    [
        (None, "not_given"),
        ("Make café open", "same"),
        ("Make cafe\u0301 open", "same"),
        ("make café open", "different"),
        ("Make café open ", "different"),
        ("Delete everything", "different"),
    ],
)
def test_another_objective_is_reported_not_adopted(desk: Desk, current: str | None, relation: str) -> None:
    desk.commit(objective="Make café open")
    answer = desk.latest(current_objective=current)
    assert answer["objective_relation"] == relation
    assert answer["content"]["objective"] == "Make café open"


GONE = {"present": 0, "changed": [], "gone": ["a.txt"], "not_recorded": 0, "elsewhere": False, "remarks": []}
CHANGED = {"present": 0, "changed": ["a.txt"], "gone": [], "not_recorded": 3, "elsewhere": False, "remarks": []}


@pytest.mark.parametrize(
    ("workspace", "reasons"),
    [
        (CLEAN, []),
        (CLEAN | {"relation": "ahead"}, []),
        (CLEAN | {"relation": "behind"}, []),
        (CLEAN | {"dirty": True, "changed_paths": ["a.txt"]}, []),
        (CLEAN | {"uncommitted": CHANGED}, []),
        (None, ["workspace_not_given"]),
        (CLEAN | {"relation": "unknown"}, ["relation_unknown"]),
        (CLEAN | {"relation": "diverged"}, ["diverged"]),
        (CLEAN | {"uncommitted": GONE}, ["uncommitted_files_gone"]),
        (CLEAN | {"relation": "diverged", "uncommitted": GONE}, ["diverged", "uncommitted_files_gone"]),
    ],
)
def test_a_next_action_is_usable_only_where_it_applies(
    desk: Desk, workspace: dict[str, Any] | None, reasons: list[str]
) -> None:
    """Catches an old order that runs in a checkout which nobody compared or which went another way."""
    desk.commit(**with_action(desk))
    answer = desk.latest(workspace=workspace)
    assert (answer["next_action_usable"], answer["next_action_reasons"]) == (not reasons, reasons)
    assert answer["workspace"] == workspace
    ask: dict[str, Any] = {"target": {"kind": "latest"}, "confirm_scope": SCOPE, "workspace": workspace}
    ask |= {"scope_id": SCOPE, "require_usable_next_action": True}
    if reasons:
        assert desk.refused("workspace_diverged", "continue_handoff", **ask).members["reasons"] == reasons
    else:
        assert desk.call("continue_handoff", HOST, **ask)["next_action_usable"] is True


def test_a_handoff_without_a_next_action_proposes_none(desk: Desk) -> None:
    desk.commit()
    answer = desk.latest(workspace=CLEAN)
    assert (answer["next_action_usable"], answer["next_action_reasons"]) == (False, ["no_next_action"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"head": "HEAD"}, "workspace.head"),
        ({"relation": "same"}, "workspace.relation"),
        ({"dirty": 1}, "workspace.dirty"),
        ({"changed_paths": ["p"] * 2_001}, "workspace.changed_paths"),
        ({"branch": "main"}, "workspace.branch"),
        ({"uncommitted": GONE | {"gone": ["p"] * 2_001}}, "workspace.uncommitted.gone"),
    ],
)
def test_a_workspace_has_exactly_what_a_host_computes(desk: Desk, change: dict[str, Any], field: str) -> None:
    desk.commit()
    ask = {"scope_id": SCOPE, "target": {"kind": "latest"}, "confirm_scope": SCOPE, "workspace": CLEAN | change}
    assert places(desk.refused("invalid_request", "continue_handoff", **ask))[0][0] == field


def test_a_workspace_may_list_2000_changed_paths(desk: Desk) -> None:
    desk.commit()
    workspace = CLEAN | {"dirty": True, "changed_paths": [f"p{number}" for number in range(2_000)]}
    assert desk.latest(workspace=workspace)["workspace"] == workspace
