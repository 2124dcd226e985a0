"""Receipts, differences and exports: what receivers said, what changed, and a document that proves itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from handoff_support import CALLER, HOST, SCOPE, Desk, cite_revision, digest_of, say, sha256

from passdown.handoff.exports import verify_export
from passdown.kernel.errors import PassdownError


def exact(ref: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "exact", "handoff_ref": ref}


def take(desk: Desk, ref: dict[str, Any], verdict: str = "accepted", **members: Any) -> Any:
    who = members.pop("who", HOST)
    return desk.call("acknowledge_handoff", who, scope_id=SCOPE, target=exact(ref), verdict=verdict, **members)


# --- receipts -----------------------------------------------------------------------------------------------------


def test_a_receipt_is_seen_with_the_handoff_and_changes_no_revision(desk: Desk) -> None:
    ref = desk.commit()["handoff_ref"]
    before = {table: rows for table, rows in desk.everything().items() if table != "pd_counters"}
    assert desk.latest()["acknowledgements"] == {"accepted": 0, "declined": 0, "newest": []}
    take(desk, ref, "declined", reason="The tests fail here", who=CALLER)
    assert {table: rows for table, rows in desk.everything().items() if table != "pd_counters"} == before
    shown = desk.latest()["acknowledgements"]
    assert (shown["accepted"], shown["declined"]) == (0, 1)
    receipt = shown["newest"][0]
    assert (receipt["reason"], receipt["handoff_ref"]) == ("The tests fail here", ref)
    assert receipt["recorded_by"] == {"principal_id": "caller", "identity": "asserted"}
    listed = desk.call("list_handoff_revisions", scope_id=SCOPE)["revisions"][0]
    assert (listed["accepted"], listed["declined"]) == (0, 1)


def test_the_same_words_of_the_same_principal_are_one_receipt_and_other_words_another(desk: Desk) -> None:
    ref = desk.commit()["handoff_ref"]
    first = take(desk, ref)
    again = take(desk, ref)
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert again["acknowledgement"] == first["acknowledgement"]
    assert take(desk, ref, reason="Gladly")["replayed"] is False
    assert take(desk, ref, who=CALLER)["replayed"] is False
    assert desk.latest()["acknowledgements"]["accepted"] == 3


def test_a_receipt_of_a_prepared_handoff_is_shown_with_the_revision_that_it_becomes(desk: Desk) -> None:
    prepared = desk.finalize()
    target = {"kind": "prepared", "content_digest": prepared["content_digest"]}
    desk.call("acknowledge_handoff", scope_id=SCOPE, target=target, verdict="accepted")
    desk.ask("commit_handoff", prepared)
    shown = desk.latest()["acknowledgements"]
    assert (shown["accepted"], shown["newest"][0]["handoff_ref"]) == (1, None)
    desk.commit(objective="Another")
    assert desk.latest()["acknowledgements"]["accepted"] == 0


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"verdict": "declined"}, ("reason", "missing")),
        ({"checks": [{"claim": "state", "result": "confirmed"}]}, ("checks.0.state_index", "missing")),
        (
            {"checks": [{"claim": "state", "state_index": 1, "result": "confirmed"}]},
            ("checks.0.state_index", "no_such_statement"),
        ),
        ({"checks": [{"claim": "next_action", "result": "refuted"}]}, ("checks.0.claim", "no_such_statement")),
        ({"checks": [{"claim": "state", "state_index": 0, "result": "confirmed"}] * 2}, ("checks.1", "repeated")),
    ],
)
def test_a_receipt_that_cannot_be_meant_is_refused(desk: Desk, members: Any, place: tuple[str, str]) -> None:
    ref = desk.commit()["handoff_ref"]
    ask = {"scope_id": SCOPE, "target": exact(ref), "verdict": "accepted"} | members
    error = desk.refused("invalid_request", "acknowledge_handoff", **ask)
    assert [(item["field"], item["rule"]) for item in error.members["errors"]] == [place]


def test_a_receipt_needs_a_handoff_of_this_scope(desk: Desk) -> None:
    ref = desk.commit()["handoff_ref"]
    other = desk.commit(scope_id="scp_other")["handoff_ref"]
    ask = {"scope_id": SCOPE, "verdict": "accepted"}
    desk.refused("handoff_not_found", "acknowledge_handoff", **ask, target=exact({**ref, "revision": 2}))
    desk.refused("handoff_scope_mismatch", "acknowledge_handoff", **ask, target=exact(other))


# --- differences --------------------------------------------------------------------------------------------------


def test_statements_are_matched_by_what_they_cite_and_say(desk: Desk) -> None:
    a, b, c, d, e, f = (desk.note(text) for text in "abcdef")
    desk.commit(state=[say("Stays", a), say("Reworded", a, b), say("Recited", c), say("Goes", d), say("Last", b)])
    desk.commit(
        state=[say("Last", b), say("Stays", a), say("In other words", b, a), say("Recited", e), say("Comes", f)],
        objective="Another aim",
        next_action=say("Go on", a),
    )
    found = desk.call("diff_handoffs", scope_id=SCOPE)
    kinds = [(item["kind"], item["before_index"], item["after_index"]) for item in found["state"]]
    assert kinds == [
        ("moved", 4, 0),
        ("same", 0, 1),
        ("text_changed", 1, 2),
        ("citations_changed", 2, 3),
        ("removed", 3, None),
        ("added", None, 4),
    ]
    assert found["objective"] == {"changed": True, "before": "Keep the queue in order", "after": "Another aim"}
    assert (found["disposition"]["changed"], found["next_action"]["kind"]) == (False, "added")
    assert (found["before"]["revision"], found["after"]["revision"], found["identical"]) == (1, 2, False)


def test_omissions_are_the_same_added_or_removed(desk: Desk) -> None:
    note = desk.note()
    kept, gone, new = ({"text": text, "citation": None} for text in ("kept", "gone", "new"))
    desk.commit(state=[say("x", note)], omissions=[kept, gone])
    desk.commit(state=[say("x", note)], omissions=[new, kept])
    found = desk.call("diff_handoffs", scope_id=SCOPE)["omissions"]
    assert [(item["kind"], item["omission"]["text"]) for item in found] == [
        ("added", "new"),
        ("same", "kept"),
        ("removed", "gone"),
    ]


def test_any_two_revisions_compare_and_the_first_compares_with_nothing(desk: Desk) -> None:
    note = desk.note()
    refs = [desk.commit(state=[say(text, note)])["handoff_ref"] for text in ("one", "two", "one")]
    ends = desk.call("diff_handoffs", scope_id=SCOPE, before=refs[0], after=refs[2])
    assert (ends["identical"], ends["counts"]["same"]) == (True, 1)
    first = desk.call("diff_handoffs", scope_id=SCOPE, after=refs[0])
    assert (first["before"], first["state"][0]["kind"]) == (None, "added")
    desk.refused("handoff_not_found", "diff_handoffs", scope_id=SCOPE, before={**refs[0], "revision": 9})
    desk.refused("handoff_not_found", "diff_handoffs", scope_id="empty")
    desk.refused("handoff_scope_mismatch", "diff_handoffs", scope_id="empty", after=refs[0])


# --- exports ------------------------------------------------------------------------------------------------------


def exported(desk: Desk) -> dict[str, Any]:
    """The export of a second revision that cites a text, a JSON value, a commit and the first revision."""
    first = desk.commit()["handoff_ref"]
    state = [
        say("It stands", desk.note("原因\n"), desk.note({"b": 1, "a": [2]})),
        say("Goes on", desk.commit_fact("a" * 40, subject="s"), cite_revision(first)),
    ]
    desk.commit(state=state)
    found: dict[str, Any] = desk.call("export_handoff", scope_id=SCOPE, include_bodies=True)
    return found


def resealed(document: dict[str, Any]) -> bytes:
    """Canonical bytes of the document with a digest that fits, made without the product."""
    rest = {name: value for name, value in document.items() if name != "export_digest"}
    return bytes(rfc8785.dumps({**rest, "export_digest": digest_of(rest)}))


def test_an_export_fits_digests_that_another_implementation_makes(desk: Desk) -> None:
    document = exported(desk)
    assert resealed(document) == rfc8785.dumps(document)
    assert document["content_digest"] == digest_of(document["content"])
    text, value, _, revision = document["evidence"]
    assert text["source"]["sha256"] == sha256("原因\n".encode())
    assert value["source"]["sha256"] == sha256(b'{"a":[2],"b":1}')
    kept = desk.call("get_handoff", scope_id=SCOPE, handoff_ref=document["base"])["handoff"]
    assert revision["content_digest"] == digest_of(kept["content"])
    verdict = verify_export(resealed(document) + b"\n")
    assert (verdict.evidence, verdict.bodies, verdict.unreadable) == (4, 3, 0)


def test_a_chosen_identity_that_looks_like_a_digest_is_no_forgery(desk: Desk) -> None:
    body: dict[str, Any] = {"base": None, "changed": []}
    entries = {"source_type": "content", "source_id": "laptop@0123456789ab", "content": body}
    found = desk.call("capture_source", scope_id=SCOPE, **entries)["source"]["source_ref"]
    desk.commit(state=[say("x", {"kind": "source", "source_ref": found})])
    document = desk.call("export_handoff", scope_id=SCOPE)
    assert verify_export(rfc8785.dumps(document)).evidence == 1
    document["evidence"][0]["citation"]["source_ref"]["source_type"] = "test_report"
    document["content"]["state"][0]["citations"][0]["source_ref"]["source_type"] = "test_report"
    document["content_digest"] = digest_of(document["content"])
    assert verify_export(resealed(document)).evidence == 1


def test_without_bodies_the_digests_are_there_alone(desk: Desk) -> None:
    exported(desk)
    document = desk.call("export_handoff", scope_id=SCOPE)
    assert [item["source"]["body"] for item in document["evidence"] if item["source"]] == [None] * 3
    assert verify_export(rfc8785.dumps(document)).bodies == 0


def spoil(document: dict[str, Any], path: str, value: Any) -> None:
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    place: Any = document
    for step in way:
        place = place[step]
    place[last] = value


@pytest.mark.parametrize(
    ("path", "value", "digest", "field"),
    [
        ("content.objective", "Forged", "content_digest", None),
        ("evidence.0.source.body", "Forged", "sha256", "evidence.0.source.body"),
        ("evidence.1.source.body", {"a": [2], "b": 2}, "sha256", "evidence.1.source.body"),
        ("evidence.0.source.size", 1, "sha256", "evidence.0.source.size"),
        ("evidence.0.source.sha256", "0" * 64, "sha256", "evidence.0.source"),
        ("evidence.3.content_digest", None, None, None),
    ],
)
def test_a_document_that_was_forged_and_sealed_again_is_found_by_its_parts(
    desk: Desk, path: str, value: Any, digest: str | None, field: str | None
) -> None:
    document = exported(desk)
    spoil(document, path, value)
    if digest is None:
        assert verify_export(resealed(document)).unreadable == 1
        return
    with pytest.raises(PassdownError) as caught:
        verify_export(resealed(document))
    assert caught.value.code == "digest_mismatch"
    assert (caught.value.members["digest"], caught.value.members.get("field")) == (digest, field)


def test_evidence_is_complete_in_order_and_nothing_else(desk: Desk) -> None:
    document = exported(desk)
    evidence = document["evidence"]
    for wrong in (evidence[:-1], evidence[::-1], [*evidence, evidence[0]]):
        with pytest.raises(PassdownError) as caught:
            verify_export(resealed({**document, "evidence": wrong}))
        assert (caught.value.code, caught.value.members["digest"]) == ("digest_mismatch", "evidence")


def test_other_bytes_than_the_canonical_form_are_refused(desk: Desk) -> None:
    document = exported(desk)
    good = resealed(document)
    for data, code in (
        (json.dumps(document, indent=1).encode(), "not_canonical"),
        (good + b" ", "not_canonical"),
        (good.replace(b'"export_digest":"sha256:', b'"export_digest":"sha256:' + b"0", 1)[:-1], "malformed_json"),
        (good.replace(document["export_digest"].encode(), b"sha256:" + b"0" * 64), "digest_mismatch"),
        (b'{"schema":"passdown.handoff-export.v2"}', "unsupported_schema"),
        (b"[" * 100_000, "malformed_json"),
        (b"", "malformed_json"),
        (b'{"schema":"passdown.handoff-export.v1"}', "invalid_request"),
    ):
        with pytest.raises(PassdownError) as caught:
            verify_export(data)
        assert caught.value.code == code, data[:60]
