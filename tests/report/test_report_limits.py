"""Every limit of the room: at it the answer is there, one past it a typed refusal and nothing written."""

from __future__ import annotations

from typing import Any

import pytest
from report_support import MakeWorld, World, code_of, note, scopes_of, statement

from passdown.handoff.service import HandoffService
from passdown.kernel import limits


def project_with(world: World, **members: Any) -> Any:
    return world.call("create_handoff_report_project", **({"key": "shop", "title": "Shop"} | members)).project


def workstream_with(world: World, **members: Any) -> Any:
    projects = world.call("list_handoff_report_projects").projects
    project = projects[0] if projects else world.project("shop")
    return world.workstream(project, **({"scope_id": "a", "title": "A"} | members))


REF = {"kind": "issue", "provider": "p", "external_id": "1"}


@pytest.mark.parametrize(
    ("make", "member", "largest", "rule"),
    [
        (project_with, "key", "k" * 64, "too_long"),
        (project_with, "title", "商" * 256, "too_long"),
        (project_with, "description", "d" * 2_000, "too_long"),
        (workstream_with, "key", "é" * 64, "too_long"),
        (workstream_with, "title", "🚀" * 256, "too_long"),
        (workstream_with, "scope_id", "s" * 256, "too_long"),
    ],
)
def test_a_text_of_the_catalog_is_kept_at_its_limit_and_refused_one_past_it(
    world: World, make: Any, member: str, largest: str, rule: str
) -> None:
    error = code_of(lambda: make(world, **{member: largest + largest[-1]}))
    assert (error.code, error.members["errors"]) == ("invalid_request", [{"field": member, "rule": rule}])
    assert largest in make(world, **{member: largest}).model_dump(mode="json").values()


def test_characters_are_counted_after_composition(world: World) -> None:
    assert project_with(world, title="e\u0301" * 256).title == "\u00e9" * 256


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"labels": [f"label {number}" for number in range(33)]}, "labels"),
        ({"labels": ["x" * 129]}, "labels.0"),
        ({"external_refs": [REF | {"external_id": str(number)} for number in range(33)]}, "external_refs"),
        ({"external_refs": [REF | {"provider": "p" * 65}]}, "external_refs.0.provider"),
        ({"external_refs": [REF | {"external_id": "e" * 257}]}, "external_refs.0.external_id"),
        ({"external_refs": [REF | {"url": "https://e.org/" + "u" * 2_035}]}, "external_refs.0.url"),
    ],
)
def test_labels_and_references_are_refused_one_past_their_limits(
    world: World, members: dict[str, Any], field: str
) -> None:
    error = code_of(lambda: workstream_with(world, **members))
    assert (error.code, error.members["errors"][0]["field"]) == ("invalid_request", field)
    assert world.rows("SELECT COUNT(*) FROM pc_handoff_report_workstreams") == [(0,)]


def test_labels_and_references_are_kept_at_their_limits(world: World) -> None:
    url = "https://e.org/" + "u" * 2_034
    refs = [REF | {"external_id": f"{number:02}" + "e" * 254, "provider": "p" * 64, "url": url} for number in range(32)]
    workstream = workstream_with(world, labels=[f"{number:02}" + "x" * 126 for number in range(32)], external_refs=refs)
    assert (len(workstream.labels), len(workstream.external_refs)) == (32, 32)
    assert (len(workstream.labels[0]), len(workstream.external_refs[0].url)) == (128, 2_048)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://example.org/x",
        "//example.org",
        "https://",
        "https:///path",
        "https://user:secret@example.org/",
        "https://example.org\\@evil.org/",
        "https://example.org/a b",
        "https://example.org/\u2028",
        "https://example.org/\x01",
    ],
)
def test_a_reference_links_to_plain_web_addresses_only(world: World, url: str) -> None:
    error = code_of(lambda: workstream_with(world, external_refs=[REF | {"url": url}]))
    assert error.code == "invalid_request"
    assert "secret" not in str(error.problem())


@pytest.mark.parametrize("url", ["https://example.org", "HTTP://Example.org:8080/a?b=c#d", "https://例子.测试/路径"])
def test_a_plain_web_address_is_kept_as_it_is(world: World, url: str) -> None:
    assert workstream_with(world, external_refs=[REF | {"url": url}]).external_refs[0].url == url


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC", "America/Argentina/Buenos_Aires"])
def test_a_zone_of_the_iana_database_is_kept(world: World, zone: str) -> None:
    assert project_with(world, timezone=zone).timezone == zone


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../../etc/passwd", "/usr/share/zoneinfo/UTC", "+08:00", "localtime"]
)
def test_a_zone_that_does_not_exist_is_refused(world: World, zone: str) -> None:
    error = code_of(lambda: project_with(world, timezone=zone))
    assert (error.code, error.members["errors"]) == ("invalid_request", [{"field": "timezone", "rule": "zone"}])


@pytest.mark.parametrize("key", ["", "a b", "a/b", "🚀", "a\n", "a\u200b", " a"])
def test_a_key_of_other_characters_is_refused(world: World, key: str) -> None:
    assert code_of(lambda: project_with(world, key=key)).code == "invalid_request"


@pytest.mark.parametrize("title", ["", " ", "\n\t", "\u3000"])
def test_a_title_without_text_is_refused(world: World, title: str) -> None:
    error = code_of(lambda: project_with(world, title=title))
    assert (error.code, error.members["errors"]) == ("invalid_request", [{"field": "title", "rule": "empty"}])


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("list_handoff_report_projects", {}),
        ("list_handoff_report_known_scopes", {}),
        ("list_handoff_report_revisions", {"scope_id": "a"}),
        ("list_handoff_report_workstreams", {"project_id": "prj_ungrouped"}),
    ],
)
def test_a_list_gives_one_to_a_hundred_items(world: World, name: str, asked: dict[str, str]) -> None:
    for limit in (1, 100):
        assert world.call(name, limit=limit, **asked).next_cursor is None
    for limit in (0, 101, True, "1"):
        assert code_of(lambda limit=limit: world.call(name, limit=limit, **asked)).code == "invalid_request"


def test_fifty_items_are_listed_unless_said_otherwise(world: World) -> None:
    project = world.project("shop")
    for number in range(51):
        world.workstream(project, f"s{number}")
    page = world.call("list_handoff_report_workstreams", project_id=project.project_id)
    assert (len(page.workstreams), page.next_cursor is not None) == (50, True)


def test_a_report_shows_a_hundred_workstreams_and_refuses_one_more_instead_of_cutting(world: World) -> None:
    project = world.project("shop")
    for number in range(100):
        world.workstream(project, f"s{number}", kind="bug" if number else "feature")
    assert len(world.report(project)["workstreams"]) == 100
    world.workstream(project, "s100", kind="bug")
    error = code_of(lambda: world.report(project))
    assert (error.code, error.members["limit"], error.members["actual"]) == ("too_many_workstreams", 100, 101)
    filtered = world.report(project, filters={"kinds": ["bug"]})
    assert (len(filtered["workstreams"]), filtered["coverage"]["total_included_workstreams"]) == (100, 101)


def test_the_limit_of_workstreams_counts_what_both_stages_leave(make_world: MakeWorld) -> None:
    """Would catch a limit that is applied before the handoffs are looked at."""
    world = make_world(workstreams=2)
    project = world.project("shop")
    for scope_id, disposition in (("a", "blocked"), ("b", "complete"), ("c", "blocked"), ("d", "blocked"), ("e", None)):
        world.workstream(project, scope_id)
        if disposition:
            world.commit(scope_id, disposition)
    assert scopes_of(world.report(project, filters={"dispositions": ["complete", "no_handoff"]})) == ["e", "b"]
    error = code_of(lambda: world.report(project, filters={"dispositions": ["blocked"]}))
    assert (error.code, error.members["limit"], error.members["actual"]) == ("too_many_workstreams", 2, 3)


def test_the_second_stage_sees_every_workstream_of_a_project_larger_than_one_run(make_world: MakeWorld) -> None:
    """Would catch a selection that looks at the first 500 workstreams only."""
    world = make_world()
    project = world.project("shop")
    world.workstream(project, "zz-last")
    world.commit("zz-last", "blocked")
    copies = (
        "INSERT INTO pc_handoff_report_workstreams"
        " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)"
        " SELECT CAST('s' || i AS BLOB), project_id, NULL, version,"
        " catalog_state, created_us, CAST(replace(descriptor, 'zz-last', 's' || i) AS BLOB)"
        " FROM pc_handoff_report_workstreams, n WHERE scope_id = ?"
    )
    world.damage("pc_handoff_report_workstreams", copies, b"zz-last")
    report = world.report(project, filters={"dispositions": ["blocked"]})
    assert scopes_of(report) == ["zz-last"]
    assert report["coverage"]["catalog_matched_workstreams"] == 601
    error = code_of(lambda: world.report(project, filters={"dispositions": ["no_handoff"]}))
    assert (error.code, error.members["actual"]) == ("too_many_workstreams", 600)


def test_an_output_is_given_at_its_limit_and_refused_one_byte_past_it(make_world: MakeWorld) -> None:
    def rendered(form: str, **settings: int) -> Any:
        world = make_world(**settings)
        project = world.project("shop")
        world.workstream(project, "a")
        return world.rendered(project, format=form)

    for form in ("json", "markdown"):
        size = len(rendered(form).body)
        assert len(rendered(form, output_bytes=size).body) == size
        error = code_of(lambda form=form, size=size: rendered(form, output_bytes=size - 1))
        assert error.code == "handoff_report_too_large"
        assert (error.members["limit"], error.members["estimated_bytes"]) == (size - 1, size)
        assert error.members["selected_workstreams"] == 1
        assert error.members["guidance"] == [
            "filter_by_kind_label_or_disposition",
            "turn_off_evidence_checks",
            "export_by_workstream",
        ]


def test_a_report_of_ten_mebibytes_is_whole_and_one_byte_more_is_refused(world: World) -> None:
    """Would catch a statement that is cut, or a limit that counts characters."""
    world.handoffs = HandoffService(world.store, world.clock, world.ids, max_bytes=limits.HANDOFF_BYTES_CONFIGURABLE)
    project = world.project("shop")
    full = [statement("x" * 4_000, "n") for _ in range(62)]
    for number in range(39):
        world.workstream(project, f"s{number:02}")
        world.commit(f"s{number:02}", evidence=[note("n", "n")], state=full)
    world.workstream(project, "t")

    def size_with(state: list[dict[str, Any]]) -> int:
        world.commit("t", evidence=[note("n", "n")], state=state)
        return len(world.rendered(project).body)

    lengths = [1] * 50
    missing = limits.REPORT_BYTES - size_with([statement("x", "n")] * 50)
    assert 0 < missing < 49 * 4_095
    for index in range(50):
        grown = min(missing, 4_095)
        lengths[index] += grown
        missing -= grown
    state = [statement("x" * length, "n") for length in lengths]
    assert size_with(state) == 10_485_760
    state[-1] = statement("xx", "n")
    world.commit("t", evidence=[note("n", "n")], state=state)
    error = code_of(lambda: world.rendered(project))
    assert (error.code, error.members["estimated_bytes"]) == ("handoff_report_too_large", 10_485_761)
    assert error.members["selected_workstreams"] == 40
