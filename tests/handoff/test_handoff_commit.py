"""Committing: one linear history, one revision per base, and answers that survive being lost."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from handoff_support import (
    HOST,
    SCOPE,
    TOKEN,
    Desk,
    cite,
    cite_revision,
    content,
    digest_of,
    draft,
    inline,
    places,
    prepared,
    say,
)

OID = "1f" * 20


def test_revisions_count_from_one_without_a_gap_and_keep_one_artifact(desk: Desk) -> None:
    answers = [desk.commit(objective=f"Objective {number}") for number in range(1, 5)]
    refs = [answer["handoff_ref"] for answer in answers]
    assert [ref["revision"] for ref in refs] == [1, 2, 3, 4]
    assert len({ref["artifact_id"] for ref in refs}) == 1
    assert refs[0]["artifact_id"].startswith("hnd_")
    assert {ref["family"] for ref in refs} == {"handoff"}
    assert all(answer["status"] == "committed" and not answer["replayed"] for answer in answers)
    assert desk.commit(scope_id="else")["handoff_ref"]["artifact_id"] != refs[0]["artifact_id"]


def test_a_committed_revision_is_read_back_whole(desk: Desk) -> None:
    first = desk.finalize(objective="First")
    one = desk.ask("commit_handoff", first)
    second = desk.finalize(objective="Second", disposition="blocked")
    desk.clock.move(1_500_000)
    two = desk.ask("commit_handoff", second, TOKEN)
    got = desk.call("get_handoff", scope_id=SCOPE)["handoff"]
    assert (got["handoff_ref"], got["base"]) == (two["handoff_ref"], one["handoff_ref"])
    assert (got["content"], got["content_digest"]) == (second["content"], digest_of(second["content"]))
    assert got["recorded_by"] == {"principal_id": "agent-7", "identity": "authenticated"}
    assert got["recorded_at"] == "2026-05-28T20:26:41.500000Z"
    assert got["is_current"] is True
    old = desk.call("get_handoff", scope_id=SCOPE, handoff_ref=one["handoff_ref"])["handoff"]
    assert (old["content"], old["base"], old["is_current"]) == (first["content"], None, False)


def test_revisions_are_listed_newest_first_over_pages_of_any_size(desk: Desk) -> None:
    digests = [desk.commit(objective=f"Objective {number}")["content_digest"] for number in range(5)]
    for limit in (1, 2, 4, 5, 6):
        found: list[Any] = []
        cursor = None
        while True:
            page = desk.call("list_handoff_revisions", scope_id=SCOPE, limit=limit, cursor=cursor)
            found += page["revisions"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert [item["handoff_ref"]["revision"] for item in found] == [5, 4, 3, 2, 1]
        assert [item["content_digest"] for item in found] == digests[::-1]
        assert [item["objective"] for item in found] == [f"Objective {number}" for number in (4, 3, 2, 1, 0)]


def test_a_stale_base_is_a_conflict_that_names_the_current_revision(desk: Desk) -> None:
    stale = desk.finalize(objective="Mine")
    current = desk.commit(objective="Theirs")["handoff_ref"]
    assert desk.refused("handoff_conflict", "commit_handoff", **stale).members["current"] == current
    stale = desk.finalize(objective="Mine again")
    current = desk.commit(objective="Theirs again")["handoff_ref"]
    assert desk.refused("handoff_conflict", "commit_handoff", **stale).members["current"] == current
    assert desk.numbers() == [2, 1]


def test_a_commit_whose_answer_was_lost_finds_its_revision_after_three_more(desk: Desk) -> None:
    """Catches a retry that conflicts with itself, or appends a second time."""
    mine = desk.finalize(objective="Mine")
    first = desk.ask("commit_handoff", mine)
    for number in range(3):
        desk.commit(objective=f"Later {number}")
    before = desk.everything()
    again = desk.ask("commit_handoff", mine, TOKEN)
    assert again == first | {"replayed": True}
    assert desk.everything() == before


def test_content_equal_to_its_base_is_unchanged_even_if_the_head_has_moved(desk: Desk) -> None:
    """Catches a comparison with the head instead of the base."""
    desk.commit(objective="One")
    two = desk.finalize(objective="Two")
    base = desk.ask("commit_handoff", two)["handoff_ref"]
    same = two | {"base": base}
    before = desk.everything()
    answer = desk.ask("commit_handoff", same)
    assert (answer["status"], answer["handoff_ref"], answer["replayed"]) == ("unchanged", base, False)
    assert desk.everything() == before
    desk.commit(objective="Three")
    desk.commit(objective="Four")
    before = desk.everything()
    assert desk.ask("commit_handoff", same) == answer
    assert desk.everything() == before


def test_content_of_an_older_revision_may_come_back_as_a_new_one(desk: Desk) -> None:
    """Catches deduplication over the whole history: only the base counts."""
    desk.commit(objective="One")
    desk.commit(objective="Two")
    answer = desk.commit(objective="One")
    assert (answer["status"], answer["replayed"], answer["handoff_ref"]["revision"]) == ("committed", False, 3)


def test_a_base_that_never_was_is_a_conflict(desk: Desk) -> None:
    body = content([say("x", desk.note())])
    never = {"family": "handoff", "artifact_id": "hnd_never", "revision": 1}
    assert desk.refused("handoff_conflict", "commit_handoff", **prepared(body, never)).members["current"] is None
    head = desk.commit()["handoff_ref"]
    foreign = desk.commit(scope_id="else")["handoff_ref"]
    for base in (never, foreign, head | {"revision": 2}, head | {"revision": 2**53 - 1}):
        error = desk.refused("handoff_conflict", "commit_handoff", **prepared(body, base))
        assert error.members["current"] == head


def test_a_base_of_another_family_is_refused(desk: Desk) -> None:
    """Catches a base of which only the id is compared."""
    head = desk.commit()["handoff_ref"]
    body = content([say("x", desk.note())], objective="Next")
    error = desk.refused("invalid_request", "commit_handoff", **prepared(body, head | {"family": "report"}))
    assert places(error) == [("base.family", "not_a_handoff")]


def test_a_changed_prepared_handoff_is_refused_by_its_digest(desk: Desk) -> None:
    value = desk.finalize()
    value["content"]["objective"] += "!"
    error = desk.refused("prepared_digest_mismatch", "commit_handoff", **value)
    assert error.members["actual"] == digest_of(value["content"])
    value = desk.finalize() | {"content_digest": "sha256:" + "0" * 64}
    desk.refused("prepared_digest_mismatch", "commit_handoff", **value)


def test_a_prepared_handoff_cannot_be_committed_to_another_scope_without_its_evidence(desk: Desk) -> None:
    value = desk.finalize() | {"scope_id": "else"}
    error = desk.refused("citation_not_readable", "commit_handoff", **value)
    assert places(error) == [("content.state.0.citations.0", "not_readable")]


def test_a_prepared_handoff_from_elsewhere_commits_where_its_evidence_is(desk: Desk) -> None:
    """The transfer: a plain document, checked by its digest, on a base that both know."""
    body = content([say("It stands.", desk.note())], objective="Written elsewhere")
    answer = desk.ask("commit_handoff", prepared(body))
    assert answer["content_digest"] == digest_of(body)
    assert desk.latest()["content"] == body


def test_citations_are_checked_again_when_committing(desk: Desk) -> None:
    body = content([say("x", desk.note(), cite({"source_type": "content", "source_id": "gone"}))])
    error = desk.refused("citation_not_readable", "commit_handoff", **prepared(body))
    assert places(error) == [("content.state.0.citations.1", "not_readable")]


def test_the_database_itself_refuses_to_change_or_delete_a_revision(desk: Desk) -> None:
    desk.commit()
    for table, column in (("pd_handoff_revisions", "content"), ("pd_handoff_evidence", "kind")):
        for statement in (f"UPDATE {table} SET {column} = 1", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.DatabaseError):
                desk.rows(statement)


def test_reading_a_scope_without_a_handoff(desk: Desk) -> None:
    desk.note()
    desk.refused("handoff_not_found", "get_handoff", scope_id=SCOPE)
    assert desk.call("list_handoff_revisions", scope_id=SCOPE) == {"revisions": [], "next_cursor": None}


def test_a_reference_of_another_scope_is_told_from_one_that_does_not_exist(desk: Desk) -> None:
    head = desk.commit()["handoff_ref"]
    foreign = desk.commit(scope_id="else")["handoff_ref"]
    for scope_id in (SCOPE, "empty"):
        error = desk.refused(
            "handoff_scope_mismatch",
            "get_handoff",
            scope_id=scope_id,
            handoff_ref=foreign if scope_id == SCOPE else head,
        )
        assert error.members["field"] == "handoff_ref"
    for ref in (head | {"revision": 2}, head | {"artifact_id": "hnd_never"}, head | {"family": "report"}):
        desk.refused("handoff_not_found", "get_handoff", scope_id=SCOPE, handoff_ref=ref)


# --- in one call ------------------------------------------------------------------------------------------------------

EVIDENCE = [
    {"label": "log", "source_type": "content", "content": "The log says so."},
    {"label": "head", "source_type": "git_commit", "descriptor": {"oid": OID, "subject": "Fix the tail"}},
    {"label": "file", "source_type": "file", "descriptor": {"path": "a.txt", "sha256": "ab" * 32, "size": 3}},
]


def now(**members: Any) -> dict[str, Any]:
    ask = {
        "scope_id": SCOPE,
        "evidence": EVIDENCE,
        "commit": True,
        **draft([say("It stands.", inline("log"), inline("head")), say("So does it.", inline("file"))]),
    }
    return ask | members


def test_handing_off_now_is_capturing_finalising_and_committing(desk: Desk) -> None:
    answer = desk.ask("hand_off_now", now())
    value = answer["prepared"]
    assert [ref["source_type"] for ref in answer["captured"]] == ["content", "git_commit", "file"]
    assert value["content"]["state"][0]["citations"] == [cite(ref) for ref in answer["captured"][:2]]
    assert value["content_digest"] == digest_of(value["content"]) == answer["committed"]["content_digest"]
    assert value["base"] is None
    assert desk.latest()["content"] == value["content"]
    by_hand = desk.call("finalize_handoff", scope_id="else", draft=draft([say("x", desk.note(scope_id="else"))]))
    assert set(by_hand) == set(value)


def test_handing_off_now_without_commit_captures_and_prepares_only(desk: Desk) -> None:
    answer = desk.ask("hand_off_now", now(commit=False))
    assert answer["committed"] is None
    assert desk.numbers() == []
    assert len(desk.call("list_sources", scope_id=SCOPE)["sources"]) == 3
    assert desk.ask("commit_handoff", answer["prepared"])["status"] == "committed"


@pytest.mark.parametrize(
    ("code", "change"),
    [
        (
            "citation_not_readable",
            {"state": [say("x", inline("log"), cite({"source_type": "file", "source_id": "x"}))]},
        ),
        ("citation_not_readable", {"next_action": say("x", inline("nothing"))}),
        ("invalid_request", {"state": [say("x")]}),
        ("invalid_request", {"evidence": [*EVIDENCE, {"label": "bad", "source_type": "file", "descriptor": {}}]}),
        ("source_too_large", {"evidence": [*EVIDENCE, EVIDENCE[0] | {"label": "big", "content": "x" * 262_145}]}),
        ("source_conflict", {"evidence": [*EVIDENCE, EVIDENCE[0] | {"label": "two", "source_id": "taken"}]}),
        ("handoff_too_large", {"state": [say("日" * 4_096, inline("log"))] * 3}),
        ("handoff_conflict", {"expected_base": {"family": "handoff", "artifact_id": "hnd_x", "revision": 1}}),
    ],
)
@pytest.mark.parametrize("commit", [True, False])
def test_handing_off_now_stores_all_or_nothing(desk: Desk, code: str, change: dict[str, Any], commit: bool) -> None:
    """Catches sources that stay behind when a later step refuses; ``refused`` compares every row."""
    desk.note("Another text.", source_id="taken")
    desk.refused(code, "hand_off_now", **now(**change, commit=commit))


def test_a_conflict_inside_evidence_is_named_by_its_place(desk: Desk) -> None:
    desk.note("Another text.", source_id="taken")
    ask = now(evidence=[*EVIDENCE, EVIDENCE[0] | {"label": "two", "source_id": "taken"}])
    assert desk.refused("source_conflict", "hand_off_now", **ask).members["field"] == "evidence.3"
    ask = now(evidence=[*EVIDENCE, {"label": "bad", "source_type": "file", "descriptor": {"path": "a", "size": 1}}])
    error = desk.refused("invalid_request", "hand_off_now", **ask)
    assert places(error) == [("evidence.3.descriptor.sha256", "missing")]


def test_an_expected_base_refuses_when_somebody_committed_in_between(desk: Desk) -> None:
    base = desk.commit(objective="One")["handoff_ref"]
    current = desk.commit(objective="Two")["handoff_ref"]
    error = desk.refused("handoff_conflict", "hand_off_now", **now(expected_base=base))
    assert error.members["current"] == current
    error = desk.refused("handoff_conflict", "hand_off_now", **now(expected_base=base, commit=False))
    assert error.members["current"] == current
    assert desk.ask("hand_off_now", now(expected_base=current))["committed"]["handoff_ref"]["revision"] == 3


@pytest.mark.parametrize("later", [0, 3])
def test_handing_off_again_after_a_lost_answer_finds_the_first_revision(desk: Desk, later: int) -> None:
    """Catches a check of the base that comes before the look for the own revision."""
    base = desk.commit(objective="One")["handoff_ref"]
    ask = now(expected_base=base)
    first = desk.ask("hand_off_now", ask)
    for number in range(later):
        desk.commit(objective=f"Later {number}")
    before = desk.everything()
    again = desk.ask("hand_off_now", ask)
    assert again["committed"] == first["committed"] | {"replayed": True}
    assert again["prepared"] == first["prepared"]
    assert desk.everything() == before


def test_handing_off_the_same_again_without_a_base_is_unchanged(desk: Desk) -> None:
    first = desk.ask("hand_off_now", now())["committed"]
    before = desk.everything()
    again = desk.ask("hand_off_now", now())["committed"]
    assert (again["status"], again["handoff_ref"]) == ("unchanged", first["handoff_ref"])
    assert desk.everything() == before


@pytest.mark.parametrize(
    ("who", "evidence", "unproved"),
    [
        (HOST, "head", False),
        (HOST, "log", True),
        (TOKEN, "head", True),
        (TOKEN, "log", True),
    ],
)
def test_complete_on_words_alone_is_unproved(desk: Desk, who: Any, evidence: str, unproved: bool) -> None:
    state = [say("Done.", inline(evidence))]
    for disposition, expected in (("complete", unproved), ("continuable", False), ("blocked", False)):
        answer = desk.ask("hand_off_now", now(state=state, disposition=disposition), who)
        assert answer["unproved"] is expected
        assert desk.latest()["unproved"] is expected


def test_an_omission_a_next_action_or_an_earlier_handoff_proves_nothing(desk: Desk) -> None:
    """Catches evidence that is counted although no statement of the state rests on it."""
    head = desk.ask("hand_off_now", now())["committed"]["handoff_ref"]
    answer = desk.ask(
        "hand_off_now",
        now(
            disposition="complete",
            state=[say("Done.", inline("log"), cite_revision(head))],
            next_action=say("Close it.", inline("head")),
            omissions=[{"text": "Not looked into.", "citation": inline("file")}],
        ),
    )
    assert answer["unproved"] is True
    assert desk.latest()["unproved"] is True
