"""Projects and workstreams: identity, compare-and-set, uniqueness, history. (Report RFC, "Project and Workstream".)"""

from __future__ import annotations

import threading
from typing import Any

import orjson
import pytest
from report_support import CALLER, START_US, World, code_of

from passdown.kernel.errors import PassdownError
from passdown.report.operations import OPERATIONS


def counter(world: World, project_id: str) -> int:
    revision: int = world.call("get_handoff_report_project", project_id=project_id).project_revision
    return revision


def test_a_new_project_is_included_speaks_chinese_and_stands_at_version_one(world: World) -> None:
    answer = world.call("create_handoff_report_project", key="shop", title="Shop")
    assert answer.project_revision == 1
    assert answer.project.model_dump() == {
        "schema": "powercontext.project.v1",
        "project_id": answer.project.project_id,
        "project_key": "shop",
        "title": "Shop",
        "description": None,
        "default_locale": "zh-CN",
        "timezone": None,
        "catalog_state": "included",
        "version": 1,
    }
    assert answer.project.project_id.startswith("prj_")


def test_a_project_is_found_by_id_and_by_key_with_equal_answers(world: World) -> None:
    project = world.project("shop", description="What sells", timezone="Europe/Berlin", default_locale="en")
    by_id = world.call("get_handoff_report_project", project_id=project.project_id)
    assert by_id == world.call("get_handoff_report_project", key="shop")
    assert by_id.project == project
    assert (project.description, project.timezone, project.default_locale) == ("What sells", "Europe/Berlin", "en")


@pytest.mark.parametrize("asked", [{"project_id": "prj_nobody"}, {"key": "nobody"}, {"key": "SHOP"}, {"key": "shop."}])
def test_a_project_that_does_not_exist_is_refused(world: World, asked: dict[str, str]) -> None:
    world.project("shop")
    assert code_of(lambda: world.call("get_handoff_report_project", **asked)).code == "project_not_found"


@pytest.mark.parametrize("asked", [{}, {"project_id": "prj_x", "key": "x"}])
def test_a_project_is_asked_for_by_exactly_one_name(world: World, asked: dict[str, str]) -> None:
    error = code_of(lambda: world.call("get_handoff_report_project", **asked))
    assert (error.code, error.members["errors"][0]["rule"]) == ("invalid_request", "exactly_one")


def test_a_taken_project_key_is_refused_and_names_the_holder(world: World) -> None:
    holder = world.project("shop")
    error = code_of(lambda: world.project("shop"))
    assert (error.code, error.members["rule"]) == ("project_conflict", "key_taken")
    assert error.members["project_id"] == holder.project_id
    assert len(world.call("list_handoff_report_projects").projects) == 1


@pytest.mark.parametrize("other", ["Shop", "shöp", "sho\u0308p2", "shop.", "shop-"])
def test_keys_are_told_apart_by_their_bytes(world: World, other: str) -> None:
    world.project("shop")
    assert world.project(other).project_key != "shop"


def test_a_key_given_decomposed_is_the_composed_key(world: World) -> None:
    world.project("sho\u0308p")
    assert code_of(lambda: world.project("sh\u00f6p")).members["rule"] == "key_taken"


def test_the_key_of_the_ungrouped_project_is_reserved(world: World) -> None:
    project = world.project("shop")
    for call in (lambda: world.project("ungrouped"), lambda: world.update_project(project, key="ungrouped")):
        error = code_of(call)
        assert (error.code, error.members["rule"]) == ("project_conflict", "reserved")


def test_nothing_can_be_changed_in_or_registered_into_the_ungrouped_project(world: World) -> None:
    change: dict[str, Any] = {"project_id": "prj_ungrouped", "expected_version": 1, "title": "Mine"}
    register = {"project_id": "prj_ungrouped", "title": "Mine"}
    for call in (
        lambda: world.call("update_handoff_report_project", **change),
        lambda: world.call("register_handoff_report_workstream", **register),
    ):
        error = code_of(call)
        assert (error.code, error.members["rule"]) == ("project_conflict", "reserved")


def test_an_update_changes_the_named_members_only(world: World) -> None:
    project = world.project("shop", description="What sells", timezone="Asia/Tokyo")
    changed = world.update_project(project, title="Store").project
    assert changed == project.model_copy(update={"title": "Store", "version": 2})


def test_renaming_a_project_keeps_its_identity_and_frees_the_key(world: World) -> None:
    project = world.project("shop")
    renamed = world.update_project(project, key="store").project
    assert (renamed.project_id, renamed.project_key) == (project.project_id, "store")
    assert world.project("shop").project_id != project.project_id


def test_renaming_a_project_to_its_own_key_is_no_conflict(world: World) -> None:
    project = world.project("shop")
    assert world.update_project(project, key="shop").project.version == 2


def test_a_description_and_a_zone_are_cleared_by_name(world: World) -> None:
    project = world.project("shop", description="What sells", timezone="Asia/Tokyo")
    cleared = world.update_project(project, clear=["description", "timezone"]).project
    assert (cleared.description, cleared.timezone) == (None, None)


def test_a_blank_description_is_none(world: World) -> None:
    project = world.project("shop", description=" \n")
    assert project.description is None
    described = world.update_project(project, description="What sells").project
    assert world.update_project(described, description="").project.description is None


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({}, "no_change"),
        ({"description": "x", "clear": ["description"]}, "set_and_cleared"),
        ({"clear": ["title"]}, "literal_error"),
    ],
)
def test_an_update_that_says_nothing_or_two_things_is_refused(world: World, members: dict[str, Any], rule: str) -> None:
    project = world.project("shop")
    error = code_of(lambda: world.update_project(project, **members))
    assert (error.code, error.members["errors"][0]["rule"]) == ("invalid_request", rule)


def test_a_stale_project_version_is_refused_with_the_current_one(world: World) -> None:
    project = world.project("shop")
    world.update_project(project, title="Store")
    for version in (1, 3):
        error = code_of(lambda version=version: world.update_project(project, expected_version=version, title="X"))
        assert (error.code, error.members["rule"]) == ("project_conflict", "version")
        assert error.members["current_version"] == 2
    assert counter(world, project.project_id) == 2


def test_a_refused_update_leaves_no_trace(world: World) -> None:
    """Would catch a counter that is raised outside of the transaction of the change."""
    project = world.project("shop")
    world.project("store")
    error = code_of(lambda: world.update_project(project, key="store", title="Stolen"))
    assert error.members["rule"] == "key_taken"
    after = world.call("get_handoff_report_project", project_id=project.project_id)
    assert (after.project, after.project_revision) == (project, 1)
    assert world.rows("SELECT COUNT(*) FROM pc_handoff_report_project_revisions") == [(2,)]


def test_an_unknown_project_is_not_updated(world: World) -> None:
    asked: dict[str, Any] = {"project_id": "prj_none", "expected_version": 1, "title": "X"}
    assert code_of(lambda: world.call("update_handoff_report_project", **asked)).code == "project_not_found"


def test_one_of_many_writers_with_one_version_wins(world: World) -> None:
    project = world.project("shop")
    barrier = threading.Barrier(8)
    results: list[str] = []

    def change(number: int) -> None:
        barrier.wait()
        try:
            world.update_project(project, title=f"Title {number}")
            results.append("won")
        except PassdownError as error:
            results.append(error.code)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["project_conflict"] * 7 + ["won"]
    assert counter(world, project.project_id) == 2


def test_every_change_of_project_or_workstream_raises_the_counter_of_that_project_by_one(world: World) -> None:
    shop, other = world.project("shop"), world.project("other")
    first = world.workstream(shop, "a")
    world.workstream(shop, "b")
    world.update_workstream(first, title="A")
    answer = world.update_project(shop, title="Store")
    assert (answer.project_revision, answer.project.version) == (5, 2)
    assert counter(world, other.project_id) == 1


def test_every_success_appends_an_immutable_catalog_revision(world: World) -> None:
    project = world.project("shop")
    workstream = world.workstream(project, "a", title="First")
    world.clock.move(7)
    world.update_workstream(workstream, title="Second")
    rows = world.rows(
        "SELECT version, catalog_revision, effective_us, descriptor FROM pc_handoff_report_workstream_revisions"
        " WHERE scope_id = :s ORDER BY version",
        s=b"a",
    )
    assert [row[:3] for row in rows] == [(1, 2, START_US), (2, 3, START_US + 7)]
    assert [orjson.loads(row[3])["title"] for row in rows] == ["First", "Second"]


def test_times_of_catalog_revisions_do_not_go_back_with_the_clock(world: World) -> None:
    project = world.project("shop")
    world.clock.move(-3_600_000_000)
    workstream = world.workstream(project, "a")
    world.clock.move(7_200_000_000)
    world.update_workstream(workstream, title="A")
    world.clock.move(-7_200_000_000)
    world.update_project(project, title="Store")
    times = world.rows(
        "SELECT effective_us FROM pc_handoff_report_workstream_revisions"
        " UNION ALL SELECT effective_us FROM pc_handoff_report_project_revisions WHERE version = 2"
    )
    assert [row[0] - START_US for row in times] == [0, 3_600_000_000, 3_600_000_000]


def test_an_archived_project_is_listed_only_on_request_and_found_by_id(world: World) -> None:
    project = world.project("shop")
    world.project("other")
    archived = world.update_project(project, catalog_state="archived").project
    assert [item.project_key for item in world.call("list_handoff_report_projects").projects] == ["other"]
    every = world.call("list_handoff_report_projects", include_archived=True).projects
    assert [item.catalog_state for item in every] == ["archived", "included"]
    assert world.call("get_handoff_report_project", project_id=project.project_id).project == archived
    restored = world.update_project(archived, catalog_state="included").project
    assert (restored.catalog_state, restored.version) == ("included", 3)


def test_nothing_is_registered_into_an_archived_project(world: World) -> None:
    """Would catch a new workstream that is out of sight at once."""
    project = world.project("shop")
    world.update_project(project, catalog_state="archived")
    error = code_of(lambda: world.workstream(project, "a"))
    assert (error.code, error.members["rule"], error.members["current_version"]) == ("project_conflict", "archived", 2)
    assert world.call("list_handoff_report_workstreams", scope_id="a").workstreams == ()


def test_projects_are_listed_in_order_of_creation_page_by_page(world: World) -> None:
    made = [world.project(f"p{number}").project_id for number in range(5)]
    seen: list[str] = []
    cursor, pages = None, 0
    while pages < 9 and (pages == 0 or cursor is not None):
        page = world.call("list_handoff_report_projects", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item.project_id for item in page.projects]
        cursor, pages = page.next_cursor, pages + 1
    assert (seen, pages) == (made, 3)


def test_a_workstream_keeps_what_it_was_registered_with(world: World) -> None:
    project = world.project("shop")
    reference = {"kind": "issue", "provider": "tracker", "external_id": "142", "url": "https://example.org/142"}
    workstream = world.workstream(
        project, "checkout", key="PC-142", title="Checkout", kind="feature", external_refs=[reference], labels=["ui"]
    )
    assert workstream.model_dump(mode="json") == {
        "schema": "powercontext.workstream.v1",
        "scope_id": "checkout",
        "project_id": project.project_id,
        "key": "PC-142",
        "title": "Checkout",
        "kind": "feature",
        "catalog_state": "included",
        "external_refs": [reference],
        "labels": ["ui"],
        "version": 1,
    }


def test_a_workstream_without_scope_gets_a_new_one(world: World) -> None:
    project = world.project("shop")
    first, second = world.workstream(project, title="One"), world.workstream(project, title="One")
    assert first.scope_id.startswith("scp_")
    assert first.scope_id != second.scope_id


def test_a_scope_belongs_to_one_project_only(world: World) -> None:
    first, second = world.project("shop"), world.project("other")
    world.workstream(first, "a", key="k")
    for project, key in ((first, "k"), (first, "new"), (second, "k")):
        error = code_of(lambda project=project, key=key: world.workstream(project, "a", key=key))
        assert (error.code, error.members["project_id"]) == ("scope_already_grouped", first.project_id)
    assert counter(world, second.project_id) == 1


def test_scopes_that_look_alike_are_different_workstreams(world: World) -> None:
    project = world.project("shop")
    names = ["n1", "N1", "n\u00b9", "né1", "n🚀", "n🚁"]
    for name in names:
        world.workstream(project, name)
    listed = world.call("list_handoff_report_workstreams", project_id=project.project_id).workstreams
    assert [item.scope_id for item in listed] == names


def test_a_workstream_key_is_unique_in_its_project_and_free_in_another(world: World) -> None:
    first, second = world.project("shop"), world.project("other")
    world.workstream(first, "a", key="k")
    world.workstream(second, "b", key="k")
    error = code_of(lambda: world.workstream(first, "c", key="k"))
    assert (error.code, error.members["rule"]) == ("workstream_conflict", "key_taken")
    third = world.workstream(first, "d", key="free")
    assert code_of(lambda: world.update_workstream(third, key="k")).members["rule"] == "key_taken"
    assert world.update_workstream(third, key="free").workstream.version == 2


def test_many_workstreams_may_have_no_key(world: World) -> None:
    project = world.project("shop")
    keyed = world.workstream(project, "a", key="k")
    world.workstream(project, "b")
    assert world.update_workstream(keyed, clear=["key"]).workstream.key is None
    assert world.workstream(project, "c", key="k").key == "k"


def test_a_stale_workstream_version_is_refused_with_the_current_one(world: World) -> None:
    project = world.project("shop")
    workstream = world.workstream(project, "a")
    world.update_workstream(workstream, title="New")
    error = code_of(lambda: world.update_workstream(workstream, title="Old"))
    assert (error.code, error.members["rule"], error.members["current_version"]) == (
        "workstream_conflict",
        "version",
        2,
    )
    assert counter(world, project.project_id) == 3


def test_an_unregistered_scope_has_no_descriptor_to_change(world: World) -> None:
    world.commit("loose")
    asked: dict[str, Any] = {"scope_id": "loose", "expected_version": 1, "title": "X"}
    assert code_of(lambda: world.call("update_handoff_report_workstream", **asked)).code == "workstream_not_found"


def test_labels_and_references_are_kept_as_sorted_sets(world: World) -> None:
    project = world.project("shop")
    issue = {"kind": "issue", "provider": "tracker", "external_id": "1", "url": None}
    branch = {"kind": "branch", "provider": "git", "external_id": "main", "url": None}
    workstream = world.workstream(project, "a", labels=["é", "Z", "a", "e\u0301"], external_refs=[issue, branch, issue])
    assert workstream.labels == ("Z", "a", "\u00e9")
    # By their canonical bytes, which begin with `external_id`.
    assert [item.external_id for item in workstream.external_refs] == ["1", "main"]
    emptied = world.update_workstream(workstream, labels=[], external_refs=[]).workstream
    assert (emptied.labels, emptied.external_refs) == ((), ())


def test_a_workstream_is_found_by_scope_or_key_even_when_archived(world: World) -> None:
    project = world.project("shop")
    workstream = world.workstream(project, "a", key="k")
    archived = world.update_workstream(workstream, catalog_state="archived").workstream
    where = {"project_id": project.project_id}
    assert world.call("list_handoff_report_workstreams", **where).workstreams == ()
    for asked in (
        {"scope_id": "a"},
        where | {"key": "k"},
        where | {"scope_id": "a"},
        where | {"include_archived": True},
    ):
        assert world.call("list_handoff_report_workstreams", **asked).workstreams == (archived,)
    other = world.project("other")
    for asked in ({"scope_id": "b"}, where | {"key": "K"}, {"project_id": other.project_id, "scope_id": "a"}):
        assert world.call("list_handoff_report_workstreams", **asked).workstreams == ()


def test_workstreams_are_listed_in_order_of_registration_page_by_page(world: World) -> None:
    project = world.project("shop")
    long = "z" * 256
    for name in (long, "m", "a", "b"):
        workstream = world.workstream(project, name)
        world.update_workstream(workstream, title="changed")
    seen: list[str] = []
    cursor = None
    for size in (1, 1, 2):
        page = world.call(
            "list_handoff_report_workstreams",
            project_id=project.project_id,
            limit=size,
            **({"cursor": cursor} if cursor else {}),
        )
        seen += [item.scope_id for item in page.workstreams]
        cursor = page.next_cursor
        assert cursor is None or len(cursor) <= 512
    assert (seen, cursor) == ([long, "m", "a", "b"], None)


@pytest.mark.parametrize("asked", [{}, {"key": "k"}, {"scope_id": "a", "key": "k"}])
def test_workstreams_are_asked_for_by_project_or_scope(world: World, asked: dict[str, str]) -> None:
    error = code_of(lambda: world.call("list_handoff_report_workstreams", **asked))
    assert (error.code, error.members["errors"][0]["rule"]) == ("invalid_request", "project_or_scope")


def test_workstreams_of_an_unknown_project_are_refused(world: World) -> None:
    assert (
        code_of(lambda: world.call("list_handoff_report_workstreams", project_id="prj_x")).code == "project_not_found"
    )


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("list_handoff_report_projects", {}),
        ("list_handoff_report_known_scopes", {}),
        ("list_handoff_report_revisions", {"scope_id": "a"}),
        ("list_handoff_report_workstreams", {"project_id": "prj_ungrouped"}),
    ],
)
def test_a_cursor_that_the_list_never_gave_is_refused(world: World, name: str, asked: dict[str, str]) -> None:
    world.workstream(world.project("shop"), "a")
    world.workstream(world.project("other"), "b")
    foreign = world.call("list_handoff_report_projects", limit=1).next_cursor
    assert foreign is not None
    wrong = ["", "x", "!!!!", "AAAA", foreign[:8], "A" * 513]
    for cursor in wrong if name == "list_handoff_report_projects" else [*wrong, foreign]:
        error = code_of(lambda cursor=cursor: world.call(name, cursor=cursor, **asked))
        assert error.code == ("invalid_cursor" if len(cursor) <= 512 else "invalid_request")


def test_only_tables_of_the_report_are_written_by_the_catalog(world: World) -> None:
    """Would catch a catalog that touches the handoff core."""
    project = world.project("shop")
    workstream = world.workstream(project, "a")
    world.update_workstream(workstream, title="A")
    world.update_project(project, title="S")
    written = [sql for sql, _ in world.store.log if sql.split()[0] in {"INSERT", "UPDATE", "DELETE"}]
    assert len(written) == 11
    assert all("pc_handoff_report_" in sql and "pd_" not in sql for sql in written)


def test_every_operation_has_a_handler_and_its_path(world: World) -> None:
    assert {op.name for op in OPERATIONS} == set(world.handlers)
    paths = {op.name: op.path.removeprefix("/v1/handoff-reports") for op in OPERATIONS}
    assert paths == {
        "create_handoff_report_project": "/projects/create",
        "get_handoff_report_project": "/projects/get",
        "update_handoff_report_project": "/projects/update",
        "list_handoff_report_projects": "/projects/list",
        "list_handoff_report_known_scopes": "/scopes/list-known",
        "register_handoff_report_workstream": "/workstreams/register",
        "update_handoff_report_workstream": "/workstreams/update",
        "list_handoff_report_workstreams": "/workstreams/list",
        "list_handoff_report_revisions": "/revisions/list",
        "get_handoff_report": "/get",
    }
    assert CALLER.may("change")
