"""Hostile text from end to end: handed off on the command line, read on the terminal, in a report and over HTTP.

What a person sees is the visible form of the text and nothing else happens; what a program reads is the text itself.
The escaper and the pages have tests of their own; these follow one text through all doors of one store.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_support import World, screen_of, serving, shown
from rendered_page import RenderedPage

from passdown.kernel.escape import terminal, visible

CASES = {
    case["id"]: case["text"]
    for case in json.loads((Path(__file__).parents[1] / "data/hostile_text.json").read_text(encoding="utf-8"))["cases"]
}
NUL = [name for name, text in CASES.items() if "\0" in text]
"""No argument of a program can hold it: these come in over HTTP."""
WRITABLE = [name for name, text in CASES.items() if text.strip() and "\0" not in text]
EVERY = [*WRITABLE, *NUL]
GROUP = 16
"""Workstreams in a project, so that its home screen shows them all."""
WIDE = 3_500
LOCALES = ("en", "zh-CN")
# A terminal joins these with their neighbours; the one that reads the output here drops the rest of a line at them.
JOINERS = re.compile("[\u200d\ufe0e\ufe0f\u200c]")
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n"))


def on_screen(out: str) -> list[str]:
    """The lines that a very wide terminal shows; nothing but printable characters and line ends was sent to it."""
    assert CONTROLS.findall(out) == []
    return shown(screen_of(JOINERS.sub("", out), WIDE, out.count("\n") + 3))


def seen(text: str) -> list[str]:
    """The lines that a reader is to see."""
    return [JOINERS.sub("", line).rstrip() for line in terminal(nfc(text), keep_newlines=True).split("\n")]


def seen_inline(text: str) -> str:
    return JOINERS.sub("", terminal(nfc(text))).rstrip()


@dataclass
class Stage:
    """Everything that was made of the cases once, to be looked at by many tests."""

    world: World
    screens: dict[str, str] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    homes: list[str] = field(default_factory=list)
    titles: dict[str, tuple[int, str]] = field(default_factory=dict)
    oids: dict[str, str] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)
    pages: dict[str, list[RenderedPage]] = field(default_factory=dict)
    made_over_http: dict[str, Any] = field(default_factory=dict)
    project_list: str = ""


def can_be_a_file(text: str) -> bool:
    return "/" not in text and "\0" not in text and text not in (".", "..") and 1 <= len(text.encode()) <= 255


def history(names: list[str]) -> str:
    """A fast-import stream: one commit for each case, with the text as its message and as the name of a file."""
    stream = []
    for mark, name in enumerate(names, 1):
        message = CASES[name].encode()
        stream.append(
            f"commit refs/heads/main\nmark :{mark}\ncommitter C <c@example.com> {1_700_000_000 + mark} +0000\n"
        )
        stream.append(f"data {len(message)}\n{CASES[name]}\n")
        stream.append(f"from :{mark - 1}\n" if mark > 1 else "")
        stream.append(f'M 100644 inline "case-{mark}"\ndata {len(name)}\n{name}\n')
        if can_be_a_file(CASES[name]):
            stream.append(f"M 100644 inline {quoted(CASES[name])}\ndata {len(name)}\n{name}\n")
    return "".join(stream)


def quoted(path: str) -> str:
    """A path in the C style of fast-import."""
    return '"' + "".join(f"\\{byte:03o}" for byte in path.encode()) + '"'


@pytest.fixture(scope="module")
def stage(new_world: Callable[[], World]) -> Stage:
    world = new_world()
    stage = Stage(world)
    repo = world.repo("shop", commits=0)
    repo.import_history(history(WRITABLE))
    repo.git("reset", "-q", "--hard", "main")
    oids = repo.text("rev-list", "--reverse", "main").split()
    subjects = repo.git("log", "--reverse", "-z", "--format=%s").decode().removesuffix("\0").split("\0")
    stage.oids = dict(zip(WRITABLE, oids, strict=True))
    stage.subjects = dict(zip(WRITABLE, subjects, strict=True))
    for number, name in enumerate(WRITABLE):
        if number % GROUP == 0:
            world.ok(repo.path, "init", "--key", f"cases-{number}", "--locale", "en")
        hand_off(stage, repo.path, name)
        if number % GROUP == GROUP - 1 or name == WRITABLE[-1]:
            stage.homes.append(world.ok(repo.path, COLUMNS=str(WIDE)).out)
    over_http(stage, repo.path)
    return stage


def hand_off(stage: Stage, cwd: Path, name: str) -> None:
    text, world = CASES[name], stage.world
    key = f"c-{name}"
    started = world.run(cwd, "start", "--key", key, "--", text, COLUMNS=str(WIDE))
    stage.titles[name] = (started.code, started.out + started.err)
    if started.code:
        world.ok(cwd, "start", "--key", key, "A title within its limits")
    cites = [f"--cite={stage.oids[name]}"]
    if can_be_a_file(text):
        answer = world.run(cwd, "handoff", "--json", f"--cite={text}", f"--objective=file {name}")
        stage.files[name] = answer.out if answer.code == 0 else answer.err
    world.ok(cwd, "handoff", f"--objective={text}", f"--state={text}", f"--next={text}", "--only-words", *cites)
    stage.screens[name] = world.ok(cwd, "continue", "--verbose", COLUMNS=str(WIDE)).out
    stage.answers[name] = world.ok(cwd, "continue", "--json").json


def over_http(stage: Stage, cwd: Path) -> None:
    world = stage.world
    token = world.ok(cwd, "token", "create", "t", "--principal", "p", "--json").json["token"]
    with serving(world, cwd) as (url, _), httpx.Client(trust_env=False, timeout=60) as client:

        def post(path: str, **body: Any) -> httpx.Response:
            answer = client.post(f"{url}/v1{path}", json=body, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200, answer.text
            return answer

        for number, (name, text) in enumerate(CASES.items()):
            if text.strip() and len(text) <= 256:
                made = post("/handoff-reports/projects/create", key=f"t-{number}", title=text, description=text).json()
                stage.made_over_http[name] = made["project"]
        for name in NUL:
            scope_id = f"scope-{name}"
            cited = [{"kind": "inline", "label": "note"}]
            said = {"text": CASES[name], "citations": cited}
            post(
                "/handoff/hand-off-now", scope_id=scope_id, objective=CASES[name], state=[said], next_action=said,
                disposition="continuable", commit=True,
                evidence=[{"label": "note", "source_type": "content", "content": CASES[name], "name": CASES[name]}],
            )  # fmt: skip
            project_id = stage.made_over_http[name]["project_id"]
            post("/handoff-reports/workstreams/register", project_id=project_id, scope_id=scope_id, title=CASES[name])
            world.ok(cwd, "switch", scope_id)
            stage.screens[name] = world.ok(cwd, "continue", "--verbose", COLUMNS=str(WIDE)).out
            stage.answers[name] = world.ok(cwd, "continue", "--json").json
        for project in post("/handoff-reports/projects/list", limit=100).json()["projects"]:
            asked = {"project_id": project["project_id"]}
            stage.reports.append(post("/handoff-reports/get", format="json", **asked).json())
            if project["project_key"].startswith("cases-") or project["project_id"] in stage_ids(stage):
                for locale in LOCALES:
                    page = post("/handoff-reports/get", format="markdown", locale=locale, **asked).content
                    stage.pages.setdefault(locale, []).append(RenderedPage(page))
    stage.project_list = world.ok(cwd, "report", "projects", COLUMNS=str(WIDE)).out


def stage_ids(stage: Stage) -> set[str]:
    """Projects with a hostile title: a page is made of a few of them, the escaper's own tests cover the others."""
    return {project["project_id"] for project in list(stage.made_over_http.values())[::4]}


def block(lines: list[str], first: str) -> list[str]:
    """The lines of a screen from the one that begins with ``first``, without it, while they are indented deeper."""
    start = next(number for number, line in enumerate(lines) if line.startswith(first))
    return [lines[start][len(first) :], *lines[start + 1 :]]


@pytest.mark.parametrize("name", EVERY)
def test_the_continue_screen_shows_the_objective_the_statement_and_the_next_action(stage: Stage, name: str) -> None:
    lines = on_screen(stage.screens[name])
    wanted = seen(CASES[name])
    objective = block(lines, "Objective  ")
    assert objective[: len(wanted)] == [wanted[0], *(f"{' ' * 11}{line}".rstrip() for line in wanted[1:])]
    # What came without a commit cannot be compared with this checkout, so its next action is no order here.
    order = (1, "  (it said) ") if name in NUL else (0, "  → ")
    for heading, skipped, bullet in (("State", 0, "  • "), ("Next action", *order)):
        section = lines[lines.index(heading) + 1 + skipped :]
        *before, last = [bullet + wanted[0], *(" " * len(bullet) + line for line in wanted[1:])]
        assert section[: len(before)] == [line.rstrip() for line in before]
        assert re.fullmatch(re.escape(last) + r" *(\[\d+\])+", section[len(before)])


@pytest.mark.parametrize("name", EVERY)
def test_no_line_of_a_text_stands_where_a_heading_stands(stage: Stage, name: str) -> None:
    lines = on_screen(stage.screens[name])
    own = ("History", "Objective", "Status", "Checkout", "State", "Next action", "Evidence", "Omissions", " ", "= ")
    assert [line for line in lines if line and not line.startswith(own)] == []
    found = [lines.count(heading) for heading in ("State", "Next action", "Omissions")]
    assert found == [1, 1, 0 if name in NUL else 1]  # earlier commits are an omission; without a checkout none is known


@pytest.mark.parametrize("name", WRITABLE)
def test_the_subject_of_a_commit_is_shown_beside_its_id(stage: Stage, name: str) -> None:
    found = [line for line in on_screen(stage.screens[name]) if f" commit {stage.oids[name][:12]}" in line]
    subject = seen_inline(stage.subjects[name])[:100]
    assert any(f"{stage.oids[name][:12]} {subject.strip()}".strip() in line for line in found), (found, subject)


def test_hostile_file_names_are_cited_by_exactly_their_path_or_refused(stage: Stage) -> None:
    assert len(stage.files) > 25
    for name, outcome in stage.files.items():
        if outcome.startswith("{"):
            paths = {
                ref["source_ref"]["source_id"].rpartition("@")[0]
                for statement in json.loads(outcome)["prepared"]["content"]["state"]
                for ref in statement["citations"]
                if ref["source_ref"]["source_type"] == "file"
            }
            assert paths <= {nfc(CASES[name])}
        else:
            code = outcome.split(":")[0]
            assert code in ("git_object_not_found", "git_file_not_found", "invalid_request"), (name, outcome)
            assert CONTROLS.findall(outcome) == []


@pytest.mark.parametrize("name", EVERY)
def test_a_program_reads_the_text_itself(stage: Stage, name: str) -> None:
    content = stage.answers[name]["content"]
    text = nfc(CASES[name])
    assert (content["objective"], content["next_action"]["text"]) == (text, text)
    assert content["state"][0]["text"] == text


@pytest.mark.parametrize("name", WRITABLE)
def test_a_title_is_bound_and_shown_or_refused_for_its_length(stage: Stage, name: str) -> None:
    code, words = stage.titles[name]
    assert CONTROLS.findall(words) == []
    if len(nfc(CASES[name])) <= 256:
        assert on_screen(words)[0] == f"Bound to c-{name}  “{JOINERS.sub('', terminal(nfc(CASES[name])))}”"
    else:
        assert (code, words.split(":")[0]) == (2, "invalid_request")


def test_home_shows_each_next_action_on_one_line(stage: Stage) -> None:
    lines = [line for home in stage.homes for line in on_screen(home)]
    for name in WRITABLE:
        (row,) = [line for line in lines if line[3:].split(" ")[0] in (f"c-{name}", terminal(f"c-{name}")[:23] + "…")]
        assert row.endswith(seen_inline(CASES[name])[:2_000])


def test_the_project_list_has_one_line_for_each_project(stage: Stage) -> None:
    lines = on_screen(stage.project_list)
    assert len(lines) == len(stage.made_over_http) + len(stage.homes)
    for name, project in stage.made_over_http.items():
        (line,) = [line for line in lines if project["project_id"] in line]
        assert line.endswith(f"{project['project_id']}  {seen_inline(CASES[name])}".rstrip())
        assert project["title"] == nfc(CASES[name])


def test_the_json_reports_hold_every_text_itself(stage: Stage) -> None:
    objectives, statements, titles = set(), set(), set()
    for report in stage.reports:
        titles.add(report["project"]["title"])
        for item in report["workstreams"]:
            titles.add(item["workstream"]["title"])
            objectives.add(item["content"]["objective"])
            statements.update(statement["text"] for statement in item["content"]["state"])
    texts = {nfc(CASES[name]) for name in EVERY}
    assert texts <= objectives
    assert texts <= statements
    assert {text for text in texts if len(text) <= 256} <= titles


@pytest.mark.parametrize("locale", LOCALES)
def test_the_pages_show_every_text_and_hold_no_tag_but_their_own(stage: Stage, locale: str) -> None:
    pages = stage.pages[locale]
    text = "\n".join(page.text for page in pages)
    for name in EVERY:
        wanted = "\n".join(line or " " for line in visible(nfc(CASES[name])).split("\n"))
        assert wanted in text, name
    names = {re.match(r"</?(\w+|!)", tag)[0].strip("</") for page in pages for tag in page.tags}  # type: ignore[index]
    own = {"h1", "h2", "h3", "h4", "p", "em", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    assert names <= own | {"pre", "code", "blockquote", "ol", "hr"}, names
    for page in pages:
        assert [level for level, _ in page.headings].count("h1") == 1
        assert page.front["trust"] == "untrusted_history"
