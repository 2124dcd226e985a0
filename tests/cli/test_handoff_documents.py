"""``handoff --from`` and ``--to-file``: a handoff as a document; what it says is read here, or said, never assumed."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cli_support import World, numbers
from git_support import Repo


def given(document: Any) -> bytes:
    return json.dumps(document).encode()


def committed(world: World, repo: Repo, document: Any, *options: str) -> dict[str, Any]:
    """The content that a document makes, and the assurance of each piece of its evidence."""
    world.ok(repo.path, "handoff", "--from", "-", *options, stdin=given(document))
    found: dict[str, Any] = world.ok(repo.path, "continue", "--json").json
    return found


def texts(content: dict[str, Any]) -> list[str]:
    return [item["text"] for item in content["state"]]


def assurances(found: dict[str, Any], source_type: str) -> set[str]:
    return {
        item["assurance"]
        for item in found["evidence"]
        if item["citation"]["kind"] == "source" and item["citation"]["source_ref"]["source_type"] == source_type
    }


def test_a_script_says_in_one_document_what_the_options_say(world: World) -> None:
    repo = world.bound(commits=2)
    repo.write("notes.txt", "measure first\n")
    found = committed(
        world,
        repo,
        {
            "objective": "Retry once",
            "state": ["Half of it works", {"text": "Measured", "cite": ["notes.txt", "HEAD~1"]}],
            "disposition": "blocked",
            "next_action": "Ask for the key",
            "omissions": ["Windows was not tried"],
        },
    )
    content = found["content"]
    assert (content["objective"], content["disposition"]) == ("Retry once", "blocked")
    assert texts(content)[:2] == ["Half of it works", "Measured"]
    assert content["next_action"]["text"] == "Ask for the key"
    assert "Windows was not tried" in [item["text"] for item in content["omissions"]]
    cited = [item["source_ref"]["source_id"] for item in content["state"][1]["citations"]]
    digest = hashlib.sha256(b"measure first\n").hexdigest()
    assert f"notes.txt@{digest}" in cited
    assert any(item.startswith(repo.text("rev-parse", "HEAD~1")) for item in cited)


def test_what_a_script_leaves_out_goes_on_and_null_takes_the_next_action_back(world: World) -> None:
    repo = world.bound()
    world.ok(repo.path, "handoff", "--blocked", "No key", "--next", "Ask for it")
    kept = committed(world, repo, {"objective": "Another aim"})["content"]
    assert (kept["disposition"], kept["next_action"]["text"]) == ("blocked", "Ask for it")
    assert "No key" in texts(kept)
    taken = committed(world, repo, {"next_action": None})["content"]
    assert (taken["disposition"], taken["next_action"]) == ("blocked", None)


def test_what_a_script_claims_of_commits_and_files_is_read_here_or_marked_as_said(world: World) -> None:
    """Catches an invented commit, or a file of other content, that would count as read by the host."""
    repo = world.bound()
    repo.write("a.txt", "a\n")
    head = repo.text("rev-parse", "HEAD")
    true_file = {"path": "a.txt", "sha256": hashlib.sha256(b"a\n").hexdigest(), "size": 2}
    false_file = {**true_file, "sha256": "0" * 64}
    found = committed(
        world,
        repo,
        {
            "evidence": [
                {"label": "real", "source_type": "git_commit", "descriptor": {"oid": head}},
                {"label": "invented", "source_type": "git_commit", "descriptor": {"oid": "ab" * 20}},
                {"label": "renamed", "source_type": "git_commit", "descriptor": {"oid": head, "subject": "Not this"}},
                {"label": "file", "source_type": "file", "descriptor": true_file},
                {"label": "other", "source_type": "file", "descriptor": false_file},
            ],
            "state": [
                {"text": label, "citations": [{"kind": "inline", "label": label}]}
                for label in ("real", "invented", "renamed", "file", "other")
            ],
            "only_words": True,
        },
    )
    by_citation = {json.dumps(item["citation"]): item["assurance"] for item in found["evidence"]}
    said = {item["text"]: by_citation[json.dumps(item["citations"][0])] for item in found["content"]["state"]}
    assert said | {} == {
        **said,
        "real": "host_read",
        "invented": "caller_supplied",
        "renamed": "caller_supplied",
        "file": "host_read",
        "other": "caller_supplied",
    }


def test_uncommitted_files_are_told_even_where_only_words_were_wanted(world: World) -> None:
    repo = world.bound()
    repo.write("draft.txt", "half\n")
    note = {"label": "note", "source_type": "content", "content": "Seen by eye."}
    document = {
        "evidence": [note],
        "state": [{"text": "It stands", "citations": [{"kind": "inline", "label": "note"}]}],
        "only_words": True,
    }
    assert texts(committed(world, repo, document)["content"]) == ["It stands", "Uncommitted paths (1): draft.txt"]


@pytest.mark.parametrize(
    ("document", "code", "exit_code"),
    [
        (b"", "malformed_json", 2),
        (b"[]", "invalid_request", 2),
        (b'{"state": ["a"], "state": ["b"]}', "malformed_json", 2),
        (b'{"stat": ["a"]}', "invalid_request", 2),
        (b'{"state": [{"text": "a", "cite": ["nothing-like-it"]}]}', "git_object_not_found", 4),
        (b'{"state": [{"text": "a", "citations": [{"kind": "inline", "label": "x"}]}]}', "citation_not_readable", 2),
        (b'{"state": ["' + b"x" * 4097 + b'"]}', "invalid_request", 2),
        (b'{"draft": {"objective": "a"}}', "invalid_request", 2),
        (b'{"state": [{"text": "a", "cite": ["a\\u0000b"]}]}', "git_object_not_found", 4),
        (b'{"draft": {"objective": "a"}, "scope_id": 5}', "invalid_request", 2),
        (b'{"draft": {"objective": "a"}, "base": {"revision": 0}}', "invalid_request", 2),
        (
            b'{"evidence": [{"label": "a", "source_type": "file", "descriptor": {"path": "a\\u0000b"}}],'
            b' "state": [{"text": "x", "citations": [{"kind": "inline", "label": "a"}]}]}',
            "invalid_request",
            2,
        ),
        (b" " * (12 * 1024 * 1024 + 1), "body_too_large", 2),
        (b'{"schema": "passdown.handoff-request.v1"}', "invalid_request", 2),
        (b'{"schema": "powercontext.prepared-handoff.v1"}', "invalid_request", 2),
    ],
)
def test_a_document_that_is_wrong_is_refused_and_stores_nothing(
    world: World, document: bytes, code: str, exit_code: int
) -> None:
    repo = world.bound()
    answer = world.run(repo.path, "handoff", "--from", "-", "--json", stdin=document)
    assert answer.err.startswith(f"{code}: "), answer
    assert (answer.code, answer.out) == (exit_code, "")
    found = numbers(world.data)
    assert (found["pd_sources"], found["pd_handoff_revisions"]) == (0, 0)


def test_a_file_that_is_not_there_is_said(world: World) -> None:
    repo = world.bound()
    world.refused("file_not_readable", 4, repo.path, "handoff", "--from", "no-such-file.json")


def test_options_beside_a_document_are_a_usage_error(world: World) -> None:
    repo = world.bound()
    answer = world.run(repo.path, "handoff", "--from", "-", "--state", "x", stdin=b"{}")
    assert (answer.code, answer.out) == (2, "")
    assert "the document has the words" in " ".join(answer.err.split())


# --- sealed requests --------------------------------------------------------------------------------------------------


def sealed(world: World, repo: Repo, *options: str) -> Path:
    path = world.root / "sealed.json"
    world.ok(repo.path, "handoff", "--to-file", str(path), *options)
    return path


def test_a_sealed_request_changes_no_store_and_is_committed_later_as_it_was_said(world: World) -> None:
    repo = world.bound()
    repo.write("draft.txt", "half\n")
    before = numbers(world.data)
    path = sealed(world, repo, "--state", "Said in the sandbox", "--next", "Go on")
    assert numbers(world.data) == before
    document = json.loads(path.read_bytes())
    digest = "sha256:" + hashlib.sha256(rfc8785.dumps(document["request"])).hexdigest()
    assert document["request_digest"] == digest
    world.ok(repo.path, "handoff", "--from", str(path))
    found = world.ok(repo.path, "continue", "--json").json
    assert texts(found["content"])[0] == "Said in the sandbox"
    assert assurances(found, "git_commit") == {"host_read"}
    assert assurances(found, "worktree") == {"host_read"}


def test_a_worktree_that_has_changed_since_is_told_as_said_and_not_as_read(world: World) -> None:
    repo = world.bound()
    repo.write("draft.txt", "half\n")
    path = sealed(world, repo)
    repo.write("draft.txt", "whole\n")
    world.ok(repo.path, "handoff", "--from", str(path))
    found = world.ok(repo.path, "continue", "--json").json
    assert assurances(found, "worktree") == {"caller_supplied"}
    assert found["workspace"]["uncommitted"]["changed"] == ["draft.txt"]


def test_a_sealed_request_needs_no_store_at_all(world: World) -> None:
    """Catches a sandbox whose agent cannot hand off because the store is somewhere else."""
    repo = world.bound()
    path = world.root / "sealed.json"
    nowhere = {"PASSDOWN_DATA": str(world.root / "nowhere")}
    refused = world.refused("invalid_request", 2, repo.path, "handoff", "--to-file", str(path), **nowhere)
    assert "--objective" in refused.err
    assert not path.exists()
    world.ok(repo.path, "handoff", "--to-file", str(path), "--objective", "Aim", "--state", "Blind", **nowhere)
    assert not (world.root / "nowhere").exists()
    world.ok(repo.path, "handoff", "--from", str(path))
    content = world.ok(repo.path, "continue", "--json").json["content"]
    assert (content["objective"], texts(content)[0]) == ("Aim", "Blind")


@pytest.mark.skipif(os.getuid() != 0, reason="another user is needed, and only root can become one")
def test_who_cannot_write_the_store_is_told_of_the_file(world: World) -> None:
    repo = world.bound()
    world.ok(repo.path, "handoff")
    for place in (world.root, *world.root.parents):
        place.chmod(place.stat().st_mode | 0o055)
    (repo.path / ".git" / "passdown").chmod(0o755)
    (repo.path / ".git" / "passdown" / "worktree.json").chmod(0o644)
    (world.data / "passdown.db").chmod(0o444)
    world.data.chmod(0o555)
    answer = world.run(repo.path, "handoff", "--state", "x", "--json", user=65_534)
    assert answer.err.startswith(("store_not_writable: ", "store_not_readable: ")), answer
    assert "--to-file" in answer.err.splitlines()[-1]


def test_a_sealed_request_that_somebody_changed_is_refused(world: World) -> None:
    repo = world.bound()
    path = sealed(world, repo, "--state", "Honest")
    path.write_text(path.read_text().replace("Honest", "Forged"))
    world.refused("prepared_digest_mismatch", 2, repo.path, "handoff", "--from", str(path))
    assert numbers(world.data)["pd_handoff_revisions"] == 0


def test_a_sealed_request_meets_a_conflict_where_somebody_handed_off_since(world: World) -> None:
    repo = world.bound()
    path = sealed(world, repo, "--state", "First")
    world.ok(repo.path, "handoff", "--state", "Came between")
    world.refused("handoff_conflict", 3, repo.path, "handoff", "--json", "--from", str(path))
    assert numbers(world.data)["pd_handoff_revisions"] == 1


def test_documents_of_another_workstream_are_refused(world: World) -> None:
    repo = world.bound()
    prepared = world.ok(repo.path, "handoff", "send").out
    request = sealed(world, repo, "--state", "Here").read_bytes()
    recovered = world.ok(repo.path, "handoff", "recover", "--json").out
    world.ok(repo.path, "start", "Another")
    for document in (prepared.encode(), request, recovered.encode()):
        world.refused("handoff_scope_mismatch", 3, repo.path, "handoff", "--from", "-", stdin=document)
    assert numbers(world.data)["pd_handoff_revisions"] == 0
