"""What a report says of each workstream: content, checks, evidence, statuses, coverage. (Report RFC, "Progress".)"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from report_support import (
    CALLER,
    START_US,
    World,
    cite,
    code_of,
    commit_read,
    file_read,
    note,
    of,
    statement,
)

from passdown.handoff.models import HandoffContent
from passdown.handoff.operations import GetHandoffAsk
from passdown.kernel.timestamps import format_timestamp
from passdown.kernel.wire import build


def one(world: World, disposition: str = "continuable", **content: Any) -> Any:
    project = world.project("shop")
    world.workstream(project, "a")
    world.commit("a", disposition, **content)
    return project


def lose_source(world: World, source_type: str) -> None:
    world.damage("pd_sources", "DELETE FROM pd_sources WHERE source_type = ?", source_type.encode())


def test_a_report_carries_the_committed_content_exactly(world: World) -> None:
    project = one(
        world,
        objective="Zeilen\r\nund 目标 🚀",
        evidence=[note("n", "why"), note("m", "how")],
        state=[statement("first", "n", "m"), statement("second", "m")],
        next_action=statement("then", "n"),
        omissions=[{"text": "left out", "citation": cite("m")}, {"text": "and this"}],
    )
    stored = world.handoffs.get_handoff(CALLER, build(GetHandoffAsk, scope_id="a")).handoff
    item = of(world.report(project), "a")
    assert item["content"] == stored.content.model_dump(mode="json")
    assert item["content"]["objective"] == "Zeilen\nund 目标 🚀"
    assert item["handoff_ref"] == stored.handoff_ref.model_dump(mode="json")
    assert item["recorded_at"] == stored.recorded_at
    assert isinstance(HandoffContent.model_validate_json(orjson.dumps(item["content"])), HandoffContent)


def test_a_workstream_shows_its_latest_revision_only(world: World) -> None:
    project = one(world, objective="first")
    world.commit("a", "blocked", objective="second")
    report = world.report(project)
    assert len(report["workstreams"]) == 1
    item = of(report, "a")
    assert (item["content"]["objective"], item["handoff_ref"]["revision"]) == ("second", 2)


def test_every_distinct_citation_is_shown_once_in_order_of_first_appearance(world: World) -> None:
    project = one(
        world,
        evidence=[note(name, name) for name in "abcd"],
        state=[statement("one", "c", "a"), statement("two", "a", "b")],
        next_action=statement("next", "b", "c"),
        omissions=[{"text": "left", "citation": cite("d")}],
    )
    assert [item["label"] for item in of(world.report(project), "a")["evidence"]] == ["c", "a", "b", "d"]


def test_evidence_says_who_read_it_and_where_a_commit_was_pushed(world: World) -> None:
    project = one(
        world,
        evidence=[
            note("said", "said by hand"),
            file_read("file", "src/queue.py"),
            commit_read("pushed", 1, ["origin/main"]),
            commit_read("local", 2, []),
            commit_read("unread", 3, None),
        ],
        state=[statement("s", "said", "file", "pushed", "local", "unread")],
    )
    shown = of(world.report(project), "a")["evidence"]
    assert [(item["assurance"], item["read_by"], item["remote_refs"], item["readable"]) for item in shown] == [
        ("caller_supplied", None, None, True),
        ("host_read", "workbench", None, True),
        ("host_read", "workbench", ["origin/main"], True),
        ("host_read", "workbench", [], True),
        ("host_read", "workbench", None, True),
    ]
    assert [item["citation"]["source_ref"]["source_type"] for item in shown] == [
        "content", "file", "git_commit", "git_commit", "git_commit",
    ]  # fmt: skip


def test_a_cited_revision_is_readable_if_it_is_one_of_this_scope(world: World) -> None:
    project = one(world)
    first = of(world.report(project), "a")["handoff_ref"]
    world.commit(
        "a",
        objective="later",
        evidence=[note("n", "n")],
        state=[
            {"text": "as before", "citations": [{"kind": "artifact", "artifact_ref": first}]},
            statement("new", "n"),
        ],
    )
    item = of(world.report(project), "a")
    assert item["evidence"][0] == {
        "citation": {"kind": "artifact", "artifact_ref": first},
        "assurance": None,
        "label": "handoff #1",
        "readable": True,
        "read_by": None,
        "remote_refs": None,
    }
    assert [check["status"] for check in item["evidence_checks"]] == ["available", "available"]
    world.damage("pd_handoff_revisions", "DELETE FROM pd_handoff_revisions WHERE revision = 1")
    item = of(world.report(project), "a")
    assert [entry["readable"] for entry in item["evidence"]] == [False, True]
    assert item["evidence_checks"][0]["unavailable_evidence"] == [{"kind": "artifact", "artifact_ref": first}]


def test_a_cited_revision_of_another_artifact_is_not_readable(world: World) -> None:
    """Would catch a check that looks at the number of the revision only."""
    project = one(world)
    ref = of(world.report(project), "a")["handoff_ref"]
    world.commit(
        "a", objective="later", state=[{"text": "t", "citations": [{"kind": "artifact", "artifact_ref": ref}]}]
    )
    world.damage(
        "pd_handoff_revisions",
        "UPDATE pd_handoff_revisions SET content = replace(content, ?, ?) WHERE revision = 2",
        ref["artifact_id"],
        "hnd_of_somebody_else",
    )
    item = of(world.report(project), "a")
    assert item["evidence"][0]["readable"] is False
    assert item["reporting_status"] == "evidence_unavailable"


def test_every_claim_is_checked_and_names_what_cannot_be_read(world: World) -> None:
    project = one(
        world,
        evidence=[note("n", "n"), file_read("f", "a.py")],
        state=[statement("one", "n"), statement("two", "f", "n")],
        next_action=statement("next", "f"),
    )
    lose_source(world, "file")
    item = of(world.report(project), "a")
    gone = item["evidence"][1]["citation"]
    assert item["evidence_checks"] == [
        {"claim": "state", "state_index": 0, "status": "available", "unavailable_evidence": []},
        {"claim": "state", "state_index": 1, "status": "unavailable", "unavailable_evidence": [gone]},
        {"claim": "next_action", "state_index": None, "status": "unavailable", "unavailable_evidence": [gone]},
    ]
    assert item["reporting_status"] == "evidence_unavailable"
    assert item["evidence"][1] == {
        "citation": gone,
        "assurance": None,
        "label": gone["source_ref"]["source_id"],
        "readable": False,
        "read_by": None,
        "remote_refs": None,
    }


def test_one_workstream_with_missing_evidence_hides_no_other(world: World) -> None:
    project = one(world, evidence=[file_read("f", "a.py")])
    world.workstream(project, "b")
    world.commit("b")
    lose_source(world, "file")
    report = world.report(project)
    assert of(report, "a")["reporting_status"] == "evidence_unavailable"
    assert of(report, "b")["reporting_status"] == "reported"
    assert report["coverage"]["unavailable_evidence_workstreams"] == 1


def test_checks_that_were_turned_off_are_never_shown_as_available(world: World) -> None:
    project = one(world, evidence=[note("n", "n"), file_read("f", "a.py")], state=[statement("s", "n", "f")])
    world.workstream(project, "silent")
    lose_source(world, "file")
    report = world.report(project, include_evidence_checks=False)
    item = of(report, "a")
    assert item["evidence_checks"] == "not_checked"
    assert [entry["readable"] for entry in item["evidence"]] == [None, None]
    assert item["reporting_status"] == "reported"
    assert of(report, "silent")["evidence_checks"] == []
    coverage = report["coverage"]
    assert (coverage["unchecked_evidence_workstreams"], coverage["unavailable_evidence_workstreams"]) == (1, 0)
    assert world.report(project)["coverage"]["unchecked_evidence_workstreams"] == 0


def test_turning_checks_off_changes_the_report_and_not_the_selection(world: World) -> None:
    project = one(world)
    on, off = world.report(project), world.report(project, include_evidence_checks=False)
    assert on["selection_digest"] == off["selection_digest"]
    assert on["report_digest"] != off["report_digest"]


def test_known_omissions_show_in_status_and_coverage_and_weigh_less_than_missing_evidence(world: World) -> None:
    omissions = [{"text": "not looked at"}]
    project = one(world, omissions=omissions)
    world.workstream(project, "b")
    world.commit("b", evidence=[file_read("f", "b.py")], omissions=omissions)
    lose_source(world, "file")
    report = world.report(project)
    assert of(report, "a")["reporting_status"] == "reported_with_omissions"
    assert of(report, "b")["reporting_status"] == "evidence_unavailable"
    assert report["coverage"]["reported_with_omissions"] == 2
    assert report["coverage"]["unavailable_evidence_workstreams"] == 1


@pytest.mark.parametrize(
    ("disposition", "evidence", "unproved"),
    [
        ("complete", [note("e", "trust me")], True),
        ("complete", [file_read("e", "a.py")], False),
        ("continuable", [note("e", "trust me")], False),
        ("blocked", [note("e", "trust me")], False),
    ],
)
def test_only_a_complete_that_rests_on_words_alone_is_unproved(
    world: World, disposition: str, evidence: list[Any], unproved: bool
) -> None:
    project = one(world, disposition, evidence=evidence, state=[statement("s", "e")])
    for checks in (True, False):
        assert of(world.report(project, include_evidence_checks=checks), "a")["unproved"] is unproved


def test_an_invented_commit_of_a_caller_without_checkout_proves_nothing(world: World) -> None:
    project = one(world, "complete", evidence=[commit_read("c", 99, ["origin/main"])], who=CALLER)
    item = of(world.report(project), "a")
    assert (item["unproved"], item["evidence"][0]["assurance"]) == (True, "caller_supplied")


def test_a_complete_whose_only_reading_is_gone_is_unproved(world: World) -> None:
    project = one(world, "complete", evidence=[file_read("f", "a.py")])
    lose_source(world, "file")
    assert of(world.report(project), "a")["unproved"] is True


def test_a_workstream_without_handoff_is_shown_as_that_and_as_nothing_more(world: World) -> None:
    project = world.project("shop")
    workstream = world.workstream(project, "silent")
    report = world.report(project)
    assert report["workstreams"] == [
        {
            "workstream": workstream.model_dump(mode="json"),
            "handoff_ref": None,
            "recorded_at": None,
            "content": None,
            "evidence_checks": [],
            "evidence": [],
            "unproved": False,
            "reporting_status": "no_handoff",
            "activity_status": "unknown",
            "handoff_activity_relation": None,
            "observed_activity_count": 0,
            "activities": [],
            "temporal_basis": {"baseline": None, "end": None},
            "baseline": None,
        }
    ]


def test_without_any_feed_activity_is_unknown_and_not_none(world: World) -> None:
    report = world.report(one(world))
    item = of(report, "a")
    assert (item["activity_status"], item["handoff_activity_relation"]) == ("unknown", "unknown")
    assert item["temporal_basis"] == {"baseline": None, "end": None}
    coverage = report["coverage"]
    assert coverage["enabled_activity_sources"] == []
    assert coverage["unavailable_activity_sources"] == [
        {"source": source, "reason": "never_run"}
        for source in ("coding_session", "git_commit", "git_worktree", "handoff_observation")
    ]


def test_summary_and_coverage_count_each_state_of_the_selection(world: World) -> None:
    project = world.project("shop")
    for number, disposition in enumerate(["blocked", "blocked", "complete", "continuable", None, None, None]):
        world.workstream(project, f"s{number}", labels=["shown"] if number else [])
        if disposition:
            world.commit(f"s{number}", disposition)
    report = world.report(project, filters={"labels": ["shown"]})
    assert report["summary"] == {
        "continuable_count": 1, "blocked_count": 1, "complete_count": 1, "no_handoff_count": 3,
    }  # fmt: skip
    coverage = report["coverage"]
    assert (coverage["total_included_workstreams"], coverage["catalog_matched_workstreams"]) == (7, 6)
    assert (coverage["selected_workstreams"], coverage["missing_handoff_workstreams"]) == (6, 3)


def test_a_report_is_a_snapshot_of_the_descriptors_at_its_counter(world: World) -> None:
    project = world.project("shop", title="Shop")
    workstream = world.workstream(project, "a", title="Before")
    before = world.rendered(project).body
    world.update_workstream(workstream, title="After")
    after = world.report(project)
    assert orjson.loads(before)["workstreams"][0]["workstream"]["title"] == "Before"
    assert of(after, "a")["workstream"]["title"] == "After"
    assert (orjson.loads(before)["project_revision"], after["project_revision"]) == (2, 3)
    assert after["end_selection"][0]["workstream_revision"] == 2


def test_a_requested_summary_is_unavailable_and_the_rest_is_the_same(world: World) -> None:
    project = one(world)
    plain, asked = world.report(project), world.report(project, include_generated_summary=True)
    assert plain["generated_summary"] is None
    assert asked["generated_summary"] == {
        "trust": "generated_untrusted", "status": "unavailable", "text": None, "citations": [],
    }  # fmt: skip
    different = {name for name in plain if plain[name] != asked[name]}
    assert different == {"generated_summary", "report_digest"}


def test_the_locale_is_the_asked_one_or_else_that_of_the_project(world: World) -> None:
    chinese, english = world.project("zh"), world.project("en", default_locale="en")
    assert world.report(chinese)["locale"] == "zh-CN"
    assert world.report(english)["locale"] == "en"
    assert world.report(english, locale="zh-CN")["locale"] == "zh-CN"


@pytest.mark.parametrize(
    ("asked", "version", "media_type", "suffix"),
    [
        ({"format": "json", "locale": "en"}, "json.v1", "application/json", "json"),
        ({"format": "markdown", "locale": "en"}, "markdown.en.v1", "text/markdown; charset=utf-8", "md"),
        ({"format": "markdown"}, "markdown.zh-CN.v1", "text/markdown; charset=utf-8", "md"),
    ],
)
def test_each_projection_names_its_renderer_type_and_file(
    make_world: Any, asked: dict[str, str], version: str, media_type: str, suffix: str
) -> None:
    given: list[dict[str, Any]] = []
    world = make_world(renderer=lambda report: given.append(report) or b"# text\n")
    project = one(world)
    rendered = world.rendered(project, **asked)
    report = orjson.loads(rendered.body) if asked["format"] == "json" else given[0]
    assert (report["renderer_version"], report["format"]) == (version, asked["format"])
    assert rendered.media_type == media_type
    digest = rendered.selection_digest.removeprefix("sha256:")[:12]
    assert rendered.file_name == f"handoff-report-{project.project_id}-{digest}.{suffix}"
    assert (rendered.body == b"# text\n") is (suffix == "md")


def test_the_time_of_making_is_the_only_clock_value(world: World) -> None:
    project = one(world)
    first = world.report(project)
    world.clock.move(123_456)
    second = world.report(project)
    assert first["generated_at"] == format_timestamp(START_US + 1_000_000)
    assert {name for name in first if first[name] != second[name]} == {"generated_at", "report_digest"}


def test_download_changes_no_byte(world: World) -> None:
    project = one(world)
    assert world.rendered(project, download=True) == world.rendered(project)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"locale": "fr"}, "unsupported_report_locale"),
        ({"locale": "zh-cn"}, "unsupported_report_locale"),
        ({"locale": 7}, "invalid_request"),
        ({"format": "html"}, "unsupported_report_format"),
        ({"format": None}, "invalid_request"),
        ({"project_id": "prj_unknown"}, "project_not_found"),
        ({"period": None}, "invalid_request"),
    ],
)
def test_a_report_that_is_not_offered_is_refused_by_name(world: World, asked: dict[str, Any], code: str) -> None:
    project = world.project("shop")
    members = {"project_id": project.project_id} | asked
    assert code_of(lambda: world.call("get_handoff_report", **members)).code == code


def test_an_unset_format_is_markdown(world: World) -> None:
    project = world.project("shop")
    assert world.call("get_handoff_report", project_id=project.project_id).file_name.endswith(".md")
