"""Exact selections: stable heads, the envelope, its digest. (Report RFC, "Consistency", "Canonical report model".)"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from report_support import MakeWorld, World, code_of

from passdown.kernel.canonical import canonical_bytes
from passdown.report.port import Head
from passdown.report.selection import canonical_envelope, selection_digest

VECTORS = json.loads((Path(__file__).parents[1] / "data/digests/selection_digests.json").read_text())["vectors"]


def vector(name: str) -> dict[str, Any]:
    envelope: dict[str, Any] = json.loads(json.dumps(next(v["envelope"] for v in VECTORS if v["name"] == name)))
    return envelope


@pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])
def test_a_selection_vector_gives_its_bytes_and_its_digest(case: dict[str, Any]) -> None:
    assert canonical_bytes(canonical_envelope(case["envelope"])).hex() == case["canonical_utf8_hex"]
    assert selection_digest(case["envelope"]) == case["selection_digest"]


@pytest.mark.parametrize("name", ["two-workstreams", "offset-timestamps", "periodic-week", "chinese-and-emoji"])
def test_the_order_in_which_an_envelope_was_written_does_not_change_its_digest(name: str) -> None:
    envelope = vector(name)
    shuffled = dict(reversed(envelope.items()))
    for member in ("end_selection", "baseline_selection", "activity_selection"):
        if shuffled[member]:
            shuffled[member] = random.Random(7).sample(shuffled[member], len(shuffled[member]))
            shuffled[member].reverse()
    filters = shuffled["normalized_filters"]
    shuffled["normalized_filters"] = {
        key: value[::-1] * 2 if isinstance(value, list) else value for key, value in filters.items()
    }
    assert selection_digest(shuffled) == selection_digest(envelope)


def test_text_that_only_looks_like_a_timestamp_is_left_as_it_is() -> None:
    envelope = vector("empty-project")
    look_alike = "2026-08-03T09:15:00+08:00"
    envelope["normalized_filters"]["labels"] = [look_alike]
    assert canonical_envelope(envelope)["normalized_filters"]["labels"] == [look_alike]


@pytest.mark.parametrize(
    ("moment", "rule"),
    [
        ("2026-08-03T09:15:00.1234567Z", "fraction"),
        ("2026-08-03T09:15:60Z", "leap_second"),
        ("2026-08-03T09:15:00", "no_offset"),
        ("2026-02-30T09:15:00Z", "date"),
    ],
)
def test_a_timestamp_that_microseconds_cannot_hold_is_refused(moment: str, rule: str) -> None:
    envelope = vector("offset-timestamps")
    envelope["activity_selection"][0]["observed_at"] = moment
    error = code_of(lambda: canonical_envelope(envelope))
    assert (error.code, error.members["errors"][0]["rule"]) == ("invalid_request", rule)


def test_undated_events_come_last_and_dated_ones_by_effective_time() -> None:
    """``observed_at`` orders what the source did not date; a source's own time wins over it."""
    envelope = vector("offset-timestamps")
    event = envelope["activity_selection"][0]
    rows = [
        ("u2", "unknown", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"),
        ("c1", "current_only", None, "2026-01-02T00:00:00Z"),
        ("s9", "source_reported", "2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z"),
        ("h5", "host_observed", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z"),
        ("f5", "first_seen", None, "2026-01-05T00:00:00Z"),
    ]
    envelope["activity_selection"] = [
        event | {"event_id": name, "time_basis": basis, "occurred_at": occurred, "observed_at": observed}
        for name, basis, occurred, observed in rows
    ]
    ordered = canonical_envelope(envelope)["activity_selection"]
    assert [item["event_id"] for item in ordered] == ["s9", "f5", "h5", "c1", "u2"]


@pytest.mark.parametrize("member", ["end_selection", "activity_selection"])
def test_an_entry_that_stands_there_twice_is_refused(member: str) -> None:
    envelope = vector("offset-timestamps")
    envelope[member] = envelope[member] + envelope[member][:1]
    error = code_of(lambda: canonical_envelope(envelope))
    assert (error.code, error.members["field"], error.members["rule"]) == (
        "selection_not_resolvable",
        member,
        "repeated",
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"extra": 1}, "invalid_request"),
        ({"schema": "powercontext.handoff-report-selection.v2"}, "invalid_request"),
        ({"end_selection": None}, "invalid_request"),
        ({"activity_cursor": -1}, "invalid_request"),
        ({"activity_cursor": True}, "invalid_request"),
        ({"activity_cursor": 1.0}, "not_canonical"),
        ({"project_revision": 2**53}, "not_canonical"),
    ],
)
def test_an_envelope_of_another_form_is_refused(change: dict[str, Any], code: str) -> None:
    assert code_of(lambda: canonical_envelope(vector("two-workstreams") | change)).code == code


def test_a_member_may_not_be_left_out_of_an_envelope() -> None:
    for member in vector("two-workstreams"):
        envelope = vector("two-workstreams")
        del envelope[member]
        assert code_of(lambda envelope=envelope: canonical_envelope(envelope)).code == "invalid_request"


def test_an_entry_has_a_reference_exactly_when_it_is_selected() -> None:
    for index, change in ((0, {"handoff_ref": None}), (0, {"status": "no_handoff"}), (1, {"status": "selected"})):
        envelope = vector("two-workstreams")
        envelope["end_selection"][index] |= change
        error = code_of(lambda envelope=envelope: canonical_envelope(envelope))
        assert error.members["errors"][0]["rule"] == "ref_and_status"


def digest_from_report(report: Mapping[str, Any]) -> str:
    """The selection digest worked out by another JCS implementation from the members of the report alone."""
    envelope = {
        "schema": "powercontext.handoff-report-selection.v1",
        "project_id": report["project"]["project_id"],
        "normalized_filters": report["filters"],
        "normalized_period": report["period"],
    }
    for member in (
        "project_revision",
        "selection_consistency",
        "activity_cursor",
        "baseline_selection",
        "end_selection",
        "activity_selection",
    ):
        envelope[member] = report[member]
    return "sha256:" + hashlib.sha256(rfc8785.dumps(envelope)).hexdigest()


def filled(world: World) -> Any:
    project = world.project("shop", title="Café 商店")
    for scope_id in ("b", "a", "é", "🚀"):
        world.workstream(project, scope_id, labels=["前端", "ui"])
    world.commit("a", "blocked")
    world.commit("🚀", "complete")
    return project


def test_the_selection_of_a_report_is_ordered_by_the_bytes_of_its_scopes(world: World) -> None:
    report = world.report(filled(world))
    assert [entry["scope_id"] for entry in report["end_selection"]] == ["a", "b", "é", "🚀"]
    assert [entry["status"] for entry in report["end_selection"]] == [
        "selected",
        "no_handoff",
        "no_handoff",
        "selected",
    ]
    assert {entry["workstream_revision"] for entry in report["end_selection"]} == {1}
    assert (report["selection_consistency"], report["activity_cursor"]) == ("optimistic_stable", 0)
    assert (report["baseline_selection"], report["period"], report["changes"]) == (None, None, None)


def test_both_digests_of_a_report_are_reproduced_from_its_own_members(world: World) -> None:
    project = filled(world)
    for asked in (
        {},
        {"filters": {"labels": ["前端", "e\u0301"], "external_refs": [{"kind": "issue"}]}},
        {"locale": "en"},
    ):
        rendered = world.rendered(project, **asked)
        report = json.loads(rendered.body)
        assert digest_from_report(report) == report["selection_digest"] == rendered.selection_digest
        rest = {name: value for name, value in report.items() if name != "report_digest"}
        digest = "sha256:" + hashlib.sha256(rfc8785.dumps(rest)).hexdigest()
        assert digest == report["report_digest"] == rendered.report_digest
        assert rendered.body == rfc8785.dumps(report)


def test_four_projections_have_one_selection_digest_and_four_report_digests(world: World) -> None:
    project = filled(world)
    made = [
        world.rendered(project, locale=locale, format=form)
        for locale in ("zh-CN", "en")
        for form in ("json", "markdown")
    ]
    assert len({item.selection_digest for item in made}) == 1
    assert len({item.report_digest for item in made}) == 4


def test_the_selection_digest_changes_with_what_is_selected_and_with_nothing_else(world: World) -> None:
    project = filled(world)
    before = world.report(project)
    world.clock.move(3_600_000_000)
    later = world.report(project)
    assert later["selection_digest"] == before["selection_digest"]
    assert later["report_digest"] != before["report_digest"]
    world.commit("b")
    assert world.report(project)["selection_digest"] != before["selection_digest"]


def test_equal_facts_give_equal_bytes_whatever_the_order_of_arrival(make_world: MakeWorld) -> None:
    def built(order: Sequence[str]) -> bytes:
        world = make_world()
        project = world.project("shop")
        for scope_id in order:
            world.workstream(project, scope_id, title="same")
        return world.rendered(project).body

    assert built(["a", "b", "c", "ä"]) == built(["ä", "c", "a", "b"])


class Between:
    """A reader that lets something happen between the first and the second collection of heads."""

    def __init__(self, inner: Any, happenings: list[Callable[[], Any]]) -> None:
        self._inner = inner
        self._happenings = happenings
        self.collections = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def latest_many(self, scope_ids: Sequence[str]) -> Mapping[str, Head]:
        found: Mapping[str, Head] = self._inner.latest_many(scope_ids)
        self.collections += 1
        if self.collections % 2 and self._happenings:
            self._happenings.pop(0)()
        return found


def moving(make_world: MakeWorld, **settings: Any) -> tuple[World, list[Callable[[], Any]]]:
    happenings: list[Callable[[], Any]] = []
    return make_world(wrap=lambda reader: Between(reader, happenings), **settings), happenings


def test_a_head_that_moves_once_is_selected_as_it_came_to_rest(make_world: MakeWorld) -> None:
    world, happenings = moving(make_world)
    project = world.project("shop")
    world.workstream(project, "a")
    world.commit("a", objective="first")
    happenings.append(lambda: world.commit("a", objective="second"))
    report = world.report(project)
    assert report["end_selection"][0]["handoff_ref"]["revision"] == 2
    assert report["workstreams"][0]["content"]["objective"] == "second"


def test_a_first_handoff_between_both_collections_starts_the_selection_over(make_world: MakeWorld) -> None:
    world, happenings = moving(make_world)
    project = world.project("shop")
    world.workstream(project, "a")
    happenings.append(lambda: world.commit("a"))
    assert world.report(project)["end_selection"][0]["status"] == "selected"


def test_starting_over_takes_a_fresh_catalog(make_world: MakeWorld) -> None:
    world, happenings = moving(make_world)
    project = world.project("shop")
    world.workstream(project, "a")
    happenings.append(lambda: (world.commit("a"), world.workstream(project, "b")))
    report = world.report(project)
    assert report["project_revision"] == 3
    assert [entry["scope_id"] for entry in report["end_selection"]] == ["a", "b"]


@pytest.mark.parametrize("retries", [0, 3, 5])
def test_heads_that_move_through_all_retries_are_busy_and_one_less_is_not(make_world: MakeWorld, retries: int) -> None:
    world, happenings = moving(make_world, head_retries=retries)
    project = world.project("shop")
    world.workstream(project, "a")
    happenings += [lambda: world.commit("a", objective=f"objective {world.clock.now_us()}")] * (retries + 1)
    error = code_of(lambda: world.report(project))
    assert (error.code, error.members["retries"], happenings) == ("handoff_report_busy", retries, [])
    happenings += [lambda: world.commit("a", objective=f"objective {world.clock.now_us()}")] * retries
    assert world.report(project)["end_selection"][0]["handoff_ref"]["revision"] == 2 * retries + 1


def test_more_than_five_retries_cannot_be_configured(make_world: MakeWorld) -> None:
    with pytest.raises(ValueError, match="head_retries"):
        make_world(head_retries=6)


def test_a_commit_after_the_selection_does_not_change_the_report(make_world: MakeWorld) -> None:
    """Would catch contents that are read from a moving head instead of the frozen revision."""

    class After:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def get_many(self, refs: Any) -> Any:
            world.commit("a", objective="too late")
            return self._inner.get_many(refs)

    world = make_world(wrap=After)
    project = world.project("shop")
    world.workstream(project, "a")
    world.commit("a", objective="in time")
    report = world.report(project)
    assert report["workstreams"][0]["content"]["objective"] == "in time"
    assert report["end_selection"][0]["handoff_ref"]["revision"] == 1


def test_a_selected_revision_that_cannot_be_read_makes_the_report_inconsistent(world: World) -> None:
    project = world.project("shop")
    world.workstream(project, "a")
    world.commit("a")
    world.damage("pd_handoff_revisions", "DELETE FROM pd_handoff_revisions WHERE scope_id = ?", b"a")
    error = code_of(lambda: world.report(project))
    assert (error.code, error.members["missing"]) == ("handoff_report_inconsistent", 1)


def test_evidence_rows_that_do_not_fit_the_content_make_the_report_inconsistent(world: World) -> None:
    project = world.project("shop")
    world.workstream(project, "a")
    world.commit("a")
    world.damage("pd_handoff_evidence", "DELETE FROM pd_handoff_evidence WHERE scope_id = ?", b"a")
    error = code_of(lambda: world.report(project))
    assert (error.code, error.members["rule"]) == ("handoff_report_inconsistent", "evidence")


def test_only_the_latest_selection_is_accepted(world: World) -> None:
    project = world.project("shop")
    for selection in ({"mode": "exact"}, {"mode": "latest", "envelope": {}}, {}, None, "latest"):
        assert (
            code_of(lambda selection=selection: world.rendered(project, selection=selection)).code == "invalid_request"
        )
    assert code_of(lambda: world.rendered(project, report_kind="periodic")).code == "invalid_request"
