"""Recovering a draft: the disk beside the last words, nothing concluded, nothing committed."""

from __future__ import annotations

from typing import Any

import pytest
from handoff_support import SCOPE, Desk, cite_revision, inline, say

LOG = {"label": "log", "source_type": "content", "content": "The disk has it."}
FOUND = say("Committed: Later", inline("log"))


def recover(desk: Desk, **members: Any) -> Any:
    return desk.call("recover_draft", scope_id=SCOPE, **{"evidence": [LOG], "state": [FOUND]} | members)


def test_the_words_of_the_head_keep_their_own_evidence_and_those_from_git_are_read_anew(desk: Desk) -> None:
    note = desk.note("Measured.")
    state = [say("Measured twice.", note), say("Committed: Earlier", note), say("Nothing is uncommitted.", note)]
    head = desk.commit(state=state, disposition="blocked", next_action=say("Go on.", note))["handoff_ref"]
    answer = recover(desk)
    draft = answer["draft"]
    assert [item["text"] for item in draft["state"]] == ["Measured twice.", "Committed: Later"]
    assert draft["state"][0] == state[0]
    assert (draft["disposition"], draft["next_action"]) == ("blocked", say("Go on.", note))
    assert (draft["origin"], answer["base"]) == ("recovered", head)
    assert [item["citation"] for item in draft["omissions"]] == [None, cite_revision(head), cite_revision(head)]


def test_a_recovered_draft_is_never_committed_by_itself_and_can_be_finalised(desk: Desk) -> None:
    desk.commit()
    answer = recover(desk)
    assert desk.numbers() == [1]
    prepared = desk.call("finalize_handoff", scope_id=SCOPE, draft=answer["draft"])
    assert prepared["base"] == answer["base"]
    assert desk.ask("commit_handoff", prepared)["handoff_ref"]["revision"] == 2


def test_without_evidence_nothing_is_written(desk: Desk) -> None:
    desk.commit()
    before = desk.everything()
    recover(desk, evidence=[], state=[])
    assert desk.everything() == before


def test_an_objective_is_never_made_up(desk: Desk) -> None:
    assert recover(desk, objective="Aim")["draft"]["objective"] == "Aim"
    error = desk.refused("invalid_request", "recover_draft", scope_id=SCOPE, evidence=[LOG], state=[FOUND])
    assert error.members["errors"] == [{"field": "objective", "rule": "missing"}]


def test_a_draft_without_any_statement_is_refused(desk: Desk) -> None:
    error = desk.refused("invalid_request", "recover_draft", scope_id=SCOPE, objective="Aim")
    assert error.members["errors"] == [{"field": "state", "rule": "missing"}]


@pytest.mark.parametrize(("found", "kept"), [(63, 1), (64, 0)])
def test_what_does_not_fit_is_counted(desk: Desk, found: int, kept: int) -> None:
    note = desk.note()
    desk.commit(state=[say(f"Word {number}", note) for number in range(3)])
    draft = recover(desk, state=[say(f"Committed: {number}", inline("log")) for number in range(found)])["draft"]
    assert len(draft["state"]) == 64
    assert [item["text"] for item in draft["state"][:kept]] == [f"Word {number}" for number in range(kept)]
    assert any(item["text"].startswith(f"{3 - kept} statements of revision 1") for item in draft["omissions"])


def test_the_most_omissions_that_may_be_given_still_fit(desk: Desk) -> None:
    note = desk.note()
    desk.commit(state=[say(f"Word {number}", note) for number in range(3)], next_action=say("Go on.", note))
    given = [{"text": f"Not seen {number}"} for number in range(60)]
    state = [say(f"Committed: {number}", inline("log")) for number in range(62)]
    assert len(recover(desk, state=state, omissions=given)["draft"]["omissions"]) == 64
    one_more = [*given, {"text": "One more"}]
    desk.refused(
        "invalid_request", "recover_draft", scope_id=SCOPE, evidence=[LOG], state=[FOUND], omissions=one_more
    )  # fmt: skip


def test_what_is_added_speaks_the_language_that_is_asked_for(desk: Desk) -> None:
    desk.commit(next_action=say("Go on.", desk.note()))
    texts = [item["text"] for item in recover(desk, locale="zh-CN")["draft"]["omissions"]]
    assert "修订 1" in texts[1]
    assert "修订 1" in texts[2]


# --- expecting to be the first ----------------------------------------------------------------------------------------

FIRST = {
    "scope_id": SCOPE,
    "objective": "Aim",
    "evidence": [LOG],
    "state": [say("It stands.", inline("log"))],
    "disposition": "continuable",
    "expect_first": True,
    "commit": True,
}


def test_who_expects_to_be_the_first_meets_a_conflict_where_somebody_was_before(desk: Desk) -> None:
    """Catches two first handoffs at once, where the later one would silently stand on the other."""
    other = desk.commit()["handoff_ref"]
    error = desk.refused("handoff_conflict", "hand_off_now", **FIRST)
    assert error.members["current"] == other
    desk.refused("handoff_conflict", "hand_off_now", **FIRST | {"commit": False})


def test_the_first_handoff_sent_again_answers_the_revision_that_it_made(desk: Desk) -> None:
    first = desk.ask("hand_off_now", FIRST)["committed"]
    desk.commit(state=[say("Later.", desk.note("Later."))])
    again = desk.ask("hand_off_now", FIRST)["committed"]
    assert (again["handoff_ref"], again["replayed"]) == (first["handoff_ref"], True)


def test_expecting_both_the_first_and_a_base_is_a_contradiction(desk: Desk) -> None:
    head = desk.commit()["handoff_ref"]
    error = desk.refused("invalid_request", "hand_off_now", **FIRST | {"expected_base": head})
    assert error.members["errors"] == [{"field": "expect_first", "rule": "contradicts_expected_base"}]
