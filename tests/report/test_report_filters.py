"""What a report shows: filters in two stages, and the order of what is left. (Report RFC, "Consistency" 4 and 5.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_support import World, code_of, scopes_of

from passdown.kernel.wire import dump, validate
from passdown.report import assemble
from passdown.report.assemble import Frozen, Member, Settings
from passdown.report.filters import catalog_matches, disposition_matches
from passdown.report.models import Filters
from passdown.report.port import EvidenceFact, Exact, Head, Revision

ISSUE = {"kind": "issue", "provider": "tracker", "external_id": "7"}
BRANCH = {"kind": "branch", "provider": "git", "external_id": "main"}


def shop(world: World) -> Any:
    """Six workstreams, one of them archived, that differ in every member that filters know."""
    project = world.project("shop")
    world.workstream(project, "blocked-bug", kind="bug", labels=["ui", "api"], external_refs=[ISSUE])
    world.workstream(project, "open-feature", kind="feature", labels=["ui"], external_refs=[BRANCH])
    world.workstream(project, "done-feature", kind="feature", external_refs=[ISSUE | {"provider": "other"}, BRANCH])
    world.workstream(project, "silent-bug", kind="bug", labels=["UI"])
    world.workstream(project, "open-other", labels=["api"])
    archived = world.workstream(project, "old-bug", kind="bug", labels=["ui"])
    world.update_workstream(archived, catalog_state="archived")
    for scope_id, disposition in (
        ("blocked-bug", "blocked"),
        ("open-feature", "continuable"),
        ("done-feature", "complete"),
        ("open-other", "continuable"),
        ("old-bug", "complete"),
    ):
        world.commit(scope_id, disposition)
    return project


@pytest.mark.parametrize(
    ("filters", "shown", "matched"),
    [
        ({}, "blocked-bug open-feature open-other silent-bug done-feature", 5),
        ({"kinds": ["bug"]}, "blocked-bug silent-bug", 2),
        ({"kinds": ["bug", "feature"]}, "blocked-bug open-feature silent-bug done-feature", 4),
        ({"kinds": ["research"]}, "", 0),
        ({"labels": ["ui"]}, "blocked-bug open-feature", 2),
        ({"labels": ["ui", "api"]}, "blocked-bug open-feature open-other", 3),
        ({"labels": ["ui"], "kinds": ["bug"]}, "blocked-bug", 1),
        ({"dispositions": ["blocked"]}, "blocked-bug", 5),
        ({"dispositions": ["no_handoff"]}, "silent-bug", 5),
        ({"dispositions": ["complete", "no_handoff"]}, "silent-bug done-feature", 5),
        ({"dispositions": ["complete"], "kinds": ["bug"]}, "", 2),
        ({"external_refs": [{"kind": "issue"}]}, "blocked-bug done-feature", 2),
        ({"external_refs": [{"provider": "tracker"}]}, "blocked-bug", 1),
        ({"external_refs": [{"kind": "issue", "external_id": "8"}]}, "", 0),
        ({"external_refs": [BRANCH]}, "open-feature done-feature", 2),
        ({"external_refs": [{"external_id": "main"}, {"provider": "tracker"}]},
         "blocked-bug open-feature done-feature", 3),
        # One reference has to match as a whole, not one member here and another there.
        ({"external_refs": [{"kind": "branch", "provider": "other"}]}, "", 0),
        # Filters of observed activity leave workstreams alone.
        ({"activity_sources": ["git_commit"], "agent_labels": ["x"], "time_bases": ["unknown"]},
         "blocked-bug open-feature open-other silent-bug done-feature", 5),
    ],
)  # fmt: skip
def test_filters_show_what_matches_and_count_what_they_hide(
    world: World, filters: dict[str, Any], shown: str, matched: int
) -> None:
    report = world.report(shop(world), filters=filters)
    assert scopes_of(report) == shown.split()
    assert {entry["scope_id"] for entry in report["end_selection"]} == set(shown.split())
    coverage = report["coverage"]
    assert coverage["total_included_workstreams"] == 5
    assert coverage["catalog_matched_workstreams"] == matched
    assert coverage["selected_workstreams"] == len(shown.split())


def test_archived_workstreams_are_shown_and_counted_only_on_request(world: World) -> None:
    report = world.report(shop(world), filters={"include_archived": True, "kinds": ["bug"]})
    assert scopes_of(report) == ["blocked-bug", "silent-bug", "old-bug"]
    assert report["coverage"]["total_included_workstreams"] == 6


def test_an_archived_project_is_reported_by_its_exact_id(world: World) -> None:
    project = shop(world)
    world.update_project(project, catalog_state="archived")
    report = world.report(project)
    assert (report["project"]["catalog_state"], len(report["workstreams"])) == ("archived", 5)


def test_filters_are_recorded_sorted_without_repeats_and_with_every_member(world: World) -> None:
    filters = {
        "kinds": ["feature", "bug", "feature"],
        "dispositions": ["no_handoff", "blocked"],
        "labels": ["é", "z", "e\u0301", "Z"],
        "external_refs": [{"kind": "task"}, {"external_id": "a"}, {"kind": "task", "provider": None}],
        "activity_sources": ["other", "git_commit"],
    }
    assert world.report(shop(world), filters=filters)["filters"] == {
        "kinds": ["bug", "feature"],
        "dispositions": ["blocked", "no_handoff"],
        "labels": ["Z", "z", "\u00e9"],
        "external_refs": [
            {"kind": None, "provider": None, "external_id": "a"},
            {"kind": "task", "provider": None, "external_id": None},
        ],
        "activity_sources": ["git_commit", "other"],
        "agent_labels": [],
        "time_bases": [],
        "include_archived": False,
    }


@pytest.mark.parametrize(
    ("filters", "rule"),
    [
        ({"external_refs": [{}]}, "matches_all"),
        ({"external_refs": [{"kind": None, "provider": None, "external_id": None}]}, "matches_all"),
        ({"kinds": ["epic"]}, "literal_error"),
        ({"dispositions": ["unknown"]}, "literal_error"),
        ({"include_archived": 1}, "bool_type"),
        ({"labels": ["x" * 129]}, "too_long"),
        ({"labels": "ui"}, "tuple_type"),
        ({"owner": ["me"]}, "extra_forbidden"),
    ],
)
def test_a_filter_of_another_form_is_refused(world: World, filters: dict[str, Any], rule: str) -> None:
    project = world.project("shop")
    error = code_of(lambda: world.report(project, filters=filters))
    assert (error.code, error.members["errors"][0]["rule"]) == ("invalid_request", rule)


def test_a_member_of_the_filters_holds_a_hundred_values_and_not_one_more(world: World) -> None:
    project = world.project("shop")
    values = [f"label {number}" for number in range(101)]
    assert len(world.report(project, filters={"labels": values[:100]})["filters"]["labels"]) == 100
    assert code_of(lambda: world.report(project, filters={"labels": values})).code == "invalid_request"


# --- properties -------------------------------------------------------------------------------------------------------

KINDS = ["feature", "bug", "other"]
LABELS = ["ui", "api", "é"]
REFS = [{"kind": kind, "provider": provider, "external_id": number, "url": None}
        for kind in ("issue", "branch") for provider in ("a", "b") for number in ("1", "2")]  # fmt: skip
DISPOSITIONS = ["continuable", "blocked", "complete", None]

workstreams = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "labels": st.lists(st.sampled_from(LABELS), unique=True),
        "external_refs": st.lists(st.sampled_from(REFS), max_size=3),
    }
)
wanted_refs = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["issue", "branch", None]),
        "provider": st.sampled_from(["a", "b", None]),
        "external_id": st.sampled_from(["1", "2", None]),
    }
).filter(lambda ref: any(ref.values()))


@given(
    workstreams,
    st.sampled_from(DISPOSITIONS),
    st.lists(st.sampled_from(KINDS)),
    st.lists(st.sampled_from(LABELS)),
    st.lists(wanted_refs, max_size=3),
    st.lists(st.sampled_from(["continuable", "blocked", "complete", "no_handoff"])),
)
def test_filters_are_or_within_a_member_and_and_across(
    workstream: dict[str, Any],
    disposition: str | None,
    kinds: list[str],
    labels: list[str],
    refs: list[dict[str, Any]],
    dispositions: list[str],
) -> None:
    filters = validate(Filters, {"kinds": kinds, "labels": labels, "external_refs": refs, "dispositions": dispositions})
    of_refs = [
        all(value is None or have[name] == value for name, value in want.items())
        for want in refs
        for have in workstream["external_refs"]
    ]
    assert catalog_matches(filters)(workstream) == (
        (kinds == [] or any(kind == workstream["kind"] for kind in kinds))
        and (labels == [] or any(label in workstream["labels"] for label in labels))
        and (refs == [] or any(of_refs))
    )
    named = "no_handoff" if disposition is None else disposition
    assert disposition_matches(filters, disposition) == (dispositions == [] or named in dispositions)


def member(scope_id: str, title: str, disposition: str | None) -> Member:
    workstream = {"scope_id": scope_id, "title": title, "version": 1}
    if disposition is None:
        return Member(workstream, None, None)
    exact = Exact(scope_id, f"hnd_{scope_id}", 1)
    citation = {"kind": "source", "source_ref": {"source_type": "content", "source_id": "s"}}
    content = {
        "objective": "o",
        "state": [{"text": "t", "citations": [citation]}],
        "disposition": disposition,
        "next_action": None,
        "omissions": [],
    }
    fact = EvidenceFact(True, None, "caller_supplied", "s", None, None)
    revision = Revision(exact, content, "sha256:", 0, orjson.dumps(content))
    return Member(workstream, Head(*exact, updated_us=0), revision, (fact,))


def ordered(members: Sequence[Member]) -> list[tuple[str, str]]:
    frozen = Frozen({"project_id": "prj_x"}, 1, dump(Filters()), len(members), len(members), members)
    report = assemble.assemble(frozen, Settings("en", "json", 0, True, False)).value
    assert [entry["scope_id"].encode() for entry in report["end_selection"]] == sorted(
        entry["scope_id"].encode() for entry in report["end_selection"]
    )
    return [(item["workstream"]["title"], item["workstream"]["scope_id"]) for item in report["workstreams"]]


def test_workstreams_are_ordered_by_what_needs_attention_then_title_bytes_then_scope() -> None:
    members = [
        member("s1", "a", "complete"),
        member("s2", "b", None),
        member("s3", "z", "blocked"),
        member("s4", "Z", "blocked"),
        member("s5", "\u00e9", "blocked"),
        member("s7", "same", "continuable"),
        member("s6", "same", "continuable"),
        member("s8", "\U0001f680", "blocked"),
        member("s9", "\uffee", "blocked"),
    ]
    assert [scope_id for _, scope_id in ordered(members)] == ["s4", "s3", "s5", "s9", "s8", "s6", "s7", "s2", "s1"]


members_in_any_order = st.builds(
    member, st.text(min_size=1, max_size=3), st.sampled_from(["a", "A", "é", "🚀"]), st.sampled_from(DISPOSITIONS)
)


@settings(max_examples=60)
@given(
    st.lists(
        members_in_any_order,
        unique_by=lambda item: item.workstream["scope_id"],
        max_size=8,
    ).flatmap(lambda members: st.tuples(st.just(members), st.permutations(members)))
)  # fmt: skip
def test_the_order_does_not_depend_on_the_order_of_arrival(members: tuple[list[Member], list[Member]]) -> None:
    assert ordered(members[0]) == ordered(members[1])
