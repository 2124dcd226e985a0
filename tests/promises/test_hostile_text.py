"""Hostile text from end to end: handed off on the command line, read on the terminal, in a report and over HTTP.

What a person sees is the visible form of the text and nothing else happens; what a program reads is the text itself.
The escaper and the pages have tests of their own; these follow one text through all doors of one store.
"""

from __future__ import annotations

import hashlib
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
from git_support import Repo
from rendered_page import RenderedPage

from passdown.git.locate import find_repository
from passdown.git.state import WorktreeState, save_state
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
    """Everything that was made of the cases once, to be looked at by many tests. Screens are what commands printed."""

    world: World
    screens: dict[str, str] = field(default_factory=dict)
    homes: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    oids: dict[str, str] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=dict)
    refused_files: dict[str, str] = field(default_factory=dict)
    projects: dict[str, Any] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)
    pages: dict[str, list[RenderedPage]] = field(default_factory=dict)
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
    stage.oids = dict(zip(WRITABLE, repo.text("rev-list", "--reverse", "main").split(), strict=True))
    subjects = repo.git("log", "--reverse", "-z", "--format=%s").decode().removesuffix("\0").split("\0")
    stage.subjects = dict(zip(WRITABLE, subjects, strict=True))
    token = world.ok(repo.path, "token", "create", "t", "--principal", "p", "--json").json["token"]
    with serving(world, repo.path) as (url, _), httpx.Client(trust_env=False, timeout=60) as client:

        def post(path: str, **body: Any) -> httpx.Response:
            answer = client.post(f"{url}/v1{path}", json=body, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200, answer.text
            return answer

        for number, name in enumerate(EVERY):
            stage.projects[name] = post(
                "/handoff-reports/projects/create", key=f"t-{number}", title=title_of(name), description=title_of(name)
            ).json()["project"]
        for start in range(0, len(EVERY), GROUP):
            owner = stage.projects[EVERY[start]]["project_id"]
            for name in EVERY[start : start + GROUP]:
                post("/handoff-reports/workstreams/register", project_id=owner, scope_id=name, title=title_of(name))
                hand_off(stage, repo, name, post)
            stage.homes.append(world.ok(repo.path, COLUMNS=str(WIDE)).out)
            stage.choices.append(world.ok(repo.path, "switch", COLUMNS=str(WIDE)).out)
            stage.reports.append(post("/handoff-reports/get", format="json", project_id=owner).json())
            for locale in LOCALES:
                page = post("/handoff-reports/get", format="markdown", locale=locale, project_id=owner).content
                stage.pages.setdefault(locale, []).append(RenderedPage(page))
    stage.project_list = world.ok(repo.path, "report", "projects", COLUMNS=str(WIDE)).out
    return stage


def title_of(name: str) -> str:
    """The text as a title; the two that are too long for one only by their beginning."""
    return CASES[name][:256].rstrip("\n")


def hand_off(stage: Stage, repo: Repo, name: str, post: Callable[..., httpx.Response]) -> None:
    """Hand the case off in its workstream, by the command line where an argument can hold it, and continue it."""
    text, world = CASES[name], stage.world
    save_state(find_repository(repo.path), WorktreeState("ws_stage", name, str(world.data)))
    if name in NUL:
        cited = [{"kind": "inline", "label": "note"}]
        said = {"text": text, "citations": cited}
        note = {"label": "note", "source_type": "content", "content": text, "name": text}
        post(
            "/handoff/hand-off-now", scope_id=name, objective=text, state=[said], next_action=said, evidence=[note],
            disposition="continuable", commit=True,
        )  # fmt: skip
    else:
        words = [f"--objective={text}", f"--state={text}", f"--next={text}", f"--cite={stage.oids[name]}"]
        answer = world.run(
            repo.path, "handoff", "--only-words", *words, *([f"--cite={text}"] if can_be_a_file(text) else [])
        )
        if answer.code:
            stage.refused_files[name] = answer.err
            world.ok(repo.path, "handoff", "--only-words", *words)
    stage.screens[name] = world.ok(repo.path, "continue", "--verbose", COLUMNS=str(WIDE)).out


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
    assert found
    assert stage.oids[name][:12] + " " + seen_inline(stage.subjects[name])[:100] in found[0] + " "


def test_a_hostile_file_name_is_cited_by_exactly_its_path(stage: Stage) -> None:
    for name, said in stage.refused_files.items():
        assert said.splitlines()[-3].split(":")[0] in ("git_object_not_found", "invalid_request"), (name, said)
        assert CONTROLS.findall(said) == []
    cited = [name for name in WRITABLE if can_be_a_file(CASES[name]) and name not in stage.refused_files]
    assert len(cited) > 30
    for name in cited:
        path = unicodedata.normalize("NFC", CASES[name])  # a name is no text: its line ends stay as they are
        (found,) = [ref["source_id"].rpartition("@")[0] for ref in refs_of(stage, name) if ref["source_type"] == "file"]
        # An identity holds no control characters, so that the path itself, or its digest, names the source.
        assert found in (path, f"sha256:{hashlib.sha256(path.encode()).hexdigest()}")
        lines = [line for line in on_screen(stage.screens[name]) if re.match(r"  \[\d+\] file ", line)]
        # The file holds the id of its case; the label is its path and the beginning of the digest of that.
        at = f"{JOINERS.sub('', terminal(path))}@{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        assert [line.split(" file ", 1)[1] for line in lines] == [at], lines


def workstream(stage: Stage, name: str) -> dict[str, Any]:
    """The workstream of the case in the report that has it."""
    found = [item for report in stage.reports for item in report["workstreams"]]
    return next(item for item in found if item["workstream"]["scope_id"] == name)


def refs_of(stage: Stage, name: str) -> list[dict[str, str]]:
    return [citation["source_ref"] for citation in workstream(stage, name)["content"]["state"][0]["citations"]]


@pytest.mark.parametrize("name", EVERY)
def test_a_program_reads_the_text_itself(stage: Stage, name: str) -> None:
    item = workstream(stage, name)
    text = nfc(CASES[name])
    assert (item["content"]["objective"], item["content"]["next_action"]["text"]) == (text, text)
    assert item["content"]["state"][0]["text"] == text
    assert item["workstream"]["title"] == nfc(title_of(name))
    assert (stage.projects[name]["title"], stage.projects[name]["description"]) == (nfc(title_of(name)),) * 2


def test_home_shows_each_next_action_on_one_line(stage: Stage) -> None:
    lines = [line for home in stage.homes for line in on_screen(home)]
    for name in EVERY:
        (row,) = [line for line in lines if re.match(rf"(→|\s)  {re.escape(name)}  +► continuable", line)]
        assert ends_with(row, seen_inline(CASES[name]))


def test_the_choices_show_each_title_on_one_line(stage: Stage) -> None:
    lines = [line for choices in stage.choices for line in on_screen(choices)]
    assert len(lines) == len(EVERY)
    for name in EVERY:
        (row,) = [line for line in lines if re.match(rf"  (→|\s)  {re.escape(name)}  ", line)]
        assert ends_with(row, seen_inline(title_of(name)))


def test_the_project_list_has_one_line_for_each_project(stage: Stage) -> None:
    lines = on_screen(stage.project_list)
    assert len(lines) == len(stage.projects)
    for name, project in stage.projects.items():
        (line,) = [line for line in lines if project["project_id"] in line]
        assert line.endswith(f"{project['project_id']}  {seen_inline(title_of(name))}".rstrip())


def ends_with(line: str, text: str) -> bool:
    """Whether the line shows the text at its end, all of it or as much as fits and an ellipsis."""
    whole, _, cut = line.partition("…")
    return line.endswith(text) or (line.endswith("…") and not cut and text[:1_000] in whole and len(text) > 1_000)


@pytest.mark.parametrize("locale", LOCALES)
def test_the_pages_show_every_text_and_hold_no_tag_but_their_own(stage: Stage, locale: str) -> None:
    pages = stage.pages[locale]
    text = "\n".join(page.text for page in pages)
    for name in EVERY:
        wanted = "\n".join(line or " " for line in visible(nfc(CASES[name])).split("\n"))
        # In the paragraphs of objective and state, and in the list of evidence or the next action.
        assert text.count(wanted) >= 2, name
    tags = {re.sub(r"[</>\[\] ]", "", tag.split(" ")[0]) for page in pages for tag in page.tags}
    own = {"h1", "h2", "h3", "h4", "p", "em", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    assert tags <= own | {"pre", "code", "blockquote", "ol", "hr"}, tags
    for page in pages:
        assert [level for level, _ in page.headings].count("h1") == 1
        assert page.front["trust"] == "untrusted_history"
