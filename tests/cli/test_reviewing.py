"""``show``, ``history``, ``diff``, ``ack``, ``export`` and ``verify``: one handoff looked at, answered and carried."""

from __future__ import annotations

import json

import pytest
from cli_support import World
from git_support import Repo


@pytest.fixture
def repo(world: World) -> Repo:
    repo = world.bound()
    world.ok(repo.path, "handoff", "--state", "It stands", "--next", "Go on", "--yes")
    repo.commit("More", {"more.txt": "more\n"})
    world.ok(repo.path, "handoff", "--state", "It runs", "--next", "Go on", "--yes")
    return repo


def test_show_says_who_took_it_or_that_nobody_did(world: World, repo: Repo) -> None:
    shown = world.ok(repo.path, "handoff", "show").out
    assert shown.startswith("Revision 2 (the current one)")
    assert "It runs" in shown
    assert "not acknowledged yet" in shown
    world.ok(repo.path, "handoff", "ack", "--decline", "--reason", "Does not build", "--as", "rae")
    shown = world.ok(repo.path, "handoff", "show").out
    assert "declined by rae (asserted), just now: Does not build" in shown
    assert "not acknowledged yet" in world.ok(repo.path, "handoff", "show", "prev").out


@pytest.mark.parametrize(("named", "revision"), [("1", 1), ("prev", 1), ("2", 2), ("latest", 2)])
def test_a_revision_is_named_by_number_latest_or_prev(world: World, repo: Repo, named: str, revision: int) -> None:
    assert world.ok(repo.path, "handoff", "show", named, "--json").json["selected_revision"]["revision"] == revision


def test_a_revision_that_is_not_there_is_refused(world: World, repo: Repo) -> None:
    world.refused("handoff_not_found", 4, repo.path, "handoff", "show", "3")
    for named in ("0", "newest", "٣", "1" * 40):
        world.refused("invalid_request", 2, repo.path, "handoff", "show", named)


def test_history_lists_newest_first_with_receipts(world: World, repo: Repo) -> None:
    world.ok(repo.path, "handoff", "ack", "1", "--accept")
    lines = world.ok(repo.path, "handoff", "history").out.splitlines()
    assert [line.split()[0] for line in lines] == ["2", "1"]
    assert ("not acknowledged" in lines[0], "1 accepted" in lines[1]) == (True, True)
    page = world.run(repo.path, "handoff", "history", "--limit", "1", "--json").json
    assert [item["handoff_ref"]["revision"] for item in page["revisions"]] == [2]
    rest = world.ok(repo.path, "handoff", "history", "--cursor", page["next_cursor"], "--json").json
    assert [item["handoff_ref"]["revision"] for item in rest["revisions"]] == [1]


def test_diff_tells_signs_in_words_and_takes_the_sides_that_are_named(world: World, repo: Repo) -> None:
    shown = world.ok(repo.path, "handoff", "diff").out
    assert shown.startswith("Revision 1 → 2\n")
    assert "It stands" in shown
    assert "It runs" in shown
    back = world.ok(repo.path, "handoff", "diff", "latest", "1", "--json").json
    assert (back["before"]["revision"], back["after"]["revision"]) == (2, 1)
    assert "They say the same" in world.ok(repo.path, "handoff", "diff", "2", "2").out


def test_ack_wants_one_verdict_and_a_reason_to_decline(world: World, repo: Repo) -> None:
    for options in ([], ["--accept", "--decline", "--reason", "x"], ["--decline"]):
        assert world.run(repo.path, "handoff", "ack", *options).code == 2
    assert "not acknowledged yet" in world.ok(repo.path, "handoff", "show").out
    first = world.ok(repo.path, "handoff", "ack", "--accept", "--confirm", "1", "--json").json
    assert first["acknowledgement"]["checks"][0]["state_index"] == 0
    assert world.ok(repo.path, "handoff", "ack", "--accept", "--confirm", "1", "--json").json["replayed"] is True
    world.refused("invalid_request", 2, repo.path, "handoff", "ack", "--accept", "--confirm", "64")


def test_an_exported_handoff_is_verified_where_there_is_no_store(world: World, repo: Repo) -> None:
    target = world.root / "one.json"
    world.ok(repo.path, "handoff", "export", "--bodies", "--output", str(target))
    nowhere = {"PASSDOWN_DATA": str(world.root / "none")}
    told = world.ok(world.root, "handoff", "verify", str(target), **nowhere)
    assert "revision 2 fits its digests" in told.out
    assert "A digest is not a signature" in told.err
    assert not (world.root / "none").exists()
    piped = world.ok(repo.path, "handoff", "export", "--bodies").out.encode()
    assert piped == target.read_bytes()
    verdict = world.ok(world.root, "handoff", "verify", "-", "--json", stdin=piped, **nowhere).json[0]
    assert (verdict["ok"], verdict["handoff_ref"]["revision"]) == (True, 2)


def test_a_forged_export_fails_and_the_place_is_named(world: World, repo: Repo) -> None:
    document = world.ok(repo.path, "handoff", "export").out.encode()
    forged = document.replace(b"It runs", b"It fell")
    answer = world.run(world.root, "handoff", "verify", "-", stdin=forged)
    assert (answer.code, "✗" in answer.out, "export_digest" in answer.out) == (4, True, True)
    verdict = json.loads(world.run(world.root, "handoff", "verify", "-", "--json", stdin=forged).out)[0]
    assert (verdict["ok"], verdict["code"], verdict["digest"]) == (False, "digest_mismatch", "export_digest")
