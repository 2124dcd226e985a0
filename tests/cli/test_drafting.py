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


def test_a_wrong_setting_hinders_no_handoff(world: World) -> None:
    """Catches: a provider that is set up when the store is opened, and so takes every operation with it."""
    repo = world.bound()
    wrong = {"PASSDOWN_DRAFTING_URL": "http://user:s3cret@example.com"}
    answer = world.ok(repo.path, "handoff", "--draft", "--yes", **wrong)
    assert "Nothing was proposed: misconfigured" in answer.err
    assert "s3cret" not in answer.err
    world.ok(repo.path, "continue", **wrong)


def test_what_is_proposed_is_not_committed_where_nobody_reads_it(world: World, model: Provider) -> None:
    repo = world.bound()
    assert world.run(repo.path, "handoff", "--draft", PASSDOWN_DRAFTING_URL=model.url).code == 2
    assert model.asked == []
