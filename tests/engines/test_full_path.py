"""One whole path of each capability, on every engine, and the same bytes on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
import rfc8785
from engine_support import HOST, SCOPE, START_US, Desk, outcome, prepared

from passdown.handoff.exports import verify_export
from passdown.identity.service import TokenService
from passdown.kernel.errors import PassdownError
from passdown.report.verify import verify
from support.places import TABLES, Place


@pytest.fixture
def desk(place: Place) -> Iterator[Desk]:
    with Desk(place.url) as opened:
        yield opened


def refused(call: Callable[[], Any]) -> tuple[str, Any]:
    with pytest.raises(PassdownError) as caught:
        call()
    return caught.value.code, caught.value.members.get("rule")


def test_a_handoff_goes_its_whole_way(desk: Desk) -> None:
    """Catches: a statement of the handoff core that some engine reads in another way."""
    text = "原因 \U0001f600 \\ ' \" % _ :name \N{COMBINING ACUTE ACCENT} \r\nend"
    stored = text.replace("\r\n", "\n")
    note = desk.note(text)
    source = desk.call("get_source", scope_id=SCOPE, source_ref=note["source_ref"])["source"]
    assert source["content"] == stored
    draft = {
        "objective": text,
        "state": [{"text": text, "citations": [note]}],
        "disposition": "continuable",
        "next_action": {"text": "Go on.", "citations": [note]},
        "omissions": [],
    }
    value = desk.call("finalize_handoff", scope_id=SCOPE, draft=draft)
    first = desk.ask("commit_handoff", value)
    assert (first["status"], first["replayed"]) == ("committed", False)
    again = desk.ask("commit_handoff", value)
    assert (again["handoff_ref"], again["replayed"]) == (first["handoff_ref"], True)
    second = desk.hand_off(SCOPE, objective="Second")["committed"]
    assert second["handoff_ref"]["revision"] == 2
    assert outcome(lambda: desk.ask("commit_handoff", prepared(note, None, objective="late"))) == {
        "code": "handoff_conflict",
        "current": second["handoff_ref"],
    }
    assert desk.numbers() == [2, 1]
    kept = desk.call("get_handoff", scope_id=SCOPE, handoff_ref=first["handoff_ref"])["handoff"]
    assert kept["content"] == value["content"]
    assert kept["content"]["objective"] == stored
    found = desk.call("continue_handoff", scope_id=SCOPE, target={"kind": "latest"}, confirm_scope=SCOPE)
    assert orjson.dumps(found).count(b"Second") >= 1
    sources = desk.call("list_sources", scope_id=SCOPE)["sources"]
    assert sources[0]["source_ref"] == note["source_ref"]
    assert len(sources) == 2
    prepared_draft = desk.call(
        "prepare_handoff", scope_id=SCOPE, objective="Third", disposition="continuable", state=[], omissions=[]
    )
    assert prepared_draft["draft"]["objective"] == "Third"


def test_receipts_differences_and_exports_are_the_same_on_every_engine(desk: Desk) -> None:
    """Catches: a receipt counted twice or not found again, an exported body that an engine gives back changed."""
    first = desk.hand_off(SCOPE, objective="First \U0001f600")["committed"]["handoff_ref"]
    desk.hand_off(SCOPE, objective="Second")
    ask = {"scope_id": SCOPE, "target": {"kind": "exact", "handoff_ref": first}}
    said = [desk.call("acknowledge_handoff", **ask, verdict="accepted")["replayed"] for _ in range(2)]
    desk.call("acknowledge_handoff", **ask, verdict="declined", reason="原因 ' \\ %")
    assert said == [False, True]
    kept = desk.call("get_handoff", scope_id=SCOPE, handoff_ref=first)["acknowledgements"]
    assert (kept["accepted"], kept["declined"]) == (1, 1)
    assert {item["reason"] for item in kept["newest"]} == {None, "原因 ' \\ %"}
    listed = desk.call("list_handoff_revisions", scope_id=SCOPE)["revisions"]
    assert [(item["accepted"], item["declined"]) for item in listed] == [(0, 0), (1, 1)]
    assert desk.call("diff_handoffs", scope_id=SCOPE)["objective"]["before"] == "First \U0001f600"
    document = desk.call("export_handoff", scope_id=SCOPE, handoff_ref=first, include_bodies=True)
    assert verify_export(rfc8785.dumps(document)).export.acknowledgements.declined == 1


def test_tokens_go_their_whole_way(desk: Desk) -> None:
    """Catches: a secret or a limit that an engine gives back changed, a revocation that is not seen."""
    service = TokenService(desk.store, desk.clock, desk.ids)
    assert service.any_owner() is False
    token, record = service.create(
        "ключ \U0001f511", "olga", "owner", host="h", expires_us=START_US + 10, operations=["get_source"]
    )
    other, _ = service.create("second", "rae", "reader")
    who = service.authenticate(token)
    assert (who.principal_id, who.identity, who.role, who.host) == ("olga", "authenticated", "owner", "h")
    assert [service.access(each).operations for each in (token, other)] == [{"get_source"}, set()]
    assert [item.name for item in service.list()] == ["ключ \U0001f511", "second"]
    assert service.any_owner() is True
    mistyped = other[:-1] + ("A" if other[-1] != "A" else "B")
    assert refused(lambda: service.authenticate(mistyped))[0] == "unauthenticated"
    service.revoke(record.token_id)
    assert refused(lambda: service.authenticate(token)) == ("unauthenticated", "revoked")
    assert refused(lambda: service.revoke("tok_none"))[0] == "token_not_found"


SAME_TO_SOME_COLLATION = [
    ("N1", "n1"),
    ("resume", "résumé"),
    ("\U0001f600", "\U0001f601"),
    ("ß", "ss"),
    ("ｎ1", "n2"),
    ("ı", "i"),
    ("a\N{ZERO WIDTH JOINER}b", "ab"),
    ("x" * 255 + "y", "x" * 255 + "z"),
    ("\U0001f600" * 255 + "\U0001f601", "\U0001f600" * 256),
]


def test_ids_that_a_collation_takes_for_the_same_are_different(desk: Desk) -> None:
    """Catches: one workstream reading or overwriting the handoffs of another; ids of the longest length too."""
    project = desk.call("create_handoff_report_project", key="shop", title="Shop")["project"]["project_id"]
    ids = [scope_id for pair in SAME_TO_SOME_COLLATION for scope_id in pair]
    for scope_id in ids:
        registered = desk.call("register_handoff_report_workstream", project_id=project, title="t", scope_id=scope_id)
        assert registered["workstream"]["scope_id"] == scope_id
        ref = desk.hand_off(scope_id, objective=f"Of {scope_id}")["committed"]["handoff_ref"]
        assert ref["revision"] == 1
    for scope_id in ids:
        assert desk.numbers(scope_id) == [1]
        assert desk.call("get_handoff", scope_id=scope_id)["handoff"]["content"]["objective"] == f"Of {scope_id}"
        assert len(desk.call("list_sources", scope_id=scope_id)["sources"]) == 1
    report = orjson.loads(desk.call("get_handoff_report", project_id=project, format="json"))
    shown = [item["workstream"]["scope_id"] for item in report["workstreams"]]
    assert sorted(shown) == sorted(ids)


def test_an_id_with_a_trailing_space_is_refused_and_two_spellings_of_one_text_are_one(desk: Desk) -> None:
    """Catches: ids that some engines pad, and canonically equal ids kept apart."""
    desk.hand_off("cafe\N{COMBINING ACUTE ACCENT}")
    assert desk.numbers("caf\N{LATIN SMALL LETTER E WITH ACUTE}") == [1]
    assert desk.numbers("cafe") == []
    for scope_id in ("N1 ", " N1", "N1\t", "N1\N{NO-BREAK SPACE}"):
        assert refused(lambda scope_id=scope_id: desk.hand_off(scope_id))[0] == "invalid_request"


def furnish(desk: Desk) -> str:
    """A project with workstreams in every state, archived and ungrouped ones, evidence of several kinds."""
    created = desk.call("create_handoff_report_project", key="shop", title="Shop 商店", timezone="Asia/Shanghai")
    project = created["project"]["project_id"]
    scopes = []
    for number, disposition in enumerate(("continuable", "blocked", "complete", "continuable", "continuable")):
        asked = {"project_id": project, "title": f"Work {number} \U0001f600", "labels": ["b", "a"], "key": f"w{number}"}
        scope_id = desk.ask("register_handoff_report_workstream", asked)["workstream"]["scope_id"]
        scopes.append(scope_id)
        if number == 3:
            continue
        for revision in range(3):
            evidence = [
                {"label": "n", "source_type": "content", "content": f"{number} {revision}"},
                {
                    "label": "c",
                    "source_type": "git_commit",
                    "descriptor": {"oid": f"{number:039x}{revision}", "subject": "s", "remote_refs": ["origin/main"]},
                },
            ]
            cited = [{"kind": "inline", "label": "n"}, {"kind": "inline", "label": "c"}]
            desk.hand_off(
                scope_id,
                objective=f"Objective {revision}",
                evidence=evidence,
                state=[{"text": f"State {number}", "citations": cited}],
                disposition=disposition,
            )
    desk.clock.move(5)
    last = desk.call("list_handoff_report_workstreams", project_id=project)["workstreams"][-1]
    archived = {"scope_id": last["scope_id"], "expected_version": last["version"], "catalog_state": "archived"}
    desk.ask("update_handoff_report_workstream", archived)
    desk.call("update_handoff_report_project", project_id=project, expected_version=1, title="Shop 2")
    desk.hand_off("scp_alone")
    return str(project)


def documents(desk: Desk, project: str) -> list[bytes]:
    """Every form of the report, of the project and of what belongs to none."""
    found = []
    for project_id in (project, "prj_ungrouped"):
        for form in ("json", "markdown"):
            ask = {"project_id": project_id, "format": form}
            answer = outcome(lambda ask=ask: desk.ask("get_handoff_report", ask))
            found.append(answer if isinstance(answer, bytes) else orjson.dumps(answer))
    return found


@pytest.mark.engines("postgresql", "mysql", "oceanbase")
def test_the_same_story_gives_the_same_rows_and_the_same_report_on_every_engine(
    place: Place, make_place: Callable[[str], Place]
) -> None:
    """Catches: an order, a digest, a number or a byte that depends on the engine. SQLite is the one compared with."""
    told: list[tuple[list[bytes], dict[str, Any], list[Any]]] = []
    for each in (place, make_place("sqlite")):
        with Desk(each.url) as desk:
            project = furnish(desk)
            lists = [
                desk.call("list_handoff_report_projects"),
                desk.call("list_handoff_report_workstreams", project_id=project, include_archived=True),
                desk.call("list_handoff_report_known_scopes"),
            ]
            told.append((documents(desk, project), each.everything(), lists))
    (ours, our_rows, our_lists), (theirs, their_rows, their_lists) = told
    assert ours == theirs
    assert {"selection_digest", "report_digest"} <= set(verify(ours[0]).verified)
    assert len(orjson.loads(ours[0])["workstreams"]) == 4
    assert our_lists == their_lists
    for table in TABLES:
        assert our_rows[table] == their_rows[table], table


def test_the_catalog_goes_its_whole_way(desk: Desk) -> None:
    """Catches: pages, keys and versions that an engine counts in another way."""
    project = furnish(desk)
    assert refused(lambda: desk.call("create_handoff_report_project", key="shop", title="x")) == (
        "project_conflict",
        "key_taken",
    )
    desk.call("create_handoff_report_project", key="bar", title="x")
    taken = {"project_id": project, "expected_version": 2, "key": "bar"}
    assert refused(lambda: desk.ask("update_handoff_report_project", taken)) == ("project_conflict", "key_taken")
    stale = {"project_id": project, "expected_version": 1, "title": "y"}
    assert refused(lambda: desk.ask("update_handoff_report_project", stale))[0] == "project_conflict"
    seen: list[str] = []
    cursor = None
    while True:
        ask = {"project_id": project, "limit": 2, "cursor": cursor, "include_archived": True}
        page = desk.ask("list_handoff_report_workstreams", ask)
        seen += [item["key"] for item in page["workstreams"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ["w0", "w1", "w2", "w3", "w4"]
    scopes: list[str] = []
    cursor = None
    while True:
        page = desk.call("list_handoff_report_known_scopes", limit=2, cursor=cursor)
        scopes += [item["scope_id"] for item in page["scopes"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert scopes[0] == "scp_alone"
    assert len(scopes) == len(set(scopes)) == 5
    assert HOST.principal_id not in scopes
