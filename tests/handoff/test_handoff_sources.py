"""Sources: what is captured, by whom it was read, and what an identity stands for."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
import rfc8785
from handoff_support import CALLER, HOST, SCOPE, TOKEN, Desk, cite, places, sha256

OID = "1f" * 20
OTHER = "2e" * 20
TEXT = "The queue drops the last item — 每次都是。"


def commit_body(oid: str = OID, **facts: Any) -> dict[str, Any]:
    """The whole body of a commit of which only some facts are known."""
    names = ("parents", "author", "committer", "subject", "subject_chars", "paths", "paths_total", "remote_refs")
    return {"oid": oid} | dict.fromkeys(names) | facts


def capture(desk: Desk, who: Any = HOST, **members: Any) -> Any:
    return desk.call("capture_source", who, scope_id=SCOPE, **members)


def test_text_is_stored_with_the_digest_of_its_bytes_and_read_back(desk: Desk) -> None:
    """Catches a digest over something else than the stored bytes."""
    found = capture(desk, CALLER, source_type="content", content=TEXT, name="queue note", description="seen twice")
    source = found["source"]
    assert found["replayed"] is False
    assert source["sha256"] == sha256(TEXT.encode())
    assert source["size"] == len(TEXT.encode())
    assert source["source_ref"] == {"source_type": "content", "source_id": f"sha256:{sha256(TEXT.encode())}"}
    assert (source["content"], source["descriptor"], source["media_type"]) == (TEXT, None, "text/plain")
    assert (source["name"], source["description"], source["label"]) == ("queue note", "seen twice", "queue note")
    assert (source["materialization"], source["assurance"], source["read_by"]) == ("captured", "caller_supplied", None)
    assert source["recorded_by"] == {"principal_id": "caller", "identity": "asserted"}
    assert source["recorded_at"].startswith("2026-05-28T")
    assert desk.call("get_source", scope_id=SCOPE, source_ref=source["source_ref"])["source"] == source


@pytest.mark.parametrize("value", [{"b": [1, None, True], "a": "é"}, [], 0, False, 2**53 - 1, {"": ""}])
def test_any_json_is_stored_in_its_canonical_form(desk: Desk, value: Any) -> None:
    """Catches JSON that is stored as the caller happened to write it."""
    source = capture(desk, source_type="content", content=value)["source"]
    assert source["content"] == value
    assert type(source["content"]) is type(value)
    assert source["sha256"] == sha256(rfc8785.dumps(value))
    assert source["media_type"] == "application/json"


def test_the_same_bytes_as_text_and_as_json_are_two_sources(desk: Desk) -> None:
    """Catches a derived identity that leaves the media type out: the second capture would be a conflict."""
    as_json = capture(desk, source_type="content", content=[1])["source"]
    as_text = capture(desk, source_type="content", content="[1]")["source"]
    assert as_json["source_ref"] != as_text["source_ref"]
    assert (as_json["content"], as_text["content"]) == ([1], "[1]")


def test_a_repeated_capture_answers_the_first_record(desk: Desk) -> None:
    first = capture(desk, source_type="content", source_id="note-1", content="One.", name="first")
    desk.clock.move(5_000_000)
    again = capture(desk, TOKEN, source_type="content", source_id="note-1", content="One.", name="second")
    assert again == {"source": first["source"], "replayed": True}
    assert desk.rows("SELECT COUNT(*) FROM pd_sources") == [(1,)]


def test_another_content_under_the_same_identity_is_a_conflict(desk: Desk) -> None:
    capture(desk, source_type="content", source_id="note-1", content="One.")
    error = desk.refused(
        "source_conflict", "capture_source", scope_id=SCOPE, source_type="content", source_id="note-1", content="Two."
    )
    assert error.members["current_sha256"] == sha256(b"One.")


def test_text_and_json_of_the_same_bytes_are_other_contents_for_a_chosen_identity(desk: Desk) -> None:
    capture(desk, source_type="content", source_id="note-1", content=[1])
    desk.refused(
        "source_conflict", "capture_source", scope_id=SCOPE, source_type="content", source_id="note-1", content="[1]"
    )


def test_the_same_identity_in_another_scope_or_type_is_another_source(desk: Desk) -> None:
    one = capture(desk, source_type="content", source_id=f"{OID}@x", content="One.")["source"]
    other = desk.call("capture_source", scope_id="else", source_type="content", source_id=f"{OID}@x", content="Two.")
    third = capture(desk, source_type="git_commit", source_id=f"{OID}@x", descriptor={"oid": OID})
    assert {one["content"], other["source"]["content"]} == {"One.", "Two."}
    assert not other["replayed"]
    assert not third["replayed"]
    desk.refused("source_not_found", "get_source", scope_id="third", source_ref=one["source_ref"])


# --- who read it ------------------------------------------------------------------------------------------------------


def test_the_host_reader_gives_a_commit_the_identity_of_its_facts(desk: Desk) -> None:
    body = commit_body(subject="Fix the tail", remote_refs=["origin/main"])
    source = capture(desk, source_type="git_commit", descriptor=body)["source"]
    digest = sha256(rfc8785.dumps(body))
    assert source["source_ref"]["source_id"] == f"{OID}@{digest[:12]}"
    assert (source["sha256"], source["descriptor"], source["content"]) == (digest, body, None)
    assert (source["assurance"], source["read_by"]) == ("host_read", "workbench")
    assert source["label"] == f"{OID[:12]} Fix the tail"


def test_a_commit_read_again_after_a_push_is_another_source(desk: Desk) -> None:
    """Catches an identity without the remote-tracking refs, which would make the second reading a conflict."""
    before = capture(desk, source_type="git_commit", descriptor=commit_body(remote_refs=[]))["source"]
    after = capture(desk, source_type="git_commit", descriptor=commit_body(remote_refs=["origin/main"]))["source"]
    assert before["source_ref"] != after["source_ref"]


def test_a_file_and_a_worktree_have_the_identities_of_their_facts(desk: Desk) -> None:
    facts = {"path": "src/queue.py", "sha256": "ab" * 32, "size": 7, "commit": OID}
    found = capture(desk, source_type="file", descriptor=facts)["source"]
    assert found["source_ref"]["source_id"] == f"src/queue.py@{'ab' * 32}"
    worktree = {"head": OID, "entries": [], "omitted_paths": 0, "omitted_bytes": 0}
    found = capture(desk, source_type="worktree", descriptor=worktree)["source"]
    assert found["source_ref"]["source_id"] == f"{OID}@{sha256(rfc8785.dumps(worktree))[:12]}"
    unborn = worktree | {"head": None}
    found = capture(desk, source_type="worktree", descriptor=unborn)["source"]
    assert found["source_ref"]["source_id"] == f"unborn@{sha256(rfc8785.dumps(unborn))[:12]}"


@pytest.mark.parametrize("path", [" edge", "edge ", "a\nb", "a\tb", "a\u202eb", "x" * 448, "日" * 4_096])
def test_a_path_that_no_identity_can_hold_is_represented_by_its_digest(desk: Desk, path: str) -> None:
    facts = {"path": path, "sha256": "ab" * 32, "size": 7, "commit": None}
    source = capture(desk, source_type="file", descriptor=facts)["source"]
    assert source["source_ref"]["source_id"] == f"sha256:{sha256(path.encode())}@{'ab' * 32}"
    assert source["descriptor"]["path"] == path


def test_what_a_caller_says_of_a_commit_is_said_not_read(desk: Desk) -> None:
    body = commit_body(subject="Fix the tail")
    source = capture(desk, CALLER, source_type="git_commit", descriptor=body)["source"]
    assert (source["assurance"], source["read_by"]) == ("caller_supplied", None)
    assert source["source_ref"]["source_id"] == f"{OID}@{sha256(rfc8785.dumps(body))[:12]}-said"


@pytest.mark.parametrize("member", ["assurance", "read_by", "recorded_by", "host"])
def test_no_body_can_name_its_own_assurance(desk: Desk, member: str) -> None:
    value = {"assurance": "host_read", "read_by": "workbench", "recorded_by": {}, "host": "workbench"}[member]
    ask = {"scope_id": SCOPE, "source_type": "git_commit", "descriptor": {"oid": OID}}
    error = desk.refused("invalid_request", "capture_source", CALLER, **ask, **{member: value})
    assert places(error) == [(member, "extra_forbidden")]
    ask["descriptor"][member] = value
    error = desk.refused("invalid_request", "capture_source", CALLER, **ask)
    assert places(error) == [(f"descriptor.{member}", "extra_forbidden")]


def test_a_token_without_the_capture_right_says_what_a_caller_says(desk: Desk) -> None:
    source = capture(desk, TOKEN, source_type="git_commit", descriptor={"oid": OID})["source"]
    assert source["assurance"] == "caller_supplied"
    assert source["recorded_by"] == {"principal_id": "agent-7", "identity": "authenticated"}


@pytest.mark.parametrize("suffix", ["", "-said"])
def test_a_caller_cannot_take_the_identity_that_a_reading_would_get(desk: Desk, suffix: str) -> None:
    """Catches a check against the caller's own body only: false facts would stand under the identity of true ones."""
    true = commit_body(subject="Fix the tail")
    wanted = f"{OID}@{sha256(rfc8785.dumps(true))[:12]}{suffix}"
    false = commit_body(subject="Everything is done")
    ask = {"scope_id": SCOPE, "source_type": "git_commit", "source_id": wanted, "descriptor": false}
    error = desk.refused("invalid_request", "capture_source", CALLER, **ask)
    assert places(error) == [("source_id", "reserved_for_derived")]
    assert capture(desk, source_type="git_commit", descriptor=true)["source"]["assurance"] == "host_read"


def test_a_caller_cannot_stand_where_its_own_facts_would_be_read(desk: Desk) -> None:
    body = commit_body()
    wanted = f"{OID}@{sha256(rfc8785.dumps(body))[:12]}"
    ask = {"scope_id": SCOPE, "source_type": "git_commit", "source_id": wanted, "descriptor": body}
    desk.refused("invalid_request", "capture_source", CALLER, **ask)
    ask["source_id"] += "-said"
    assert desk.ask("capture_source", ask, CALLER)["source"]["assurance"] == "caller_supplied"


@pytest.mark.parametrize(
    ("source_type", "source_id", "members"),
    [
        ("content", f"sha256:{'0' * 64}", {"content": "Something else."}),
        ("content", f"sha256:{'0' * 64}@json", {"content": ["Something else."]}),
        ("file", f"a.txt@{'0' * 64}", {"descriptor": {"path": "b.txt", "sha256": "1" * 64, "size": 1}}),
        (
            "worktree",
            f"{OID}@{'0' * 12}",
            {"descriptor": {"head": OID, "entries": [], "omitted_paths": 0, "omitted_bytes": 0}},
        ),
    ],
)
@pytest.mark.parametrize("who", [HOST, CALLER])
def test_a_chosen_identity_never_looks_like_one_derived_from_other_content(
    desk: Desk, source_type: str, source_id: str, members: dict[str, Any], who: Any
) -> None:
    """Catches an identity that names the digest of content which is not there."""
    ask = {"scope_id": SCOPE, "source_type": source_type, "source_id": source_id} | members
    assert places(desk.refused("invalid_request", "capture_source", who, **ask)) == [
        ("source_id", "reserved_for_derived")
    ]


def test_a_reading_never_takes_over_what_a_caller_said(desk: Desk) -> None:
    """Catches a replay that ignores assurance: words would become a reading, or the reverse."""
    chosen = f"{OID}@mine"
    capture(desk, CALLER, source_type="git_commit", source_id=chosen, descriptor={"oid": OID})
    ask = {"scope_id": SCOPE, "source_type": "git_commit", "source_id": chosen, "descriptor": {"oid": OID}}
    error = desk.refused("source_conflict", "capture_source", HOST, **ask)
    assert error.members["current_assurance"] == "caller_supplied"
    read = f"{OID}@read"
    capture(desk, HOST, source_type="git_commit", source_id=read, descriptor={"oid": OID})
    error = desk.refused("source_conflict", "capture_source", CALLER, **(ask | {"source_id": read}))
    assert error.members["current_assurance"] == "host_read"


@pytest.mark.parametrize("source_id", [OTHER, f"{OTHER}@x", f"x{OID}@x", OID, "note"])
def test_the_identity_of_a_commit_begins_with_the_commit_id(desk: Desk, source_id: str) -> None:
    """Catches a citation that shows one commit and means another."""
    ask = {"scope_id": SCOPE, "source_type": "git_commit", "source_id": source_id, "descriptor": {"oid": OID}}
    assert places(desk.refused("invalid_request", "capture_source", **ask)) == [
        ("source_id", "must_begin_with_the_commit_id")
    ]


@pytest.mark.parametrize("oid", ["1f" * 19, "1F" * 20, "1f" * 21, "g" * 40, "1f" * 20 + "\n", "HEAD", ""])
def test_what_is_no_full_commit_id_is_refused(desk: Desk, oid: str) -> None:
    ask = {"scope_id": SCOPE, "source_type": "git_commit", "descriptor": {"oid": oid}}
    assert places(desk.refused("invalid_request", "capture_source", **ask))[0][0] == "descriptor.oid"


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"source_type": "content"}, ("content", "missing")),
        ({"source_type": "content", "content": None}, ("content", "missing")),
        ({"source_type": "content", "content": "x", "descriptor": {}}, ("descriptor", "not_for_this_source_type")),
        ({"source_type": "content", "content": ""}, ("content", "empty")),
        ({"source_type": "content", "content": " \t\u3000\n"}, ("content", "empty")),
        ({"source_type": "file"}, ("descriptor", "missing")),
        (
            {"source_type": "file", "content": "x", "descriptor": {"path": "a", "sha256": "0" * 64, "size": 0}},
            ("content", "not_for_this_source_type"),
        ),
        ({"source_type": "video", "content": "x"}, ("source_type", "literal_error")),
        ({"source_type": "content", "content": "x", "name": " "}, ("name", "empty")),
    ],
)
def test_a_capture_without_a_fitting_body_is_refused(
    desk: Desk, members: dict[str, Any], place: tuple[str, str]
) -> None:
    assert places(desk.refused("invalid_request", "capture_source", scope_id=SCOPE, **members)) == [place]


@pytest.mark.parametrize(("value", "rule"), [([1.5], "float"), ({"a": 2**53}, "integer_range")])
def test_json_without_a_canonical_form_is_refused(desk: Desk, value: Any, rule: str) -> None:
    error = desk.refused("not_canonical", "capture_source", scope_id=SCOPE, source_type="content", content=value)
    assert error.members["rule"] == rule


# --- lists ------------------------------------------------------------------------------------------------------------


def test_every_source_is_listed_once_over_pages_of_any_size(desk: Desk) -> None:
    made = [desk.note(f"Note {number}.")["source_ref"]["source_id"] for number in range(7)]
    desk.commit()
    made += [desk.note(f"Late {number}.")["source_ref"]["source_id"] for number in range(3)]
    desk.note("Elsewhere.", scope_id="else")
    made.append(f"sha256:{sha256(b'A note.')}")
    for limit in (1, 2, 3, 5, 11, 100):
        found: list[str] = []
        cursor = None
        while True:
            page = desk.call("list_sources", scope_id=SCOPE, limit=limit, cursor=cursor)
            assert len(page["sources"]) <= limit
            found += [item["source_ref"]["source_id"] for item in page["sources"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert sorted(found) == sorted(made)
        assert set(found[-3:]) == set(made[7:10])


def test_a_list_shows_what_get_shows_without_the_body(desk: Desk) -> None:
    ref = desk.commit_fact(OID, subject="Fix the tail")["source_ref"]
    one = desk.call("list_sources", scope_id=SCOPE)["sources"][0]
    whole = desk.call("get_source", scope_id=SCOPE, source_ref=ref)["source"]
    assert one == {name: whole[name] for name in one}
    assert set(one) == {"source_ref", "assurance", "label", "size", "sha256", "recorded_at"}


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "cmV2aXNpb25zAAAAAAAAAAAB", "é" * 10, "=" * 8, "c291cmNlcwA"])
def test_a_cursor_that_the_list_never_gave_is_refused(desk: Desk, cursor: str) -> None:
    desk.refused("invalid_cursor", "list_sources", scope_id=SCOPE, cursor=cursor)


def test_a_cursor_of_one_list_opens_no_other_and_has_one_spelling(desk: Desk) -> None:
    for number in range(3):
        desk.note(f"Note {number}.")
        desk.commit(objective=f"Objective {number}")
    sources = desk.call("list_sources", scope_id=SCOPE, limit=1)["next_cursor"]
    revisions = desk.call("list_handoff_revisions", scope_id=SCOPE, limit=1)["next_cursor"]
    desk.refused("invalid_cursor", "list_handoff_revisions", scope_id=SCOPE, cursor=sources)
    desk.refused("invalid_cursor", "list_sources", scope_id=SCOPE, cursor=revisions)
    desk.refused("invalid_cursor", "list_handoff_revisions", scope_id=SCOPE, cursor=revisions + "=")


def test_a_scope_without_sources_has_an_empty_list(desk: Desk) -> None:
    assert desk.call("list_sources", scope_id="nowhere") == {"sources": [], "next_cursor": None}


def test_the_database_itself_refuses_to_change_or_delete_a_source(desk: Desk) -> None:
    """Catches immutability that is only good manners."""
    desk.note()
    for statement in ("UPDATE pd_sources SET name = x'61'", "DELETE FROM pd_sources"):
        with pytest.raises(sqlite3.DatabaseError):
            desk.rows(statement)
    assert cite(desk.call("list_sources", scope_id=SCOPE)["sources"][0]["source_ref"]) == desk.note()
