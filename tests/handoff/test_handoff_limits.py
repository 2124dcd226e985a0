"""Every limit of the core: at it everything works, one past it the refusal is typed and nothing is stored."""

from __future__ import annotations

from typing import Any

import pytest
import rfc8785
from handoff_support import HOST, SCOPE, Desk, cite, digest_of, draft, inline, places, prepared, say

from passdown.handoff.operations import FinalizeHandoffAsk
from passdown.handoff.service import HandoffService
from passdown.handoff.source_operations import CaptureSourceAsk
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import validate

OID = "1f" * 20
BYTES = 32_768
SOURCE = 262_144


def of_length(body: dict[str, Any], size: int) -> dict[str, Any]:
    """The content with statements lengthened until its canonical form has exactly ``size`` bytes."""
    missing = size - len(rfc8785.dumps(body))
    for statement in body["state"]:
        room = min(missing, 4_096 - len(statement["text"]))
        statement["text"] += "x" * room
        missing -= room
    assert missing == 0
    assert len(rfc8785.dumps(body)) == size
    return body


@pytest.mark.parametrize("char", ["o", "é"])
def test_an_objective_has_at_most_8192_characters(desk: Desk, char: str) -> None:
    assert desk.finalize(objective=char * 8_192)["content"]["objective"] == char * 8_192
    note = desk.note()
    error = desk.refused(
        "invalid_request", "finalize_handoff", scope_id=SCOPE, draft=draft([say("x", note)], objective=char * 8_193)
    )
    assert places(error) == [("draft.objective", "too_long")]


def test_characters_are_counted_after_composition(desk: Desk) -> None:
    """Catches a limit on what was sent instead of what is stored."""
    assert desk.finalize(objective="e\u0301" * 8_192)["content"]["objective"] == "é" * 8_192
    note = desk.note()
    ask = {"scope_id": SCOPE, "draft": draft([say("x", note)], objective="e\u0301" * 8_193)}
    desk.refused("invalid_request", "finalize_handoff", **ask)


@pytest.mark.parametrize("part", ["state", "next_action", "omissions"])
def test_a_statement_has_at_most_4096_characters(desk: Desk, part: str) -> None:
    note = desk.note()
    for length, fits in ((4_096, True), (4_097, False)):
        texts = dict.fromkeys(("state", "next_action", "omissions"), "x") | {part: "日" * length}
        body = draft(
            [say(texts["state"], note)],
            next_action=say(texts["next_action"], note),
            omissions=[{"text": texts["omissions"], "citation": note}],
        )
        if fits:
            assert desk.call("finalize_handoff", scope_id=SCOPE, draft=body)["content"]["state"] == body["state"]
        else:
            error = desk.refused("invalid_request", "finalize_handoff", scope_id=SCOPE, draft=body)
            assert places(error)[0][1] == "too_long"


def test_a_handoff_has_one_to_64_statements(desk: Desk) -> None:
    note = desk.note()
    for count in (1, 64):
        body = draft([say(f"Statement {number}.", note) for number in range(count)])
        assert len(desk.call("finalize_handoff", scope_id=SCOPE, draft=body)["content"]["state"]) == count
    for count, rule in ((0, "too_short"), (65, "too_long")):
        body = draft([say("x", note)] * count)
        error = desk.refused("invalid_request", "finalize_handoff", scope_id=SCOPE, draft=body)
        assert places(error) == [("draft.state", rule)]


def test_a_statement_has_one_to_32_citations(desk: Desk) -> None:
    notes = [desk.note(f"Note {number}.", source_id=f"n{number}") for number in range(33)]
    for count in (1, 32):
        found = desk.finalize(state=[say("x", *notes[:count])])
        assert len(found["content"]["state"][0]["citations"]) == count
    for count, rule in ((0, "too_short"), (33, "too_long")):
        body = draft([say("x", *notes[:count])])
        error = desk.refused("invalid_request", "finalize_handoff", scope_id=SCOPE, draft=body)
        assert places(error)[0] == ("draft.state.0.citations", rule)


def test_a_next_action_needs_a_citation_too(desk: Desk) -> None:
    body = draft([say("x", desk.note())], next_action=say("Go on."))
    error = desk.refused("invalid_request", "finalize_handoff", scope_id=SCOPE, draft=body)
    assert places(error) == [("draft.next_action.citations", "too_short")]


def test_a_handoff_has_at_most_64_omissions(desk: Desk) -> None:
    note = desk.note()
    many = [{"text": f"Omitted {number}.", "citation": None} for number in range(65)]
    body = draft([say("x", note)], omissions=many[:64])
    assert len(desk.call("finalize_handoff", scope_id=SCOPE, draft=body)["content"]["omissions"]) == 64
    error = desk.refused(
        "invalid_request", "finalize_handoff", scope_id=SCOPE, draft=draft([say("x", note)], omissions=many)
    )
    assert places(error) == [("draft.omissions", "too_long")]


def test_content_has_at_most_32768_canonical_bytes_by_every_way_in(desk: Desk) -> None:
    """Catches a size taken from something else than the canonical form, and a way in that is not measured."""
    note = desk.note()
    empty = {"schema": "powercontext.handoff.v1"} | draft([say("日", note) for _ in range(16)])
    fits = of_length(empty, BYTES)
    found = desk.call("finalize_handoff", scope_id=SCOPE, draft={k: v for k, v in fits.items() if k != "schema"})
    assert (found["content"], found["content_digest"]) == (fits, digest_of(fits))
    assert desk.ask("commit_handoff", found)["status"] == "committed"
    fits["state"][-1]["text"] += "x"
    over = {k: v for k, v in fits.items() if k != "schema"}
    base = desk.latest()["selected_revision"]
    for error in (
        desk.refused("handoff_too_large", "finalize_handoff", scope_id=SCOPE, draft=over),
        desk.refused("handoff_too_large", "commit_handoff", **prepared(fits, base)),
        desk.refused("handoff_too_large", "hand_off_now", scope_id=SCOPE, commit=True, **over),
        desk.refused("handoff_too_large", "hand_off_now", scope_id=SCOPE, commit=False, **over),
    ):
        assert (error.members["limit"], error.members["actual"]) == (BYTES, BYTES + 1)


def test_the_limit_of_content_can_be_raised_to_262144_bytes_and_not_further(desk: Desk) -> None:
    def service(max_bytes: int) -> HandoffService:
        app = desk.application
        return HandoffService(app.store, app.clock, app.ids, max_bytes=max_bytes)

    for max_bytes in (0, SOURCE + 1):
        with pytest.raises(PassdownError) as caught:
            service(max_bytes)
        assert caught.value.code == "invalid_request"
    note = desk.note()
    body = of_length({"schema": "powercontext.handoff.v1"} | draft([say("x", note) for _ in range(64)]), SOURCE)
    ask = {"scope_id": SCOPE, "draft": {k: v for k, v in body.items() if k != "schema"}}
    large = service(SOURCE)
    found = large.finalize_handoff(HOST, validate(FinalizeHandoffAsk, ask))
    assert found.content_digest == digest_of(body)
    assert large.commit_handoff(HOST, found).status == "committed"
    assert desk.latest()["content_digest"] == digest_of(body)


@pytest.mark.parametrize(("char", "size"), [("x", 1), ("é", 2), ("\U0001f600", 4)])
def test_a_source_body_has_at_most_256_kib(desk: Desk, char: str, size: int) -> None:
    """Catches a limit in characters, and an ``actual`` that is not in bytes."""
    assert desk.note(char * (SOURCE // size))
    for count in (SOURCE // size + 1, SOURCE + 1):
        error = desk.refused(
            "source_too_large", "capture_source", scope_id=SCOPE, source_type="content", content=char * count
        )
        assert (error.members["limit"], error.members["actual"]) == (SOURCE, size * count)


def test_a_json_source_body_has_at_most_256_kib(desk: Desk) -> None:
    assert desk.note(["x" * (SOURCE - 4)])
    error = desk.refused(
        "source_too_large", "capture_source", scope_id=SCOPE, source_type="content", content=["x" * (SOURCE - 3)]
    )
    assert error.members["actual"] == SOURCE + 1


def test_a_large_source_inside_a_handoff_is_named_by_its_place(desk: Desk) -> None:
    evidence = [
        {"label": "small", "source_type": "content", "content": "x"},
        {"label": "large", "source_type": "content", "content": "x" * (SOURCE + 1)},
    ]
    body = draft([say("x", inline("small"))])
    error = desk.refused("source_too_large", "hand_off_now", scope_id=SCOPE, commit=True, evidence=evidence, **body)
    assert error.members["field"] == "evidence.1"


@pytest.mark.parametrize("char", ["s", "é", "\U0001f600"])
def test_a_scope_has_at_most_256_characters(desk: Desk, char: str) -> None:
    scope_id = char * 256
    desk.commit(scope_id=scope_id)
    assert desk.numbers(scope_id) == [1]
    assert places(desk.refused("invalid_request", "list_sources", scope_id=char * 257)) == [("scope_id", "too_long")]


@pytest.mark.parametrize("char", ["s", "\U0001f600"])
def test_a_source_id_has_at_most_512_characters(desk: Desk, char: str) -> None:
    citation = desk.note(source_id=char * 512)
    desk.commit(state=[say("x", citation)])
    assert desk.latest()["evidence"][0]["readable"]
    error = desk.refused(
        "invalid_request", "capture_source", scope_id=SCOPE, source_type="content", source_id=char * 513, content="x"
    )
    assert places(error) == [("source_id", "too_long")]


@pytest.mark.parametrize(
    ("member", "limit"),
    [("source_type", 64), ("source_id", 512)],
)
def test_a_reference_to_a_source_has_the_same_limits(desk: Desk, member: str, limit: int) -> None:
    ref = {"source_type": "content", "source_id": "x"}
    desk.refused("source_not_found", "get_source", scope_id=SCOPE, source_ref=ref | {member: "t" * limit})
    error = desk.refused("invalid_request", "get_source", scope_id=SCOPE, source_ref=ref | {member: "t" * (limit + 1)})
    assert places(error) == [(f"source_ref.{member}", "too_long")]


@pytest.mark.parametrize(("member", "limit"), [("artifact_id", 128), ("family", 64)])
def test_a_reference_to_a_revision_has_limits(desk: Desk, member: str, limit: int) -> None:
    ref = {"family": "handoff", "artifact_id": "hnd_1", "revision": 2**53 - 1}
    desk.refused("handoff_not_found", "get_handoff", scope_id=SCOPE, handoff_ref=ref | {member: "t" * limit})
    error = desk.refused(
        "invalid_request", "get_handoff", scope_id=SCOPE, handoff_ref=ref | {member: "t" * (limit + 1)}
    )
    assert places(error) == [(f"handoff_ref.{member}", "too_long")]


@pytest.mark.parametrize(("member", "limit"), [("name", 256), ("description", 2_000)])
def test_a_source_has_a_short_name_and_description(desk: Desk, member: str, limit: int) -> None:
    citation = desk.note(**{member: "日" * limit})
    source = desk.call("get_source", scope_id=SCOPE, source_ref=citation["source_ref"])["source"]
    assert source[member] == "日" * limit
    ask = {"scope_id": SCOPE, "source_type": "content", "content": "y", member: "日" * (limit + 1)}
    assert places(desk.refused("invalid_request", "capture_source", **ask)) == [(member, "too_long")]


def commit_with(paths: int) -> dict[str, Any]:
    return {"oid": OID, "paths": [{"path": f"p{n}", "added": n, "deleted": None} for n in range(paths)]}


def worktree_with(entries: int) -> dict[str, Any]:
    entry = {"status": "untracked", "staged": False, "size": None, "sha256": None}
    return {
        "head": None,
        "entries": [{"path": f"p{n}"} | entry for n in range(entries)],
        "omitted_paths": 0,
        "omitted_bytes": 0,
    }


@pytest.mark.parametrize(
    ("source_type", "make", "limit", "place"),
    [
        ("git_commit", commit_with, 500, "descriptor.paths"),
        ("worktree", worktree_with, 2_000, "descriptor.entries"),
        ("git_commit", lambda count: {"oid": OID, "remote_refs": ["r"] * count}, 100, "descriptor.remote_refs"),
        ("git_commit", lambda count: {"oid": OID, "parents": [OID] * count}, 256, "descriptor.parents"),
    ],
)
def test_a_descriptor_lists_a_bounded_number(desk: Desk, source_type: str, make: Any, limit: int, place: str) -> None:
    ask = {"scope_id": SCOPE, "source_type": source_type}
    found = desk.call("capture_source", **ask, descriptor=make(limit))
    assert len(found["source"]["descriptor"][place.split(".")[1]]) == limit
    error = desk.refused("invalid_request", "capture_source", **ask, descriptor=make(limit + 1))
    assert places(error) == [(place, "too_long")]


def test_a_request_offers_at_most_256_pieces_of_evidence_with_labels_of_128_characters(desk: Desk) -> None:
    def evidence(count: int) -> list[dict[str, Any]]:
        return [
            {"label": f"{number}".rjust(128, "l"), "source_type": "content", "content": f"Note {number}."}
            for number in range(count)
        ]

    body = draft([say("x", inline("0".rjust(128, "l")))])
    many = evidence(257)
    error = desk.refused("invalid_request", "hand_off_now", scope_id=SCOPE, commit=True, evidence=many, **body)
    assert places(error) == [("evidence", "too_long")]
    long = [many[0] | {"label": "l" * 129}]
    error = desk.refused("invalid_request", "hand_off_now", scope_id=SCOPE, commit=True, evidence=long, **body)
    assert ("evidence.0.label", "too_long") in places(error)
    answer = desk.call("hand_off_now", scope_id=SCOPE, commit=True, evidence=evidence(256), **body)
    assert len(answer["captured"]) == 256


@pytest.mark.parametrize("op", ["list_sources", "list_handoff_revisions"])
def test_a_page_holds_one_to_100(desk: Desk, op: str) -> None:
    for limit in (1, 100):
        assert desk.call(op, scope_id=SCOPE, limit=limit)["next_cursor"] is None
    for limit in (0, 101, -1, True, "5"):
        assert places(desk.refused("invalid_request", op, scope_id=SCOPE, limit=limit))[0][0] == "limit"
    desk.refused("invalid_cursor", op, scope_id=SCOPE, cursor="A" * 512)
    assert places(desk.refused("invalid_request", op, scope_id=SCOPE, cursor="A" * 513))[0][0] == "cursor"


def test_a_refusal_lists_at_most_20_places_and_counts_them_all(desk: Desk) -> None:
    missing = [cite({"source_type": "content", "source_id": f"missing {number}"}) for number in range(31)]
    body = draft([say("x", *missing)])
    error = desk.refused("citation_not_readable", "finalize_handoff", scope_id=SCOPE, draft=body)
    assert (len(error.members["errors"]), error.members["error_count"]) == (20, 31)


def test_no_refusal_repeats_what_the_caller_wrote(desk: Desk) -> None:
    """Catches input in a sentence or in a member of a problem."""
    mark = "Zq8Marker"
    note = desk.note()
    gone = cite({"source_type": "content", "source_id": mark})
    asks: list[tuple[str, dict[str, Any]]] = [
        ("capture_source", {"scope_id": SCOPE, "source_type": mark, "content": "x"}),
        ("capture_source", {"scope_id": SCOPE, "source_type": "content", "content": "x", "name": mark * 40}),
        ("capture_source", {"scope_id": SCOPE, "source_type": "content", "content": {mark: [1.5, mark]}}),
        ("capture_source", {"scope_id": SCOPE, "source_type": "content", "content": mark * 40_000}),
        ("capture_source", {"scope_id": SCOPE, "source_type": "file", "descriptor": {f"{mark} x": mark}}),
        ("get_source", {"scope_id": SCOPE, "source_ref": gone["source_ref"]}),
        ("finalize_handoff", {"scope_id": SCOPE, "draft": draft([say(mark, gone)])}),
        ("finalize_handoff", {"scope_id": SCOPE, "draft": draft([say(mark, {"kind": mark})])}),
        ("finalize_handoff", {"scope_id": SCOPE, "draft": draft([say(mark, inline(mark))])}),
        ("finalize_handoff", {"scope_id": SCOPE, "draft": draft([say(mark, note)], disposition=mark)}),
        ("prepare_handoff", {"scope_id": SCOPE, "objective": mark, "evidence": [gone]}),
        ("hand_off_now", {"scope_id": SCOPE, "commit": True, **draft([say(mark, gone)])}),
        ("get_handoff", {"scope_id": mark}),
        ("list_sources", {"scope_id": SCOPE, "cursor": mark}),
        ("continue_handoff", {"scope_id": mark, "target": {"kind": mark}}),
    ]
    for op, members in asks:
        with pytest.raises(PassdownError) as caught:
            desk.ask(op, members)
        told = f"{caught.value} {caught.value.problem('id')}"
        assert mark not in told, (op, caught.value.code)


def test_a_lone_surrogate_never_gets_in(desk: Desk) -> None:
    with pytest.raises(PassdownError):
        validate(CaptureSourceAsk, {"scope_id": SCOPE, "source_type": "content", "content": "a\ud800"})
    assert desk.rows("SELECT COUNT(*) FROM pd_sources") == [(0,)]
