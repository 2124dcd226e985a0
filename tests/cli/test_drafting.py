"""``handoff --draft``: proposals are shown before they are committed; without any the handoff is the plain one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli_support import World, numbers

from support.drafting import Provider, provider


@pytest.fixture
def model() -> Iterator[Provider]:
    with provider() as found:
        yield found


def test_proposals_are_shown_counted_and_committed_with_their_evidence(world: World, model: Provider) -> None:
    repo = world.bound(commits=2)
    model.say(("The second step is there.", ["E1"]), ("Made up.", ["E99"]))
    answer = world.ok(repo.path, "handoff", "--draft", "--yes", PASSDOWN_DRAFTING_URL=model.url)
    assert "1 proposals by the drafting provider, 1 refused: read them before you commit." in answer.err
    assert "• The second step is there." in answer.err
    found = world.ok(repo.path, "continue", "--json").json["content"]
    proposed = next(item for item in found["state"] if item["text"] == "The second step is there.")
    head = repo.text("rev-parse", "HEAD")
    assert proposed["citations"][0]["source_ref"]["source_id"].startswith(head)
    assert "Made up." not in str(found)


@pytest.mark.parametrize(("settings", "why"), [({}, "no provider is set up"), ({"mode": "broken"}, "http_status")])
def test_without_proposals_it_is_the_plain_handoff(
    world: World, model: Provider, settings: dict[str, str], why: str
) -> None:
    repo = world.bound()
    model.mode = settings.get("mode", "good")
    environment = {"PASSDOWN_DRAFTING_URL": model.url} if settings else {}
    answer = world.ok(repo.path, "handoff", "--draft", "--state", "It stands", "--yes", **environment)
    assert f"Nothing was proposed: {why}" in " ".join(answer.err.split())
    assert numbers(world.data)["pd_handoff_revisions"] == 1
    assert world.ok(repo.path, "continue", "--json").json["content"]["state"][0]["text"] == "It stands"


def test_an_address_that_may_not_be_used_is_refused_before_anything_is_sent(world: World) -> None:
    repo = world.bound()
    world.refused(
        "invalid_request", 2, repo.path, "handoff", "--draft", "--yes", "--json", PASSDOWN_DRAFTING_URL="http://example.com"
    )  # fmt: skip
