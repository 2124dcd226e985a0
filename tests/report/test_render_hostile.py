"""Hostile text in every free-text place of a page: it is shown, and nothing but it appears."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import canonical_reports as made
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rendered_page import CELL, RenderedPage

from passdown.kernel.escape import visible
from passdown.report.render import render_markdown

CASES = json.loads((Path(__file__).parents[1] / "data" / "hostile_text.json").read_text(encoding="utf-8"))["cases"]
LOCALES = ("en", "zh-CN")
# Words that stand for the text in places that keep lines, and in places that put it on one line.
BLOCK, INLINE = "blockword", "inlineword"


def filled(block: str, inline: str, locale: str) -> RenderedPage:
    """A page with ``block`` and ``inline`` in every free-text place of each kind."""
    commit, file, other = (
        made.source("git_commit", inline),
        made.source("file", inline),
        made.source("type-" + inline, inline),
    )
    cited = [
        made.evidence(commit, block, read_by=inline, remote_refs=[inline, inline]),
        made.evidence(file, block, None, readable=False),
        made.evidence(other, block, "caller_supplied"),
        made.evidence(made.artifact(inline, 1), block, None),
    ]
    said = made.content(
        "blocked",
        block,
        [made.statement(block, commit, file), made.statement(block, other)],
        made.statement(block, file),
        [{"text": block, "citation": None}, {"text": block, "citation": other}],
    )
    ref = {"kind": "issue", "provider": inline, "external_id": inline, "url": inline}
    workstreams = [
        made.workstream(inline, inline, inline, said, cited, labels=[inline, inline], external_refs=[ref]),
        made.workstream(
            "scp_2", inline, "K-2", made.content("complete", block, [made.statement(block, other)]), cited[2:3]
        ),
    ]
    wanted = [{"kind": None, "provider": inline, "external_id": inline}]
    report = made.report(
        workstreams,
        locale,
        project={"title": inline, "project_key": "k", "description": block},
        filters={"labels": [inline], "agent_labels": [inline], "external_refs": wanted},
        generated_summary={"trust": "generated_untrusted", "status": "available", "text": block, "citations": []},
    )
    return RenderedPage(render_markdown(report))


HARMLESS = {locale: filled(BLOCK, INLINE, locale) for locale in LOCALES}


def shown(text: str, *, lines: bool) -> str:
    """How a reader sees ``text``: hidden characters spelled out, lines kept or joined; an empty line is one space."""
    seen = visible(made.nfc(text)).split("\n")
    return "\n".join(line or " " for line in seen) if lines else " ".join(seen)


def assert_only_shown(text: str, locale: str) -> None:
    page, harmless = filled(text, text, locale), HARMLESS[locale]
    assert page.tags == harmless.tags
    # The next action stands in the table as well, on one line.
    expected = harmless.text.replace(CELL + BLOCK, CELL + shown(text, lines=False))
    expected = expected.replace(BLOCK, shown(text, lines=True)).replace(INLINE, shown(text, lines=False))
    assert page.text == expected
    made_of = page.envelope
    assert made.sha256(made_of) == page.front["selection_digest"]


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_hostile_text_is_shown_and_changes_no_structure(case: dict[str, str], locale: str) -> None:
    assert_only_shown(case["text"], locale)


VOICES = [
    "*[1] · read by build-host*",
    "** 状态：** ✓ 已完成",
    "x*",
    "*",
    "**",
    "a\\",
    "a\\\n",
    "\n",
    "\n\n# x",
    "\u3000全角\u3000",
    "\u00a0nbsp\u00a0",
    "| --- |",
    "[1]: http://example.com",
    "<!--",
    "&#42;",
    "```json\n{}\n```",
    "{text} {n} {} %s",
    "# x #",
]


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("text", VOICES)
def test_the_voice_of_the_report_cannot_be_imitated_or_broken(text: str, locale: str) -> None:
    assert_only_shown(text, locale)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(min_size=1, max_size=40), locale=st.sampled_from(LOCALES))
def test_any_text_is_shown_and_changes_no_structure(text: str, locale: str) -> None:
    assert_only_shown(text, locale)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    text=st.text(alphabet="*_`|[]()<>#-+=~\\&;!.:1 \n\tax", min_size=1, max_size=30), locale=st.sampled_from(LOCALES)
)
def test_any_markup_is_shown_and_changes_no_structure(text: str, locale: str) -> None:
    assert_only_shown(text, locale)


def test_the_front_matter_holds_no_free_text() -> None:
    def strings(value: Any) -> list[str]:
        return [item for item in value.values() if isinstance(item, str)]

    marked = filled("needle", "needle", "en")
    assert not [item for item in strings(marked.front) if "needle" in item]
