"""Nothing hides: a committed handoff is visible without registration."""

from __future__ import annotations

from typing import Any

import pytest
from report_support import MakeWorld, World, code_of, of, scopes_of

UNGROUPED = "prj_ungrouped"


def test_a_committed_handoff_is_visible_at_once_in_the_ungrouped_project(world: World) -> None:
    world.commit("loose", "blocked")
    report = world.report(UNGROUPED)
    assert report["project"] == {
        "schema": "powercontext.project.v1",
        "project_id": "prj_ungrouped",
        "project_key": "ungrouped",
        "title": "Ungrouped",
        "description": None,
        "default_locale": "zh-CN",
        "timezone": None,
        "catalog_state": "included",
        "version": 0,
    }
    assert (report["project_revision"], report["end_selection"][0]["workstream_revision"]) == (0, 0)
    assert of(report, "loose")["workstream"] == {
        "schema": "powercontext.workstream.v1",
        "scope_id": "loose",
        "project_id": "prj_ungrouped",
        "key": None,
        "title": "loose",
        "kind": "other",
        "catalog_state": "included",
        "external_refs": [],
        "labels": [],
        "version": 0,
    }
    assert report["summary"]["blocked_count"] == 1


def test_the_title_of_the_ungrouped_project_is_the_same_in_every_locale(world: World) -> None:
    world.commit("loose")
    assert {world.report(UNGROUPED, locale=locale)["project"]["title"] for locale in ("zh-CN", "en")} == {"Ungrouped"}
    assert world.report(UNGROUPED)["locale"] == "zh-CN"


def test_registering_a_scope_takes_it_out_of_the_ungrouped_project(world: World) -> None:
    world.commit("one")
    world.commit("two")
    project = world.project("shop")
    world.workstream(project, "one")
    assert scopes_of(world.report(UNGROUPED)) == ["two"]
    assert scopes_of(world.report(project)) == ["one"]


def test_a_workstream_that_is_archived_does_not_come_back_as_ungrouped(world: World) -> None:
    world.commit("one")
    project = world.project("shop")
    world.update_workstream(world.workstream(project, "one"), catalog_state="archived")
    assert world.report(UNGROUPED)["workstreams"] == []
    assert world.report(project)["workstreams"] == []
    assert scopes_of(world.report(project, filters={"include_archived": True})) == ["one"]


def test_reading_ungrouped_scopes_registers_and_writes_nothing(world: World) -> None:
    world.commit("loose")
    world.store.forget()
    writes = world.store.writes()
    world.report(UNGROUPED)
    world.call("list_handoff_report_projects")
    world.call("list_handoff_report_known_scopes")
    world.call("list_handoff_report_workstreams", project_id=UNGROUPED)
    assert (world.store.written, world.store.writes()) == (0, writes)
    assert world.rows("SELECT COUNT(*) FROM pc_handoff_report_workstreams") == [(0,)]


def test_the_ungrouped_project_is_listed_last_and_only_while_it_has_members(world: World) -> None:
    for key in ("zzz", "aaa"):
        world.project(key)

    def listed() -> list[str]:
        return [item.project_key for item in world.call("list_handoff_report_projects").projects]

    assert listed() == ["zzz", "aaa"]
    world.commit("loose")
    assert listed() == ["zzz", "aaa", "ungrouped"]
    world.workstream(world.project("home"), "loose")
    assert listed() == ["zzz", "aaa", "home"]


def test_the_ungrouped_project_follows_a_full_last_page(world: World) -> None:
    """Would catch a list that ends where the stored projects end."""
    world.project("a")
    world.project("b")
    world.commit("loose")
    first = world.call("list_handoff_report_projects", limit=2)
    assert [item.project_key for item in first.projects] == ["a", "b"]
    second = world.call("list_handoff_report_projects", limit=2, cursor=first.next_cursor)
    assert [item.project_key for item in second.projects] == ["ungrouped"]
    assert second.next_cursor is None


@pytest.mark.parametrize("asked", [{"project_id": "prj_ungrouped"}, {"key": "ungrouped"}])
def test_the_ungrouped_project_can_be_read_while_it_is_empty(world: World, asked: dict[str, str]) -> None:
    answer = world.call("get_handoff_report_project", **asked)
    assert (answer.project.project_id, answer.project_revision) == (UNGROUPED, 0)
    assert world.report(UNGROUPED)["coverage"]["total_included_workstreams"] == 0


def paged(world: World, name: str, member: str, limit: int, **asked: Any) -> list[Any]:
    found: list[Any] = []
    cursor = None
    for _ in range(20):  # a cursor that does not move on has to fail, not to hang
        page = world.call(name, limit=limit, **asked, **({"cursor": cursor} if cursor else {}))
        assert len(getattr(page, member)) <= limit
        found += getattr(page, member)
        cursor = page.next_cursor
        if cursor is None:
            return found
        assert len(cursor) <= 512
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_known_scopes_are_listed_newest_first_without_gap_or_repeat_even_at_equal_times(
    world: World, limit: int
) -> None:
    """Would catch a page that is cut by time alone, or a cursor that cannot hold a long scope."""
    long = "🚀" * 256
    moments = {"a": 0, "b": 0, long: 0, "c": 5, "d": 5, "e": 9, "f": 9}
    for number, (scope_id, later) in enumerate(moments.items()):
        world.commit(scope_id, move_us=later if number in (3, 5) else 0)
    scopes = paged(world, "list_handoff_report_known_scopes", "scopes", limit)
    assert [item.scope_id for item in scopes] == ["e", "f", "c", "d", "a", "b", long]
    ungrouped = paged(world, "list_handoff_report_workstreams", "workstreams", limit, project_id=UNGROUPED)
    assert [item.scope_id for item in ungrouped] == ["e", "f", "c", "d", "a", "b", long]


def test_a_known_scope_names_its_head_and_its_project(world: World) -> None:
    project = world.project("shop")
    world.workstream(project, "mine")
    world.workstream(project, "silent")
    world.commit("mine", objective="one")
    world.commit("loose")
    world.commit("mine", objective="two")
    scopes = world.call("list_handoff_report_known_scopes").scopes
    assert [(item.scope_id, item.handoff_ref.revision, item.project_id) for item in scopes] == [
        ("mine", 2, project.project_id),
        ("loose", 1, None),
    ]
    heads = {item.scope_id: item for item in scopes}
    report = world.report(project, filters={"dispositions": ["continuable"]})
    assert heads["mine"].updated_at == report["workstreams"][0]["recorded_at"]


def test_the_workstream_of_an_ungrouped_scope_is_found_by_its_scope(world: World) -> None:
    world.commit("loose")
    found = world.call("list_handoff_report_workstreams", scope_id="loose").workstreams
    assert [(item.project_id, item.version) for item in found] == [(UNGROUPED, 0)]
    none = world.call("list_handoff_report_workstreams", project_id=UNGROUPED, key="loose").workstreams
    assert none == ()


def test_too_many_ungrouped_scopes_are_refused_and_a_filter_helps(make_world: MakeWorld) -> None:
    world = make_world(workstreams=2)
    for scope_id, disposition in (("a", "blocked"), ("b", "complete"), ("c", "blocked")):
        world.commit(scope_id, disposition)
    error = code_of(lambda: world.report(UNGROUPED))
    assert (error.code, error.members["limit"], error.members["actual"]) == ("too_many_workstreams", 2, 3)
    assert scopes_of(world.report(UNGROUPED, filters={"dispositions": ["blocked"]})) == ["a", "c"]


def test_revisions_are_listed_newest_first_whether_a_scope_is_registered_or_not(world: World) -> None:
    for number in range(1, 6):
        world.commit("loose", "blocked" if number % 2 else "complete", objective=f"objective {number}")
    revisions = paged(world, "list_handoff_report_revisions", "revisions", 2, scope_id="loose")
    assert [(item.handoff_ref.revision, item.objective, item.disposition) for item in revisions] == [
        (5, "objective 5", "blocked"),
        (4, "objective 4", "complete"),
        (3, "objective 3", "blocked"),
        (2, "objective 2", "complete"),
        (1, "objective 1", "blocked"),
    ]
    assert len({item.recorded_at for item in revisions}) == 5


def test_a_scope_without_handoff_has_no_revisions(world: World) -> None:
    world.workstream(world.project("shop"), "a")
    for scope_id in ("a", "unheard of"):
        assert world.call("list_handoff_report_revisions", scope_id=scope_id).revisions == ()
