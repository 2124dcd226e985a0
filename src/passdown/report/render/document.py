"""The structure of a report page: front matter, title, sections in their fixed order.

The structure is one for all locales; only words differ. A report kind is a row of :data:`SECTIONS`: its sections with
their headings, in order. Rendering is a pure function of the canonical report: same report, same bytes.

Public: :data:`RENDERER_VERSIONS`, :data:`SECTIONS`, :func:`render_markdown`. (Report RFC, fixed Markdown structure.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from passdown.report.render.details import details
from passdown.report.render.metadata import envelope_fence, front_matter
from passdown.report.render.overview import blockers, overview, status_table
from passdown.report.render.view import Page, page_of
from passdown.report.render.words import note

RENDERER_VERSIONS: Final = {"zh-CN": "markdown.zh-CN.v1", "en": "markdown.en.v1"}

Section = tuple[str, Callable[[Page], Iterator[str]]]


def _metadata(page: Page) -> Iterator[str]:
    """Everything that reproduces the page: exact time, renderer, digests, envelope."""
    words, report = page.words, page.report
    yield f"- {words.label('generated')}{report['generated_at']}"
    yield f"- {words.label('renderer')}{report['renderer_version']}"
    consistency = words.term("consistency", report["selection_consistency"], "exact_input")
    yield f"- {words.label('consistency')}{consistency}"
    yield f"- {words.label('revisions')}{report['project_revision']}"
    yield f"- {words.label('selection_digest')}{report['selection_digest']}"
    yield f"- {words.label('report_digest')}{report['report_digest']}"
    yield ""
    yield note(words.say("metadata.note"))
    yield ""
    yield from envelope_fence(report)


SECTIONS: Final[Mapping[str, tuple[Section, ...]]] = {
    "handoff": (
        ("overview", overview),
        ("blockers", blockers),
        ("status", status_table),
        ("details", details),
        ("metadata", _metadata),
    ),
}


def render_markdown(report: Mapping[str, Any]) -> bytes:
    """The Markdown page of a canonical report: UTF-8, LF line ends, one final newline.

    ``report`` is a whole canonical report with ``locale``, ``format`` ``markdown``, ``renderer_version`` and both
    digests set. No statement is cut: whoever answers the page holds it against the limit of an output. Raises
    ``unsupported_report_locale`` for a locale without words.
    """
    page = page_of(report)
    lines = [
        *front_matter(report),
        "",
        f"# {page.title} {page.words.say('heading.report')}",
        "",
        note(page.words.say("notice")),
    ]
    for heading, write in SECTIONS[report["report_kind"]]:
        lines += ["", f"## {page.words.say('heading.' + heading)}", "", *write(page)]
    return ("\n".join(lines) + "\n").encode()
