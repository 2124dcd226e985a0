"""What reports have in common is made once, and no report can tell. (Targets, "8 parallel readers".)"""

from __future__ import annotations

import random
import threading
from typing import Any

import orjson
import pytest
import rfc8785
from report_support import CALLER, World, commit_read, file_read, note, of, statement

from passdown.kernel.wire import validate
from passdown.report.fragments import Fragments
from passdown.report.handoff_reader import StoreHandoffReader
from passdown.report.models import GetHandoffReportAsk
from passdown.report.operations import RenderedReport
from passdown.report.render import render_markdown
from passdown.report.service import ReportService
from passdown.report.verify import verify

EVERY_WAY: list[dict[str, Any]] = [
    {"format": "json"},
    {"format": "json", "include_evidence_checks": False},
    {"format": "markdown", "locale": "en"},
    {"format": "markdown", "locale": "zh-CN"},
    {"format": "markdown", "locale": "en", "include_evidence_checks": False},
]


class Over:
    """The reports of a world's store as one process makes them that keeps its fragments in ``fragments``."""

    def __init__(self, world: World, fragments: Fragments | None) -> None:
        reader = StoreHandoffReader(world.store, fragments)
        self._service = ReportService(world.store, world.clock, world.ids, reader, render_markdown, fragments=fragments)

    def __call__(self, project_id: str, **members: Any) -> RenderedReport:
        return self._service.get_handoff_report(
            CALLER, validate(GetHandoffReportAsk, {"project_id": project_id, **members})
        )


def something_happens(world: World, chance: random.Random, project: Any, scopes: list[str]) -> None:
    """A new workstream, a new title, a handoff that is new, or one that says what another workstream said."""
    what = chance.choice(["workstream", "title", "handoff", "handoff", "same"])
    if what == "workstream" or not scopes:
        scopes.append(f"s{len(scopes)}")
        world.workstream(project, scopes[-1], title=f"Title {len(scopes)}")
        return
    scope_id = chance.choice(scopes)
    if what == "title":
        asked = world.call("list_handoff_report_workstreams", scope_id=scope_id).workstreams[0]
        world.update_workstream(asked, title=f"标题 {chance.randrange(9)} *")
        return
    number = 0 if what == "same" else chance.randrange(10_000)
    evidence = [
        note("n", f"note {number}"),
        file_read("f", f"src/{number % 3}.py"),
        commit_read("c", number, ["origin/m"]),
    ]
    state = [statement(f"State {number} | 完成", *chance.sample(["n", "f", "c"], 2)) for _ in range(2)]
    disposition = "complete" if what == "same" else chance.choice(["blocked", "continuable", "complete"])
    world.commit(scope_id, disposition, evidence=evidence, state=state, next_action=statement("Go on", "n"))


@pytest.mark.parametrize("bound", [{}, {"entries": 1}, {"entries": 7}, {"size": 6_000}])
def test_a_report_has_the_same_bytes_whatever_was_kept_before_it(world: World, bound: dict[str, int]) -> None:
    """Faults caught: a kept part of an older revision, of another scope, of another way to ask; a bad eviction."""
    chance = random.Random(len(str(bound)))
    project, scopes = world.project("shop"), list[str]()
    keeping, anew = Over(world, Fragments(**bound)), Over(world, None)
    for _ in range(25):
        something_happens(world, chance, project, scopes)
        for ask in EVERY_WAY:
            made = keeping(project.project_id, **ask)
            assert made == anew(project.project_id, **ask)
            assert verify(made.body).selection_digest == made.selection_digest
            if ask["format"] == "json":
                assert rfc8785.dumps(orjson.loads(made.body)) == made.body


def test_evidence_that_is_gone_is_seen_by_the_next_report(world: World) -> None:
    """Fault caught: "readable" remembered from an hour ago."""
    project = world.project("shop")
    for scope_id in ("a", "b"):
        world.workstream(project, scope_id)
        world.commit(scope_id, evidence=[note("n", "the same words")])
    keeping = Over(world, Fragments())

    def readable(scope_id: str) -> Any:
        report = orjson.loads(keeping(project.project_id, format="json").body)
        return of(report, scope_id)["evidence"][0]["readable"], of(report, scope_id)["reporting_status"]

    assert (readable("a"), readable("b")) == ((True, "reported"), (True, "reported"))
    world.damage("pd_sources", "DELETE FROM pd_sources WHERE scope_id = ?", b"a")
    assert (readable("a"), readable("b")) == ((False, "evidence_unavailable"), (True, "reported"))


def test_a_second_report_makes_nothing_anew_that_the_first_one_made(world: World) -> None:
    """Fault caught: an argument that never equals itself, so that everything is kept and nothing found."""
    project = world.project("shop")
    for number in range(5):
        world.workstream(project, f"s{number}")
        world.commit(f"s{number}", evidence=[note("n", f"note {number}")])
    fragments = Fragments()
    keeping = Over(world, fragments)
    keeping(project.project_id, format="json")
    first = fragments.kept
    keeping(project.project_id, format="json")
    keeping(project.project_id, format="markdown", locale="en")
    assert fragments.kept == first
    world.commit("s3", evidence=[note("n", "news")])
    keeping(project.project_id, format="json")
    # Of the one new revision its content, its facts and its part.
    assert fragments.kept[0] == first[0] + 3


def doubled(text: str) -> str:
    return text * 2


def test_what_is_kept_is_bounded_in_number_and_weight_and_the_longest_unused_goes_first() -> None:
    """Faults caught: memory without an end, an order that drops what is in use, a weight that is never given back."""
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return doubled(text)

    fragments = Fragments(entries=2, size=10)
    for text in ("a", "b", "a", "c", "a", "b"):
        assert fragments.of(make, text, weigh=len) == text * 2
    assert (made, fragments.kept) == (["a", "b", "c", "b"], (2, 4))
    assert fragments.of(make, "12345", weigh=len) == "1234512345"
    assert fragments.kept == (1, 10)
    assert fragments.of(make, "123456", weigh=len) == "123456123456"
    assert fragments.kept == (1, 10)
    empty = Fragments(entries=0)
    assert (empty.of(doubled, "a", weigh=len), empty.kept) == ("aa", (0, 0))


def test_threads_share_what_is_kept() -> None:
    """Fault caught: a count or an order that breaks when two reports are made at once."""
    fragments = Fragments(entries=8)
    wrong: list[str] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(3_000):
            text = str(chance.randrange(20))
            if fragments.of(doubled, text, weigh=len) != text * 2:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries, weight = fragments.kept
    assert (wrong, entries) == ([], 8)
    assert 8 * 2 <= weight <= 8 * 4
