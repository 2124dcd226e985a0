"""The real Markdown of real reports: what it says, and that it is the same selection as the JSON."""

from __future__ import annotations

import orjson
import pytest
from report_support import MakeWorld, World, file_read, note, statement

from passdown.report.render import RENDERER_VERSIONS, render_markdown
from passdown.report.verify import selection_of, verify


@pytest.fixture
def printed(make_world: MakeWorld) -> World:
    """A project in all four states, over the renderer that people read."""
    world = make_world(renderer=render_markdown)
    project = world.project("shop", title="Shop", timezone="Asia/Shanghai")
    for scope_id, disposition in (("a", "blocked"), ("b", "continuable"), ("c", "complete"), ("d", None)):
        world.workstream(project, scope_id, title=f"Title of {scope_id}")
        if disposition:
            evidence = [file_read("f", f"src/{scope_id}.py"), note("n", f"note on {scope_id}")]
            state = [statement(f"State of {scope_id} with * and |", "f" if scope_id == "b" else "n")]
            world.commit(scope_id, disposition, evidence=evidence, state=state, next_action=statement("Go on", "n"))
    world.commit("loose")
    return world


@pytest.mark.parametrize("locale", ["zh-CN", "en"])
def test_the_markdown_of_a_report_verifies_as_the_selection_of_its_json(printed: World, locale: str) -> None:
    project = printed.call("get_handoff_report_project", key="shop").project
    page = printed.rendered(project, format="markdown", locale=locale)
    exported = printed.rendered(project, locale=locale)
    assert verify(page.body).selection_digest == verify(exported.body).selection_digest == page.selection_digest
    assert selection_of(page.body) == selection_of(exported.body)
    text = page.body.decode()
    assert (
        f"selection_digest: {page.selection_digest}" in text or f'selection_digest: "{page.selection_digest}"' in text
    )
    for scope_id in "abc":
        assert f"State of {scope_id} with \\* and \\|" in text
    assert orjson.loads(exported.body)["renderer_version"] == "json.v1"


def test_the_renderer_and_the_report_agree_on_the_name_of_the_renderer(printed: World) -> None:
    """Would catch a page that claims another renderer than the one that made it."""
    for locale, version in (("zh-CN", "markdown.zh-CN.v1"), ("en", "markdown.en.v1")):
        assert version in dict(RENDERER_VERSIONS).values()
        assert version in printed.rendered("prj_ungrouped", format="markdown", locale=locale).body.decode()


def test_the_ungrouped_project_is_called_in_the_language_of_the_page(printed: World) -> None:
    english = printed.rendered("prj_ungrouped", format="markdown", locale="en").body.decode()
    chinese = printed.rendered("prj_ungrouped", format="markdown", locale="zh-CN").body.decode()
    assert "# Ungrouped Project Handoff Report" in english
    assert "# Ungrouped" not in chinese


def test_a_page_without_checks_calls_no_evidence_readable(printed: World) -> None:
    project = printed.call("get_handoff_report_project", key="shop").project
    checked = printed.rendered(project, format="markdown", locale="en").body.decode()
    unchecked = printed.rendered(project, format="markdown", locale="en", include_evidence_checks=False).body.decode()
    assert ("· reference readable" in checked, "· reference readable" in unchecked) == (True, False)
    assert "· not checked" in unchecked
    assert "NOT READABLE" not in unchecked
