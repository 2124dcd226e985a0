"""Preparing and finalising: nothing is invented, nothing is dropped without a word, nothing is written."""

from __future__ import annotations

from typing import Any

import pytest
from handoff_support import CALLER, SCOPE, Desk, cite, cite_revision, digest_of, draft, inline, places, say

OID = "1f" * 20
LABELLED = {"label": "log", "source_type": "content", "content": "The log says so."}


def prepare(desk: Desk, **members: Any) -> Any:
    return desk.call("prepare_handoff", scope_id=SCOPE, objective=members.pop("objective", "Aim"), **members)


def test_a_draft_without_statements_has_none(desk: Desk) -> None:
    """Catches a generated statement."""
    desk.note()
    answer = prepare(desk)
    assert answer["draft"]["state"] == []
    assert answer["draft"]["next_action"] is None
    assert answer["draft"]["objective"] == "Aim"
    assert answer["draft"]["origin"] == "prepared"


def test_each_candidate_that_nothing_cites_becomes_one_omission_with_its_reference(desk: Desk) -> None:
    used, left = desk.note("Used."), desk.note("Left.")
    omitted = desk.note("Omitted.")
    answer = prepare(
        desk, state=[say("It stands.", used)], omissions=[{"text": "Not looked into.", "citation": omitted}]
    )
    body = answer["draft"]
    assert body["state"] == [say("It stands.", used)]
    assert [item["citation"] for item in body["omissions"]] == [omitted, left]
    assert "Left." in body["omissions"][1]["text"]
    assert answer["left_out"] == [left]
    assert {str(item["citation"]) for item in answer["candidates"]} == {str(used), str(left), str(omitted)}


def test_candidates_are_the_named_ones_those_since_the_head_and_the_head(desk: Desk) -> None:
    """Catches old sources that come back by themselves, and a head that is not offered."""
    old = desk.note("Old.")
    named = desk.note("Named.")
    head = desk.commit(state=[say("It stands.", old)])["handoff_ref"]
    new = desk.note("New.")
    answer = prepare(desk, evidence=[named, LABELLED])
    offered = [item["citation"] for item in answer["candidates"]]
    log = cite({"source_type": "content", "source_id": offered[1]["source_ref"]["source_id"]})
    assert offered == [named, log, new, cite_revision(head)]
    assert old not in offered


def test_inline_evidence_is_captured_and_its_label_replaced(desk: Desk) -> None:
    answer = prepare(
        desk,
        evidence=[LABELLED],
        state=[say("It stands.", inline("log"))],
        next_action=say("Go on.", inline("log")),
        omissions=[{"text": "More in the log.", "citation": inline("log")}],
    )
    source = desk.call("list_sources", scope_id=SCOPE)["sources"][0]
    citation = cite(source["source_ref"])
    body = answer["draft"]
    assert body["state"][0]["citations"] == body["next_action"]["citations"] == [citation]
    assert body["omissions"] == [{"text": "More in the log.", "citation": citation}]
    assert answer["left_out"] == []


def test_more_candidates_than_omissions_fit_are_counted_in_the_last_one(desk: Desk) -> None:
    """Catches a silent cut."""
    evidence = [{"label": f"n{n}", "source_type": "content", "content": f"Note {n}."} for n in range(70)]
    answer = prepare(desk, evidence=evidence)
    omissions = answer["draft"]["omissions"]
    assert len(omissions) == 64
    assert all(item["citation"] is not None for item in omissions[:63])
    assert omissions[63]["citation"] is None
    assert str(70 - 63) in omissions[63]["text"]
    assert len(answer["left_out"]) == 70


def test_a_draft_goes_through_finalize_as_it_is(desk: Desk) -> None:
    answer = prepare(desk, evidence=[LABELLED], state=[say("It stands.", inline("log"))])
    found = desk.call("finalize_handoff", scope_id=SCOPE, draft=answer["draft"])
    assert found["content"] == {"schema": "powercontext.handoff.v1"} | {
        name: answer["draft"][name] for name in ("objective", "state", "disposition", "next_action", "omissions")
    }


def test_preparing_without_inline_evidence_writes_nothing(desk: Desk) -> None:
    note = desk.note()
    before = desk.everything()
    prepare(desk, evidence=[note], state=[say("It stands.", note)])
    assert desk.everything() == before


def test_reading_does_not_wait_for_a_writer(desk: Desk) -> None:
    """Catches a read that takes the turn of a writer; inside one it would be refused as a write within a write."""
    note = desk.note()
    head = desk.commit(state=[say("It stands.", note)])["handoff_ref"]

    def beside(_: Any) -> None:
        prepare(desk, evidence=[note])
        desk.finalize(state=[say("It stands.", note)])
        desk.latest()
        desk.call("get_handoff", scope_id=SCOPE, handoff_ref=head)
        desk.call("get_source", scope_id=SCOPE, source_ref=note["source_ref"])
        desk.call("list_sources", scope_id=SCOPE)
        desk.numbers()

    desk.application.store.write(beside)


def test_finalising_writes_nothing_and_names_the_head_it_saw(desk: Desk) -> None:
    note = desk.note()
    before = desk.everything()
    first = desk.call("finalize_handoff", scope_id=SCOPE, draft=draft([say("It stands.", note)]))
    assert desk.everything() == before
    assert (first["schema"], first["scope_id"], first["base"]) == ("powercontext.prepared-handoff.v1", SCOPE, None)
    assert first["content_digest"] == digest_of(first["content"])
    head = desk.ask("commit_handoff", first)["handoff_ref"]
    assert desk.finalize()["base"] == head


@pytest.mark.parametrize("op", ["prepare_handoff", "finalize_handoff", "hand_off_now"])
def test_a_citation_that_does_not_resolve_is_refused_with_its_place(desk: Desk, op: str) -> None:
    good = desk.note()
    elsewhere = desk.note("Elsewhere.", scope_id="else")
    head = desk.commit()["handoff_ref"]
    bad = [
        cite({"source_type": "content", "source_id": "never captured"}),
        cite({"source_type": "git_commit", "source_id": good["source_ref"]["source_id"]}),
        elsewhere,
        cite_revision(head | {"revision": 2}),
        cite_revision(head | {"artifact_id": "hnd_other"}),
        cite_revision(head | {"family": "report"}),
        cite_revision(desk.commit(scope_id="else")["handoff_ref"]),
    ]
    for citation in bad:
        if op == "prepare_handoff":
            ask: dict[str, Any] = {"objective": "Aim", "evidence": [good, citation]}
            expected = ["evidence.1"]
        else:
            body = draft(
                [say("x", good), say("y", good, citation)],
                next_action=say("z", citation),
                omissions=[{"text": "o", "citation": citation}],
            )
            ask = {"draft": body} if op == "finalize_handoff" else body | {"commit": True}
            prefix = "draft." if op == "finalize_handoff" else ""
            expected = [
                f"{prefix}{place}"
                for place in ("state.1.citations.1", "next_action.citations.0", "omissions.0.citation")
            ]
        error = desk.refused("citation_not_readable", op, scope_id=SCOPE, **ask)
        assert places(error) == [(place, "not_readable") for place in expected]


def test_the_head_of_the_scope_may_be_cited(desk: Desk) -> None:
    head = desk.commit()["handoff_ref"]
    answer = desk.commit(state=[say("As before.", cite_revision(head))])
    assert answer["handoff_ref"]["revision"] == 2
    assert desk.latest()["evidence_checks"][0]["status"] == "available"


@pytest.mark.parametrize("kind", ["url", "inline2", "", "SOURCE", None, 1])
def test_another_kind_of_citation_is_refused_by_its_own_code(desk: Desk, kind: Any) -> None:
    citation = {"kind": kind, "source_ref": {"source_type": "content", "source_id": "x"}}
    body = draft([say("x", citation)])
    desk.refused("unsupported_citation_kind", "finalize_handoff", scope_id=SCOPE, draft=body)
    desk.refused("unsupported_citation_kind", "hand_off_now", scope_id=SCOPE, commit=True, **body)
    desk.refused("unsupported_citation_kind", "prepare_handoff", scope_id=SCOPE, objective="x", evidence=[citation])


def test_an_inline_citation_cannot_be_finalised_or_committed(desk: Desk) -> None:
    body = draft([say("x", inline("log"))])
    error = desk.refused("citation_not_readable", "finalize_handoff", scope_id=SCOPE, draft=body)
    assert places(error) == [("draft.state.0.citations.0", "unknown_label")]
    value = desk.finalize()
    value["content"]["state"][0]["citations"] = [inline("log")]
    desk.refused("unsupported_citation_kind", "commit_handoff", **value)


@pytest.mark.parametrize("op", ["prepare_handoff", "hand_off_now"])
def test_a_label_that_is_unknown_or_given_twice_is_refused(desk: Desk, op: str) -> None:
    rest = {} if op == "prepare_handoff" else {"commit": True, "disposition": "continuable"}
    ask = {"scope_id": SCOPE, "objective": "x", "evidence": [LABELLED], "state": [say("x", inline("lot"))]} | rest
    assert places(desk.refused("citation_not_readable", op, **ask)) == [("state.0.citations.0", "unknown_label")]
    ask |= {"evidence": [LABELLED, LABELLED | {"content": "Another."}], "state": [say("x", inline("log"))]}
    assert places(desk.refused("invalid_request", op, **ask)) == [("evidence.1.label", "duplicate_label")]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"objective": ""}, "draft.objective"),
        ({"objective": " \n\u2003"}, "draft.objective"),
        ({"disposition": "done"}, "draft.disposition"),
        ({"disposition": None}, "draft.disposition"),
        ({"evidence": []}, "draft.evidence"),
        ({"schema": "powercontext.handoff.v1"}, "draft.schema"),
        ({"state": [{"text": " ", "citations": []}]}, "draft.state.0.text"),
    ],
)
def test_a_draft_has_exactly_its_members(desk: Desk, change: dict[str, Any], place: str) -> None:
    body = draft([say("x", desk.note())]) | change
    assert places(desk.refused("invalid_request", "finalize_handoff", scope_id=SCOPE, draft=body))[0][0] == place


def test_a_caller_may_hand_off_what_it_only_says(desk: Desk) -> None:
    answer = desk.call(
        "hand_off_now", CALLER, scope_id=SCOPE, commit=True, evidence=[LABELLED], **draft([say("x", inline("log"))])
    )
    assert answer["committed"]["status"] == "committed"
    assert desk.latest()["evidence"][0]["assurance"] == "caller_supplied"
    assert desk.latest()["recorded_by"] == {"principal_id": "caller", "identity": "asserted"}
