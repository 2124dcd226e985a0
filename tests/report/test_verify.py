"""Verification of exported reports from the file alone, against digests made with another implementation."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import canonical_reports as made
import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rendered_page import RenderedPage
from report_support import World, commit_read, note, statement

from passdown.kernel.errors import PassdownError
from passdown.report.render import render_markdown
from passdown.report.report_models import HandoffReport
from passdown.report.verify import FILE_BYTES, REPORT_SCHEMA, selection_of, verify

MakeWorld = Callable[..., World]
VECTORS = json.loads(
    (Path(__file__).parents[1] / "data" / "digests" / "selection_digests.json").read_text(encoding="utf-8")
)["vectors"]
CODES = {"malformed_json", "unsupported_schema", "not_canonical", "digest_mismatch"}


def a_report(**members: Any) -> dict[str, Any]:
    return made.report(
        made.all_states(),
        **{"format": "json", "renderer_version": "json.v1", "project": {"title": "支付 🚚"}, **members},
    )


REPORT = a_report()
EXPORT = made.exported(REPORT)
PAGE = render_markdown(made.report(made.all_states(), "zh-CN"))
# The other locale has the same selection.
SELECTION_OF_PAGE = made.sha256(made.envelope(made.report(made.all_states(), "en")))


def refusal(data: bytes) -> PassdownError:
    with pytest.raises(PassdownError) as refused:
        verify(data)
    with pytest.raises(PassdownError) as same:
        selection_of(data)
    assert same.value.problem() == refused.value.problem()
    return refused.value


def edited(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The export with a member changed and written canonically, digests left as they were."""
    report = copy.deepcopy(REPORT)
    change(report)
    return made.exported(report)


def resealed(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The export with a member changed and both digests made anew."""
    report = copy.deepcopy(REPORT)
    change(report)
    return made.exported(made.sealed(report))


# --- JSON ---


def test_both_digests_of_a_json_export_are_verified() -> None:
    verdict = verify(EXPORT)
    assert verdict.format == "json"
    assert verdict.schema == "powercontext.handoff-report.v1"
    assert verdict.project_id == "prj_01K4ZQ8M2T0000000000000001"
    assert verdict.selection_digest == REPORT["selection_digest"]
    assert verdict.report_digest == REPORT["report_digest"]
    assert verdict.verified == ("selection_digest", "report_digest")
    assert "not a signature" in verdict.note


def test_the_selection_of_a_json_export_is_its_envelope() -> None:
    assert selection_of(EXPORT) == made.envelope(REPORT)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_a_report_over_a_published_selection_has_its_published_digest(vector: dict[str, Any]) -> None:
    canonical = json.loads(bytes.fromhex(vector["canonical_utf8_hex"]))
    report = copy.deepcopy(REPORT)
    report["project"]["project_id"] = canonical["project_id"]
    report["filters"], report["period"] = canonical["normalized_filters"], canonical["normalized_period"]
    for name in ("project_revision", "selection_consistency", "activity_cursor"):
        report[name] = canonical[name]
    for name in ("baseline_selection", "end_selection", "activity_selection"):
        report[name] = canonical[name]
    data = made.exported(made.sealed(report))
    assert verify(data).selection_digest == vector["selection_digest"]
    assert rfc8785.dumps(selection_of(data)).hex() == vector["canonical_utf8_hex"]


@settings(max_examples=300, deadline=None)
@given(place=st.integers(0, len(EXPORT) - 1), flip=st.integers(1, 255))
@example(place=0, flip=ord("{") ^ ord("-"))
@example(place=len(EXPORT) - 1, flip=1)
def test_a_json_export_with_any_one_byte_changed_is_refused(place: int, flip: int) -> None:
    data = bytearray(EXPORT)
    data[place] ^= flip
    assert refusal(bytes(data)).code in CODES


IN_ENVELOPE: list[Callable[[dict[str, Any]], Any]] = [
    lambda report: report["project"].update(project_id="prj_01K4ZQ8M2T0000000000000002"),
    lambda report: report.update(project_revision=10),
    lambda report: report["filters"].update(labels=["x"]),
    lambda report: report["filters"].update(include_archived=True),
    lambda report: report.update(selection_consistency="exact_input"),
    lambda report: report.update(activity_cursor=1),
    lambda report: report.update(baseline_selection=[]),
    lambda report: report["end_selection"][0]["handoff_ref"].update(revision=8),
    lambda report: report["end_selection"][0].update(workstream_revision=2),
    lambda report: report["end_selection"].pop(),
    lambda report: report.update(selection_digest="sha256:" + "0" * 64),
]
OUTSIDE: list[Callable[[dict[str, Any]], Any]] = [
    lambda report: report["project"].update(title="支付 🚛"),
    lambda report: report.update(locale="zh-CN"),
    lambda report: report.update(generated_at="2026-11-30T20:05:11.000124Z"),
    lambda report: report["workstreams"][0]["content"]["state"][0].update(text="The queue loses its order."),
    lambda report: report["workstreams"][0]["evidence"][2].update(assurance="host_read"),
    lambda report: report["workstreams"][4].update(unproved=False),
    lambda report: report["coverage"].update(missing_handoff_workstreams=0),
    lambda report: report.update(trust="trusted"),
    lambda report: report.update(extra=None),
    lambda report: report.update(report_digest="sha256:" + "0" * 64),
]


@pytest.mark.parametrize("change", IN_ENVELOPE)
def test_a_change_inside_the_selection_names_the_selection_digest(change: Callable[[dict[str, Any]], Any]) -> None:
    data = edited(change)
    refused = refusal(data)
    assert refused.code == "digest_mismatch"
    report = json.loads(data)
    assert refused.members == {
        "digest": "selection_digest",
        "expected": report["selection_digest"],
        "actual": made.sha256(made.envelope(report)),
    }


@pytest.mark.parametrize("change", OUTSIDE)
def test_a_change_outside_the_selection_names_the_report_digest(change: Callable[[dict[str, Any]], Any]) -> None:
    data = edited(change)
    refused = refusal(data)
    assert refused.code == "digest_mismatch"
    report = json.loads(data)
    assert refused.members == {
        "digest": "report_digest",
        "expected": report.pop("report_digest"),
        "actual": made.sha256(report),
    }


@pytest.mark.parametrize("name", ["selection_digest", "report_digest"])
@pytest.mark.parametrize("text", ["needle", "", "sha256:" + "A" * 64, 7, None])
def test_what_is_no_digest_breaks_it_and_is_not_repeated(name: str, text: object) -> None:
    refused = refusal(edited(lambda report: report.update({name: text})))
    assert (refused.code, refused.members["digest"]) == ("digest_mismatch", name)
    assert refused.members["expected"] is None
    assert "needle" not in json.dumps(refused.problem())


@pytest.mark.parametrize(
    "data",
    [
        EXPORT + b"\n",
        b" " + EXPORT,
        json.dumps(REPORT, ensure_ascii=False, sort_keys=True).encode(),
        json.dumps(REPORT, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode(),
        json.dumps(REPORT, ensure_ascii=False, separators=(",", ":")).encode(),
    ],
    ids=["newline", "space", "pretty", "ascii", "key-order"],
)
def test_the_same_value_in_other_bytes_is_not_canonical(data: bytes) -> None:
    assert json.loads(data) == REPORT
    assert refusal(data).code == "not_canonical"


def test_text_outside_nfc_is_not_canonical() -> None:
    decomposed = edited(lambda report: report["project"].update(title="re\u0301sume\u0301"))
    assert refusal(decomposed).code == "not_canonical"


@pytest.mark.parametrize("number", [b"1.0", b"9007199254740993", b"1e2"])
def test_numbers_without_a_canonical_form_are_not_canonical(number: bytes) -> None:
    assert refusal(EXPORT.replace(b'"activity_cursor":0', b'"activity_cursor":' + number)).code == "not_canonical"


TIMES: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("generated_at", lambda report: report.update(generated_at="2026-11-30T20:05:11Z")),
    ("generated_at", lambda report: report.update(generated_at="2026-11-30T21:05:11.000123+01:00")),
    ("generated_at", lambda report: report.update(generated_at=1)),
    ("workstreams.recorded_at", lambda report: report["workstreams"][0].update(recorded_at="2026-11-29T08:30:00.25Z")),
    ("period.end", lambda report: report.update(period={"start": None, "end": "2026-11-30", "timezone": "UTC"})),
    ("activity_selection.observed_at", lambda report: report.update(activity_selection=[{"observed_at": "now"}])),
    ("unassigned_activity.occurred_at", lambda report: report.update(unassigned_activity=[{"occurred_at": "now"}])),
    (
        "workstreams.activities.observed_at",
        lambda report: report["workstreams"][0].update(activities=[{"observed_at": ""}]),
    ),
]


@pytest.mark.parametrize(("field", "change"), TIMES)
def test_a_declared_timestamp_in_another_form_is_not_canonical(
    field: str, change: Callable[[dict[str, Any]], Any]
) -> None:
    refused = refusal(resealed(change))
    assert (refused.code, refused.members) == ("not_canonical", {"field": field, "rule": "timestamp"})


def test_text_that_only_looks_like_a_timestamp_is_left_alone() -> None:
    stamp = "2026-11-30T20:05:11Z"
    assert verify(resealed(lambda report: report["project"].update(title=stamp))).format == "json"


@pytest.mark.parametrize("member", sorted(REPORT.keys() - {"schema"}))
def test_a_missing_member_is_not_canonical(member: str) -> None:
    refused = refusal(edited(lambda report: report.pop(member)))
    assert (refused.code, refused.members) == ("not_canonical", {"field": member, "rule": "missing"})


@pytest.mark.parametrize("project", [None, [], {}, {"project_id": 5}, "prj_1"])
def test_a_report_without_a_project_is_not_canonical(project: object) -> None:
    refused = refusal(edited(lambda report: report.update(project=project)))
    assert (refused.code, refused.members["field"]) == ("not_canonical", "project.project_id")


@pytest.mark.parametrize("field", ["end_selection", "baseline_selection"])
def test_a_selection_out_of_order_or_with_repeats_is_not_canonical(field: str) -> None:
    entries = REPORT["end_selection"]
    for wrong in (entries[::-1], [entries[0], *entries], [{"scope_id": 1}]):
        refused = refusal(resealed(lambda report, wrong=wrong: report.update({field: wrong})))
        assert (refused.code, refused.members) == ("not_canonical", {"field": field, "rule": "order"})


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b"7", b'"x"', b'{"schema":"powercontext.handoff-report.v2"}', b'{"schema":["a"]}']
)
def test_a_document_of_another_schema_is_refused_as_such(data: bytes) -> None:
    assert refusal(data).code == "unsupported_schema"


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"\xef\xbb\xbf" + EXPORT, EXPORT[:-1], EXPORT + b"{}", b"[" * 100_000, b"# Notes\n"]
)
def test_what_is_neither_json_nor_a_page_is_malformed(data: bytes) -> None:
    assert refusal(data).code == "malformed_json"


def test_a_repeated_member_is_malformed() -> None:
    assert refusal(EXPORT[:-1] + b',"trust":"trusted"}').code == "malformed_json"


def test_a_file_at_the_limit_is_verified_and_one_byte_past_it_refused() -> None:
    def padded(by: int) -> bytes:
        return made.exported(a_report(project={"title": "x" * by}))

    base = len(padded(0))
    assert verify(padded(FILE_BYTES - base)).format == "json"
    refused = refusal(padded(FILE_BYTES - base + 1))
    assert (refused.code, refused.members) == ("body_too_large", {"limit": FILE_BYTES, "actual": FILE_BYTES + 1})
    assert refusal(b"---" + b"x" * FILE_BYTES).code == "body_too_large"
    assert FILE_BYTES >= 10_485_760


# --- Markdown ---


def test_the_selection_digest_of_a_page_is_verified_and_its_text_is_not() -> None:
    report = made.report(made.all_states(), "zh-CN")
    verdict = verify(PAGE)
    assert verdict.format == "markdown"
    assert verdict.schema == REPORT_SCHEMA
    assert verdict.selection_digest == report["selection_digest"] == SELECTION_OF_PAGE
    assert verdict.report_digest == report["report_digest"]
    assert verdict.verified == ("selection_digest",)
    assert "text itself and the report digest are not verified" in verdict.note
    assert "not a signature" in verdict.note
    assert selection_of(PAGE) == made.envelope(report)


def test_a_page_whose_line_ends_were_converted_is_still_verified() -> None:
    assert verify(PAGE.replace(b"\n", b"\r\n")) == verify(PAGE)


def test_changed_text_of_a_page_passes_because_the_verdict_never_covers_it() -> None:
    assert verify(PAGE.replace(b"Retry queue", b"Other queue")).verified == ("selection_digest",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"revision":7', b'"revision":8'),
        (b'"project_revision":9', b'"project_revision":8'),
        (b'"scope_id":"scp_go"', b'"scope_id":"scp_no"'),
        (b'selection_digest: "sha256:', b'selection_digest: "sha256:0'),
        (b'"activity_cursor":0,', b""),
        (b'"activity_cursor":0,', b'"activity_cursor":0,"extra":1,'),
    ],
)
def test_a_changed_envelope_or_digest_of_a_page_names_the_selection_digest(old: bytes, new: bytes) -> None:
    assert PAGE.count(old) == 1
    refused = refusal(PAGE.replace(old, new))
    assert (refused.code, refused.members["digest"]) == ("digest_mismatch", "selection_digest")


def test_a_page_that_names_another_project_than_its_envelope_is_refused() -> None:
    refused = refusal(PAGE.replace(b"project_id: prj_01", b"project_id: prj_02"))
    assert (refused.code, refused.members) == ("not_canonical", {"field": "project_id", "rule": "differs"})


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (PAGE.replace(b"trust: untrusted_history\n", b"", 1), "front_matter"),
        (PAGE.replace(b"locale: zh-CN\n", b"locale: zh-CN\nlocale: en\n", 1), "front_matter"),
        (PAGE.replace(b"locale: zh-CN\n", b"locale: [zh-CN]\n", 1), "front_matter"),
        (b"---\n", "front_matter"),
        (b"---\xff\n", "front_matter"),
        (PAGE.replace(b"handoff-report.v1\n", b"handoff-report.v2\n", 1), "schema"),
        (PAGE.replace(b'report_digest: "sha256:', b'report_digest: "sha1:', 1), "report_digest"),
        (PAGE.replace(b"```json", b"```yaml"), "envelope"),
        (PAGE.removesuffix(b"```\n"), "envelope"),
        (PAGE + b"and more\n", "envelope"),
        (PAGE.replace(b"report-selection.v1", b"report-selection.v2"), "envelope"),
    ],
)
def test_a_page_without_its_machine_readable_parts_is_of_no_known_schema(data: bytes, field: str) -> None:
    refused = refusal(data)
    assert (refused.code, refused.members["field"]) == ("unsupported_schema", field)


def test_a_broken_envelope_of_a_page_is_malformed() -> None:
    assert refusal(PAGE.replace(b'{"activity_cursor"', b'{activity_cursor"')).code == "malformed_json"


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, len(PAGE) - 1), flip=st.integers(1, 255))
def test_a_page_with_any_one_byte_changed_is_refused_by_code_or_still_has_its_selection(place: int, flip: int) -> None:
    data = bytearray(PAGE)
    data[place] ^= flip
    try:
        verdict = verify(bytes(data))
    except PassdownError as refused:
        assert refused.code in CODES
    else:
        assert verdict.selection_digest == SELECTION_OF_PAGE


# --- reports of the real store ---


def test_the_reports_of_these_tests_have_the_shape_of_real_ones() -> None:
    for report in (REPORT, made.report(made.all_states(), "zh-CN"), a_report(project={"timezone": "Asia/Tokyo"})):
        HandoffReport.model_validate_json(made.exported(report))


def test_all_four_projections_of_a_real_project_are_verified_with_one_selection_digest(make_world: MakeWorld) -> None:
    world = make_world(renderer=render_markdown)
    project = world.project("shop", title="支付 *shop*")
    for scope_id, disposition in (("scp_b", "blocked"), ("scp_a", "complete")):
        world.workstream(project, scope_id, key=scope_id.upper().replace("_", "-"))
        world.commit(
            scope_id,
            disposition,
            evidence=[commit_read("c", 7, ["origin/main"]), note("n", "said")],
            state=[statement("Order is kept.", "c", "n")],
            next_action=statement("Go on.", "n"),
        )
    world.workstream(project, "scp_c")
    asked = [(locale, form) for locale in ("en", "zh-CN") for form in ("json", "markdown")]
    exports = [world.rendered(project, locale=locale, format=form) for locale, form in asked]
    verdicts = [verify(export.body) for export in exports]
    assert [verdict.format for verdict in verdicts] == ["json", "markdown"] * 2
    assert {verdict.selection_digest for verdict in verdicts} == {made.sha256(selection_of(exports[0].body))}
    assert len({verdict.report_digest for verdict in verdicts}) == 4
    for export, verdict in zip(exports, verdicts, strict=True):
        assert (export.selection_digest, export.report_digest) == (verdict.selection_digest, verdict.report_digest)
        assert selection_of(export.body)["end_selection"] == selection_of(exports[0].body)["end_selection"]
    page = RenderedPage(exports[1].body)
    assert [row[1] for row in page.rows[1:]] == ["■ blocked", "○ no handoff", "✓ complete"]
    assert "on origin/main when read · reference readable" in page.text
