"""``send``, ``receive`` and ``recover``: documents that change hands, checked by digest, and never orders."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from cli_support import World, numbers
from git_support import Repo


@pytest.fixture
def repo(world: World) -> Repo:
    return world.bound(commits=2)


def sent(world: World, repo: Repo, *options: str) -> bytes:
    return world.ok(repo.path, "handoff", "send", *options).out.encode()


def test_what_is_sent_is_a_prepared_handoff_with_its_own_digest_and_no_revision(world: World, repo: Repo) -> None:
    document = json.loads(sent(world, repo, "--state", "It stands", "--next", "Go on"))
    assert document["schema"] == "powercontext.prepared-handoff.v1"
    digest = "sha256:" + hashlib.sha256(rfc8785.dumps(document["content"])).hexdigest()
    assert document["content_digest"] == digest
    assert document["base"] is None
    assert numbers(world.data)["pd_handoff_revisions"] == 0


def test_what_is_received_is_shown_as_history_and_writes_nothing(world: World, repo: Repo) -> None:
    document = sent(world, repo, "--state", "It stands", "--next", "Go on")
    before = numbers(world.data)
    answer = world.ok(repo.path, "handoff", "receive", "-", stdin=document)
    assert answer.out.startswith("History, not an order: prepared handoff sha256:")
    assert "not committed" in answer.out.splitlines()[0]
    assert "  → Go on [" in answer.out
    assert numbers(world.data) == before
    shown = world.ok(repo.path, "handoff", "receive", "-", "--json", stdin=document).json["continue"]
    assert (shown["trust"], shown["selection"]) == ("untrusted_history", "prepared")
    assert shown["content"] == json.loads(document)["content"]


def test_a_changed_document_is_refused_by_its_digest(world: World, repo: Repo) -> None:
    document = sent(world, repo, "--state", "Honest").replace(b"Honest", b"Forged")
    world.refused("prepared_digest_mismatch", 2, repo.path, "handoff", "receive", "-", stdin=document)
    world.refused("prepared_digest_mismatch", 2, repo.path, "handoff", "receive", "-", "--commit", stdin=document)
    assert numbers(world.data)["pd_handoff_revisions"] == 0


def test_receiving_can_commit_and_accept_in_one_step(world: World, repo: Repo) -> None:
    document = sent(world, repo, "--state", "It stands")
    done = world.ok(repo.path, "handoff", "receive", "-", "--commit", "--accept", "--json", stdin=document).json
    assert (done["committed"]["status"], done["committed"]["handoff_ref"]["revision"]) == ("committed", 1)
    assert done["committed"]["content_digest"] == json.loads(document)["content_digest"]
    shown = world.ok(repo.path, "continue", "--json").json
    assert (shown["acknowledgements"]["accepted"], shown["acknowledgements"]["declined"]) == (1, 0)


def test_a_declined_document_leaves_a_receipt_and_no_revision(world: World, repo: Repo) -> None:
    document = sent(world, repo, "--state", "It stands")
    done = world.ok(
        repo.path, "handoff", "receive", "-", "--decline", "--reason", "Not mine", "--json", stdin=document
    ).json  # fmt: skip
    told = done["acknowledged"]["acknowledgement"]
    assert (told["verdict"], told["reason"], told["handoff_ref"]) == ("declined", "Not mine", None)
    assert told["content_digest"] == json.loads(document)["content_digest"]
    assert numbers(world.data)["pd_handoff_revisions"] == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--accept", "--decline", "--reason", "x"],
        ["--decline"],
        ["--decline", "--commit", "--reason", "x"],
        ["--reason", "x"],
    ],
)
def test_contradictions_are_usage_errors(world: World, repo: Repo, options: list[str]) -> None:
    answer = world.run(repo.path, "handoff", "receive", "-", *options, stdin=sent(world, repo))
    assert (answer.code, answer.out) == (2, "")


def test_other_documents_are_told_where_they_go(world: World, repo: Repo) -> None:
    answer = world.refused("invalid_request", 2, repo.path, "handoff", "receive", "-", stdin=b'{"state": ["x"]}')
    assert "--from" in answer.err


def test_a_document_is_lost_without_losing_anything(world: World, repo: Repo) -> None:
    """Catches a send that moves the head, or evidence that goes with the document."""
    sent(world, repo, "--state", "Lost on the way")
    world.ok(repo.path, "handoff", "--state", "Said again")
    found = world.ok(repo.path, "continue", "--json").json
    assert found["selected_revision"]["revision"] == 1
    assert all(item["readable"] for item in found["evidence"])


# --- recover ----------------------------------------------------------------------------------------------------------


def recovered(world: World, repo: Repo, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = world.ok(repo.path, "handoff", "recover", "--json", *options).json
    return found


def test_a_draft_is_recovered_from_what_the_dead_author_left(world: World, repo: Repo) -> None:
    world.ok(repo.path, "handoff", "--blocked", "No key", "--next", "Ask for it", "--objective", "Retry once")
    new = repo.commit("Found the key", {"key.txt": "k"})
    repo.write("half.txt", "half\n")
    answer = recovered(world, repo)
    draft = answer["draft"]
    assert (draft["origin"], draft["objective"], draft["disposition"]) == ("recovered", "Retry once", "blocked")
    assert [item["text"] for item in draft["state"]] == [
        "No key",
        "Committed: Found the key",
        "Uncommitted paths (1): half.txt",
    ]
    assert draft["state"][1]["citations"][0]["source_ref"]["source_id"].startswith(new)
    assert draft["next_action"]["text"] == "Ask for it"
    assert [item["citation"] and item["citation"]["artifact_ref"]["revision"] for item in draft["omissions"]] == [
        None, 1, 1,
    ]  # fmt: skip
    assert answer["base"]["revision"] == 1


def test_recovering_commits_nothing_and_a_person_commits_it(world: World, repo: Repo) -> None:
    world.ok(repo.path, "handoff", "--state", "It stands")
    repo.write("half.txt", "half\n")
    path = world.root / "draft.json"
    screen = world.ok(repo.path, "handoff", "recover", "--output", str(path))
    assert numbers(world.data)["pd_handoff_revisions"] == 1
    assert f"passdown handoff --from {path}" in screen.err.replace("\n", " ").replace("  ", " ")
    assert "its author did not write it" in screen.out.splitlines()[0]
    world.ok(repo.path, "handoff", "--from", str(path))
    found = world.ok(repo.path, "continue", "--json").json
    assert found["selected_revision"]["revision"] == 2
    assert "whoever did this work did not write this handoff" in found["content"]["omissions"][0]["text"]


def test_a_draft_of_an_older_head_is_refused(world: World, repo: Repo) -> None:
    """Catches a recovery that overwrites what the author, not dead after all, handed off meanwhile."""
    draft = json.dumps(recovered(world, repo)).encode()
    world.ok(repo.path, "handoff", "--state", "I was not dead")
    world.refused("handoff_conflict", 3, repo.path, "handoff", "--from", "-", stdin=draft)


def test_where_nothing_was_handed_off_the_title_is_the_objective(world: World, repo: Repo) -> None:
    assert recovered(world, repo)["draft"]["objective"] == "Main line"
    assert recovered(world, repo, "--objective", "Another")["draft"]["objective"] == "Another"
