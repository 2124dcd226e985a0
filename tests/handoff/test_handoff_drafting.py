"""The drafting provider: it adds what cites the offered evidence, and nothing that it does changes anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from handoff_support import SCOPE, Desk, cite_revision, hostile_cases, inline, say

from passdown.app.drafting_http import provider_of
from passdown.handoff.service import HandoffService
from passdown.kernel.errors import PassdownError
from support.drafting import Provider, provider

SECONDS = 0.5
LOG = {"label": "log", "source_type": "content", "content": "The log says so.", "name": "The log"}
ASK = {"scope_id": SCOPE, "objective": "Retry once", "evidence": [LOG], "state": [say("It stands.", inline("log"))]}


@pytest.fixture
def model() -> Iterator[Provider]:
    with provider() as found:
        yield found


@pytest.fixture
def asked(desk: Desk, model: Provider) -> Desk:
    """A desk whose handlers know the provider; ``SECONDS`` are all that an answer may take."""
    environment = {
        "PASSDOWN_DRAFTING_URL": model.url,
        "PASSDOWN_DRAFTING_KEY": "s3cret",
        "PASSDOWN_DRAFTING_MODEL": "m",
    }
    drafting = provider_of(environment, seconds=SECONDS)
    application = desk.application
    application._handoff_handlers = HandoffService(
        application.store, application.clock, application.ids, drafting=drafting
    ).handlers()
    return desk


def prepare(desk: Desk, **members: Any) -> Any:
    return desk.ask("prepare_handoff", {**ASK, "propose": True, **members})


def outcome(answer: Any) -> tuple[str, str | None, int, int]:
    told = answer["drafting"]
    return told["status"], told["reason"], told["accepted"], told["refused"]


def test_what_cites_offered_evidence_is_added_behind_what_was_given(asked: Desk, model: Provider) -> None:
    head = asked.commit()["handoff_ref"]
    model.say(
        ("The log shows it.", ["E1"]), ("Both show it.", ["E1", "E2"]), next_action={"text": "Go.", "evidence": ["E2"]}
    )
    answer = prepare(asked)
    first = answer["candidates"][0]["citation"]
    assert answer["draft"]["state"] == [
        say("It stands.", first),
        say("The log shows it.", first),
        say("Both show it.", first, cite_revision(head)),
    ]
    assert answer["draft"]["next_action"] == say("Go.", cite_revision(head))
    assert (answer["draft"]["objective"], outcome(answer)) == ("Retry once", ("proposed", None, 3, 0))
    assert answer["left_out"] == []
    asked.call("finalize_handoff", scope_id=SCOPE, draft=answer["draft"])


def test_it_is_told_the_words_and_labels_and_nothing_else(asked: Desk, model: Provider) -> None:
    model.say(("The log shows it.", ["E1"]))
    prepare(asked)
    assert model.offered == {
        "objective": "Retry once",
        "statements": ["It stands."],
        "next_action": None,
        "evidence": [{"id": "E1", "kind": "content", "label": "The log"}],
    }
    assert model.asked[0]["model"] == "m"
    assert model.headers[0]["authorization"] == "Bearer s3cret"
    assert "The log says so" not in json.dumps(model.asked)


@pytest.mark.parametrize(
    "proposal",
    [
        {"text": "Not offered.", "evidence": ["E9"]},
        {"text": "Half offered.", "evidence": ["E1", "E9"]},
        {"text": "Nothing cited.", "evidence": []},
        {"text": "  ", "evidence": ["E1"]},
        {"text": "x" * 4097, "evidence": ["E1"]},
        {"text": "It stands.", "evidence": ["E1"]},
        {"text": "Wrong form.", "evidence": "E1"},
        {"text": ["x"], "evidence": ["E1"]},
        {"evidence": ["E1"]},
        "The log shows it.",
    ],
    ids=repr,
)
def test_a_proposal_that_breaks_a_rule_is_refused_and_the_others_stay(
    asked: Desk, model: Provider, proposal: Any
) -> None:
    model.content = json.dumps(
        {"statements": [proposal, {"text": "Good.", "evidence": ["E1"]}], "objective": "Mine now"}
    )
    answer = prepare(asked)
    assert [item["text"] for item in answer["draft"]["state"]] == ["It stands.", "Good."]
    assert (answer["draft"]["objective"], outcome(answer)) == ("Retry once", ("proposed", None, 1, 1))


def test_a_next_action_that_was_given_is_not_replaced(asked: Desk, model: Provider) -> None:
    model.say(("Good.", ["E1"]), next_action={"text": "Mine.", "evidence": ["E1"]})
    answer = prepare(asked, next_action=say("Yours.", inline("log")))
    assert (answer["draft"]["next_action"]["text"], outcome(answer)[2:]) == ("Yours.", (1, 1))


def test_no_more_is_taken_than_a_handoff_can_hold(asked: Desk, model: Provider) -> None:
    model.say(*[(f"Number {number}.", ["E1"]) for number in range(70)])
    answer = prepare(asked)
    assert (len(answer["draft"]["state"]), outcome(answer)[2:]) == (64, (63, 7))


def test_a_draft_with_proposals_can_be_finalised_where_the_one_without_could(asked: Desk, model: Provider) -> None:
    """Catches: proposals that together are larger than a handoff may be."""
    model.say(*[(f"{number} " + "\u754c" * 1_000, ["E1"]) for number in range(20)])
    answer = prepare(asked)
    status, _, accepted, refused = outcome(answer)
    assert (status, accepted + refused, accepted < 11) == ("proposed", 20, True)
    asked.call("finalize_handoff", scope_id=SCOPE, draft=answer["draft"])


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("busy", "http_status"),
        ("broken", "http_status"),
        ("moved", "http_status"),
        ("huge", "too_large"),
        ("not json", "malformed"),
        ("other json", "malformed"),
        ("garbage", "unreachable"),
        ("cut", "unreachable"),
        ("silent", "timeout"),
        ("drip", "timeout"),
    ],
)
def test_a_provider_that_fails_leaves_exactly_the_draft_that_is_made_without_it(
    asked: Desk, model: Provider, mode: str, reason: str
) -> None:
    plain = asked.ask("prepare_handoff", ASK)
    model.mode = mode
    model.say(("The log shows it.", ["E1"]))
    answer = prepare(asked)
    assert outcome(answer) == ("failed", reason, 0, 0)
    assert (answer["draft"], answer["left_out"]) == (plain["draft"], plain["left_out"])
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("I would rather not.", "malformed"),
        ('{"statements": [], "statements": []}', "malformed"),
        ('{"statements": {}}', "malformed"),
        ("{}", "nothing_usable"),
        ('{"statements": [{"text": "x", "evidence": ["E7"]}]}', "nothing_usable"),
    ],
)
def test_an_answer_without_anything_usable_leaves_the_draft_too(
    asked: Desk, model: Provider, content: str, reason: str
) -> None:
    model.content = content
    answer = prepare(asked)
    assert outcome(answer)[:2] == ("failed", reason)
    assert [item["text"] for item in answer["draft"]["state"]] == ["It stands."]


def test_an_answer_in_one_code_fence_is_read(asked: Desk, model: Provider) -> None:
    model.say(("Good.", ["E1"]))
    model.content = f"```json\n{model.content}\n```\n"
    assert outcome(prepare(asked)) == ("proposed", None, 1, 0)


def test_hostile_words_are_kept_as_text_and_end_no_form(asked: Desk, model: Provider) -> None:
    for _, text in hostile_cases():
        model.say((text, ["E1"]))
        answer = prepare(asked)
        if answer["drafting"]["status"] == "proposed":
            asked.call("finalize_handoff", scope_id=SCOPE, draft=answer["draft"])


def test_nobody_is_asked_who_was_not_named_or_not_wanted(desk: Desk, asked: Desk, model: Provider) -> None:
    assert outcome(asked.ask("prepare_handoff", ASK)) == ("not_asked", None, 0, 0)
    assert model.asked == []


def test_without_a_provider_it_is_off(desk: Desk) -> None:
    assert outcome(prepare(desk)) == ("off", None, 0, 0)
    assert provider_of({}) is None


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://example.com/v1", "not_loopback"),
        ("https://user:secret@example.com", "credentials"),
        ("ftp://127.0.0.1", "not_an_address"),
        ("127.0.0.1:80", "not_an_address"),
        ("http://127.0.0.1:99999", "not_an_address"),
    ],
)
def test_an_address_that_may_not_be_used_is_refused_without_repeating_it(url: str, rule: str) -> None:
    with pytest.raises(PassdownError) as caught:
        provider_of({"PASSDOWN_DRAFTING_URL": url})
    assert (caught.value.code, caught.value.members["rule"]) == ("invalid_request", rule)
    assert "secret" not in repr(caught.value.problem())


def test_nothing_listens_there(desk: Desk, tmp_path: Path) -> None:
    with provider() as gone:
        url = gone.url
    asking = provider_of({"PASSDOWN_DRAFTING_URL": url}, seconds=SECONDS)
    assert asking is not None
    application = desk.application
    application._handoff_handlers = HandoffService(
        application.store, application.clock, application.ids, drafting=asking
    ).handlers()
    assert outcome(prepare(desk))[:2] == ("failed", "unreachable")
