"""What a report page shows: fixed structure in both locales, and every state as itself."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import canonical_reports as made
import pytest
from rendered_page import RenderedPage

from passdown.kernel.errors import PassdownError
from passdown.report.render import RENDERER_VERSIONS, render_markdown

LOCALES = ("en", "zh-CN")
# The headings as the report RFC prints them.
SECTIONS = {
    "en": ["Project Overview", "Blockers", "Workstream Status", "Workstream Details", "Report Metadata"],
    "zh-CN": ["项目概览", "阻塞事项", "Workstream 状态", "Workstream 详情", "报告元数据"],
}
SUBSECTIONS = {
    "en": ["Objective", "Current Progress", "Next Action", "Omissions", "Evidence"],
    "zh-CN": ["目标", "当前进度", "下一步", "缺失信息", "Evidence"],
}
TITLE = {"en": "Payments Project Handoff Report", "zh-CN": "Payments 项目交接报告"}


def page(workstreams: list[dict[str, Any]], locale: str = "en", **members: Any) -> RenderedPage:
    return RenderedPage(render_markdown(made.report(workstreams, locale, **members)))


def one(said: dict[str, Any], cited: list[dict[str, Any]], **members: Any) -> list[dict[str, Any]]:
    return [made.workstream("scp_one", "One", "K-1", said, cited, **members)]


def resting_on(item: dict[str, Any], disposition: str = "continuable", **members: Any) -> list[dict[str, Any]]:
    """One workstream with one statement that cites one item."""
    return one(made.content(disposition, "Aim", [made.statement("Said so", item["citation"])]), [item], **members)


# --- structure ---


@pytest.mark.parametrize("locale", LOCALES)
def test_headings_stand_in_the_order_of_the_rfc(locale: str) -> None:
    workstreams = made.all_states()
    names = [
        f"{item['workstream']['title']} ({item['workstream']['key']})"
        if item["workstream"]["key"]
        else f"{item['workstream']['title']} (scope:{hashlib.sha256(b'scp_go').hexdigest()[:16]})"
        for item in workstreams
    ]
    *before, details, metadata = SECTIONS[locale]
    expected = [("h1", TITLE[locale]), *(("h2", name) for name in [*before, details])]
    for name in names:
        expected += [("h3", name), *(("h4", part) for part in SUBSECTIONS[locale])]
    expected.append(("h2", metadata))
    assert page(workstreams, locale).headings == expected


def test_both_locales_have_the_same_skeleton() -> None:
    english, chinese = (page(made.all_states(), locale) for locale in LOCALES)
    assert english.tags == chinese.tags
    assert [len(row) for row in english.rows] == [5] * 6
    assert [len(row) for row in chinese.rows] == [5] * 6


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("key", ["payments", "yes", "Null", "0x10", "1e3", "支付", "a.b_c-d", "-", "2026-01-01"])
def test_front_matter_has_the_nine_members_in_order_and_yaml_gives_the_same_strings(locale: str, key: str) -> None:
    report = made.report(made.all_states(), locale, project={"project_key": key})
    front = RenderedPage(render_markdown(report)).front
    assert list(front.items()) == [
        ("schema", "powercontext.handoff-report.v1"),
        ("locale", locale),
        ("format", "markdown"),
        ("project_id", "prj_01K4ZQ8M2T0000000000000001"),
        ("project_key", key),
        ("report_kind", "handoff"),
        ("selection_digest", report["selection_digest"]),
        ("report_digest", report["report_digest"]),
        ("trust", "untrusted_history"),
    ]


@pytest.mark.parametrize("locale", LOCALES)
def test_a_page_is_utf8_with_line_feeds_and_one_final_newline(locale: str) -> None:
    data = render_markdown(made.report(made.all_states(), locale))
    assert data.startswith(b"---\nschema: ")
    assert b"\r" not in data
    assert data.endswith(b"\n```\n")
    assert not any(line.endswith((" ", "\t")) for line in data.decode().split("\n"))


def test_the_same_report_gives_the_same_bytes_however_its_members_are_ordered() -> None:
    filters = {"kinds": ["bug"], "labels": ["x"], "agent_labels": ["y"], "dispositions": ["blocked"]}
    report = made.report(made.all_states(), filters=filters)
    assert render_markdown(json.loads(made.exported(report))) == render_markdown(report)


@pytest.mark.parametrize("locale", LOCALES)
def test_the_metadata_fence_holds_the_envelope_whose_digest_the_page_carries(locale: str) -> None:
    workstreams = [made.workstream("scp_```\n</x>", "Odd scope", "K-1")]
    report = made.report(workstreams, locale, filters={"labels": ["`~", "前端"]})
    shown = RenderedPage(render_markdown(report))
    assert shown.envelope == made.envelope(report)
    assert made.sha256(shown.envelope) == shown.front["selection_digest"]
    assert RENDERER_VERSIONS[locale] in shown.section(SECTIONS[locale][-1])
    assert "2026-11-30T20:05:11.000123Z" in shown.section(SECTIONS[locale][-1])


def test_another_locale_is_refused() -> None:
    with pytest.raises(PassdownError) as refused:
        render_markdown(made.report([], "fr"))
    assert refused.value.code == "unsupported_report_locale"


# --- overview ---


def test_the_overview_counts_states_and_names_what_is_missing() -> None:
    overview = page(made.all_states(), total=7, filters={"kinds": ["bug", "feature"]}).section("Project Overview")
    for said in (
        "5 shown · ■ 1 blocked · ► 1 continuable · ○ 1 no handoff · ✓ 2 complete (1 unproved)",
        "kind bug, feature; shows 5 of 7 workstreams",
        "4 of 5 workstreams have a handoff; 2 handoffs name omissions",
        "8 references · 4 read by a host · 2 said, not read · 1 reference only · 1 of unknown origin",
        "no activity feed has run",
        "1 evidence reference cannot be read",
        "1 workstream has no handoff; nothing is known about it.",
        "1 workstream is called complete, but no host read any evidence for it.",
    ):
        assert said in overview
    assert overview.count("▲") == 3


def test_a_complete_picture_carries_no_warning() -> None:
    item = made.evidence(made.source("file", "a"), "a", read_by="host")
    shown = page(resting_on(item, "complete"))
    assert "▲" not in shown.text
    assert "the workstream has a handoff; no handoff names an omission" in shown.text
    assert "none; shows 1 of 1 workstream" in shown.text


def test_each_filter_in_force_is_named() -> None:
    filters = {
        "kinds": ["refactor"],
        "dispositions": ["blocked", "no_handoff"],
        "labels": ["a, b"],
        "external_refs": [{"kind": "pull_request", "provider": None, "external_id": "#7"}],
        "activity_sources": ["git_commit"],
        "agent_labels": ["codex"],
        "time_bases": ["first_seen"],
        "include_archived": True,
    }
    overview = page([], total=4, filters=filters).section("Project Overview")
    assert (
        "kind refactor; status blocked, no handoff; label “a, b”; external reference pull request any provider “#7”; "
        "activity source commits; agent “codex”; time basis first seen; archived included; shows 0 of 4 workstreams"
    ) in overview


def test_times_stand_in_the_zone_of_the_project_else_in_utc() -> None:
    moment = datetime(2026, 7, 1, 23, 59, 59, 999_999, tzinfo=UTC)
    stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    berlin = moment.astimezone(ZoneInfo("Europe/Berlin")).strftime("%Y-%m-%d %H:%M:%S") + " Europe/Berlin"
    local = page(made.all_states(), generated_at=stamp, project={"timezone": "Europe/Berlin"})
    assert f"Generated: {berlin}" in local.text
    assert "recorded here 2026-11-29 09:30:00 Europe/Berlin" in local.rows[1][4]
    plain = page(made.all_states(), generated_at=stamp)
    assert "Generated: 2026-07-01 23:59:59 UTC" in plain.text
    assert plain.rows[1][4] == "revision 7, recorded here 2026-11-29 08:30:00 UTC"


def test_only_the_reserved_project_has_a_translated_title() -> None:
    reserved = {"project_id": "prj_ungrouped", "project_key": "ungrouped", "title": "Ungrouped"}
    assert page([], "zh-CN", project=reserved).headings[0] == ("h1", "未分组 项目交接报告")
    assert page([], "en", project=reserved).headings[0] == ("h1", "Ungrouped Project Handoff Report")
    assert page([], "zh-CN", project={"title": "Ungrouped"}).headings[0] == ("h1", "Ungrouped 项目交接报告")


def test_an_empty_report_says_why_it_is_empty_in_every_section() -> None:
    nothing, filtered = page([]), page([], total=3)
    for name in ("Blockers", "Workstream Status", "Workstream Details"):
        assert nothing.section(name).strip() == "<p><em>No workstream is selected.</em></p>"
        assert filtered.section(name).strip() == "<p><em>No workstream passes the filters.</em></p>"
    assert "nothing is said about any" in nothing.section("Project Overview")


def test_a_summary_that_was_asked_for_and_failed_is_shown_as_unavailable() -> None:
    asked = {"trust": "generated_untrusted", "status": "unavailable", "text": None, "citations": []}
    assert "Generated summary, untrusted: asked for, not available." in page([], generated_summary=asked).text
    assert "Generated summary" not in page([]).text


def test_activity_sources_that_did_not_run_are_named_with_their_reason() -> None:
    report = made.report(made.all_states())
    report["coverage"]["enabled_activity_sources"] = ["git_commit"]
    report["coverage"]["unavailable_activity_sources"] = [{"source": "coding_session", "reason": "unauthorized"}]
    overview = RenderedPage(render_markdown(report)).section("Project Overview")
    assert "observed by commits; not observed: coding sessions (not allowed)" in overview


# --- blockers and table ---


def test_a_blocked_workstream_says_what_blocks_it_and_what_comes_next() -> None:
    blockers = page(made.all_states()).section("Blockers")
    assert blockers.count("■ Retry queue (PAY-12)") == 1
    assert "Ops has not handed out broker credentials for staging. <em>[3] · said, not read</em>" in blockers
    assert "run the restart test. <em>[3] [1] · history, not an order</em>" in blockers
    assert "Parser" not in blockers


def test_without_blockers_a_workstream_without_handoff_is_not_called_unblocked() -> None:
    blockers = page(made.all_states()[2:]).section("Blockers")
    assert "No workstream shown here is blocked. For 1 workstream without a handoff it is not known." in blockers


def test_the_table_says_status_next_action_evidence_and_revision_of_each_workstream() -> None:
    rows = page(made.all_states()).rows
    assert rows[0] == ["Workstream", "Status", "Next action", "Evidence", "Handoff"]
    assert [row[1] for row in rows[1:]] == [
        "■ blocked",
        "► continuable",
        "○ no handoff",
        "✓ complete",
        "✓ complete, unproved",
    ]
    assert rows[2][2] == "Finish CRLF in the tokenizer."
    assert rows[2][3] == "▲ 1 NOT READABLE · 1 read by a host · 1 reference only · 1 of unknown origin"
    assert rows[3][2:] == ["not known", "not known", "none"]
    assert rows[4][2] == "none proposed"


def test_an_archived_workstream_is_marked() -> None:
    shown = page([made.workstream("scp_a", "Old", "K-1", catalog_state="archived")])
    assert shown.rows[1][1] == "○ no handoff, archived"


# --- details ---


def test_a_workstream_without_handoff_is_unknown_in_all_five_sections() -> None:
    shown = page([made.workstream("scp_a", "Silent", "K-1")])
    details = shown.section("Workstream Details")
    assert details.count("No handoff has been committed.") == 1
    assert details.count("Unknown: no handoff has been committed.") == 4
    assert "None recorded" not in details
    assert "None proposed" not in details


def test_what_is_not_proposed_or_recorded_is_said_as_such() -> None:
    item = made.evidence(made.source("file", "a"), "a")
    details = page(resting_on(item)).section("Workstream Details")
    assert "<p><em>None proposed.</em></p>" in details
    assert "<p><em>None recorded.</em></p>" in details


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            made.evidence(
                made.source("git_commit", made.COMMIT), "c", read_by="ci-1", remote_refs=["origin/main", "up/x"]
            ),
            f"git commit {made.COMMIT} · read by ci-1 · on origin/main, up/x when read · reference readable",
        ),
        (
            made.evidence(made.source("git_commit", made.COMMIT), "c", read_by="ci-1", remote_refs=[]),
            f"git commit {made.COMMIT} · read by ci-1 · on no remote-tracking ref when read · reference readable",
        ),
        (
            made.evidence(made.source("git_commit", made.COMMIT), "c", "caller_supplied"),
            f"git commit {made.COMMIT} · said, not read · remote-tracking refs not read · reference readable",
        ),
        (
            made.evidence(made.source("file", "a/b.py@1"), "b.py"),
            "file a/b.py@1 · read by a host · reference readable",
        ),
        (
            made.evidence(made.source("url", "u"), "u", "referenced"),
            "web address u · reference only · reference readable",
        ),
        (
            made.evidence(made.source("pasted", "p"), "p", "caller_supplied"),
            "other source pasted p · said, not read · reference readable",
        ),
        (
            made.evidence(made.source("file", "gone"), "gone", None, readable=False),
            "file gone · origin unknown · ▲ NOT READABLE",
        ),
        (
            made.evidence(made.artifact("hnd_1", 4), "handoff #4", None),
            "handoff handoff hnd_1 revision 4 · said in a handoff · reference readable",
        ),
    ],
)
def test_each_evidence_is_shown_as_what_it_is(item: dict[str, Any], said: str) -> None:
    assert f"[1] {item['label']}\n{said}\n" in page(resting_on(item)).text


def test_evidence_that_was_not_checked_is_never_called_readable() -> None:
    item = made.evidence(made.source("file", "a"), "a", read_by="host")
    shown = page(resting_on(item, checked=False))
    assert "file a · read by host · not checked" in shown.text
    assert "the evidence of 1 workstream was not checked" in shown.text
    assert "reference readable\n" not in shown.text
    assert "NOT READABLE" not in shown.text
    assert shown.rows[1][3] == "1 read by a host · not checked"


def test_a_statement_shows_which_of_its_evidence_cannot_be_read() -> None:
    good = made.evidence(made.source("file", "a"), "a")
    gone = made.evidence(made.source("file", "b"), "b", None, readable=False)
    state = [made.statement("Both", gone["citation"], good["citation"]), made.statement("First", good["citation"])]
    details = page(one(made.content("continuable", "Aim", state), [gone, good])).section("Workstream Details")
    assert "Both <em>[1] [2] · ▲ NOT READABLE: [1]</em>" in details
    assert "First <em>[2]</em>" in details


def test_a_statement_for_which_nothing_was_read_says_so() -> None:
    said = made.evidence(made.source("content", "a"), "a", "caller_supplied")
    only = made.evidence(made.source("url", "b"), "b", "referenced")
    state = [made.statement("Mixed", said["citation"], only["citation"]), made.statement("Link", only["citation"])]
    details = page(one(made.content("continuable", "Aim", state), [said, only])).section("Workstream Details")
    assert "Mixed <em>[1] [2] · no cited evidence was read by a host</em>" in details
    assert "Link <em>[2] · reference only</em>" in details


@pytest.mark.parametrize("locale", LOCALES)
def test_no_text_is_ever_cut(locale: str) -> None:
    long = "".join(f"w{number} " for number in range(700)).strip()
    citation = made.source("content", "s")
    said = made.content("blocked", long, [made.statement(long, citation)], made.statement(long, citation))
    text = page(one(said, [made.evidence(citation, long)]), locale).text
    # Objective, label, state twice (blockers and details), next action three times (with the table).
    assert text.count(long) == 7


@pytest.mark.parametrize("locale", LOCALES)
def test_lines_of_a_statement_stay_lines_and_stay_inside_their_item(locale: str) -> None:
    citation = made.source("content", "s")
    said = made.content("blocked", "Aim", [made.statement("one\n\n  two\n- three", citation)])
    html = page(one(said, [made.evidence(citation, "s")]), locale).html
    assert re.search(r"<li>one<br />\n +<br />\n  two<br />\n- three <em>", html)


@pytest.mark.parametrize("locale", LOCALES)
def test_a_page_has_no_links_images_or_raw_html(locale: str) -> None:
    ref = {"kind": "issue", "provider": "github", "external_id": "#1", "url": "https://example.com/?a=<b>&c=[d](e)"}
    workstream = made.workstream("scp_a", "A", "K-1", external_refs=[ref], labels=["<https://example.com>"])
    shown = page([workstream], locale, project={"description": "https://example.com <b>x</b> www.example.com"})
    assert not {"<a", "<img", "<b"} & {tag.split()[0] for tag in shown.tags}
    assert ref["url"] in shown.text


def test_the_source_text_of_an_item_is_indented_to_its_item() -> None:
    """A reader of the plain page, or a renderer without lazy continuation, sees where an item ends."""
    citation = made.source("content", "s")
    said = made.content("blocked", "Aim", [made.statement("a\nb", citation)], made.statement("c\nd", citation))
    source = render_markdown(made.report(one(said, [made.evidence(citation, "s")]))).decode()
    for item in (
        "    - a\\\n      b *",
        "  - **Next action:** c\\\n    d *",
        "\n- a\\\n  b *",
        "\n- c\\\n  d *",
    ):
        assert source.count(item) == 1
