"""Reading handoffs for a report: bounded, planned, and never in the way of a writer. (Targets, "SQL statements".)"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_support import World, commit_read, file_read, note, of, statement

from passdown.handoff import rules
from passdown.report.handoff_reader import StoreHandoffReader
from passdown.report.port import EvidenceFact, Exact, Head, Revision


def filled(world: World, workstreams: int, revisions: int) -> Any:
    project = world.project(f"p{workstreams}-{revisions}")
    for number in range(workstreams):
        scope_id = f"s{workstreams}-{revisions}-{number}"
        world.workstream(project, scope_id)
        for revision in range(revisions):
            evidence = [note("n", f"{scope_id} {revision}"), commit_read("c", revision, [])]
            world.commit(scope_id, evidence=evidence, state=[statement("s", "n", "c")] * 2, objective=f"{revision}")
    return project


@pytest.mark.parametrize("checks", [True, False])
def test_a_report_takes_the_same_few_statements_for_any_number_of_workstreams_and_revisions(
    world: World, checks: bool
) -> None:
    counts = set()
    for workstreams, revisions in ((1, 1), (2, 5), (17, 1), (17, 3)):
        project = filled(world, workstreams, revisions)
        world.store.forget()
        world.report(project, include_evidence_checks=checks)
        assert len(world.store.log) == world.store.statements
        counts.add((world.store.statements, world.store.reads))
    assert counts == {(6, 5)}


def test_a_report_of_ungrouped_scopes_takes_as_few(world: World) -> None:
    for number in range(12):
        world.commit(f"loose {number}")
    world.store.forget()
    world.report("prj_ungrouped")
    assert world.store.statements == 5


def plans(world: World) -> list[tuple[str, list[str]]]:
    """Each distinct statement that was read with its plan as the engine tells it."""
    distinct = {re.sub(r"\s+", " ", sql): (sql, params) for sql, params in world.store.log if sql.startswith("SELECT")}
    with closing(sqlite3.connect(world.path)) as connection:
        return [
            (short, [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)])
            for short, (sql, params) in distinct.items()
        ]


def test_every_statement_of_a_report_finds_its_rows_by_index(world: World) -> None:
    project = filled(world, 9, 2)
    world.store.forget()
    world.report(project)
    found = plans(world)
    assert len(found) == 5
    for sql, plan in found:
        # What was asked for is walked: the rows of the statement itself, joined as "a". No table is.
        walked = {step for step in plan if step.startswith("SCAN")}
        assert walked <= {"SCAN CONSTANT ROW", "SCAN a"}, (sql, plan)
        assert [step for step in plan if step.startswith("SEARCH")], (sql, plan)


def test_lists_walk_an_index_and_sort_no_table(world: World) -> None:
    project = filled(world, 5, 2)
    world.commit("loose")
    world.store.forget()
    for name, asked in (
        ("list_handoff_report_projects", {}),
        ("list_handoff_report_known_scopes", {}),
        ("list_handoff_report_workstreams", {"project_id": project.project_id}),
        ("list_handoff_report_workstreams", {"project_id": "prj_ungrouped"}),
        ("list_handoff_report_revisions", {"scope_id": "loose"}),
    ):
        world.call(name, limit=2, **asked)
    for sql, plan in plans(world):
        assert not [step for step in plan if step.startswith("SCAN") and "INDEX" not in step], (sql, plan)
        # Heads of one microsecond are sorted among themselves, nothing else is.
        sorts = [step for step in plan if "TEMP B-TREE" in step]
        assert all("RIGHT PART" in step or "LAST TERM" in step for step in sorts), (sql, plan)


def test_a_report_is_read_while_another_connection_holds_the_write_lock(world: World) -> None:
    project = filled(world, 2, 1)
    with closing(sqlite3.connect(world.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE pd_handoff_heads SET revision = 99")
        report = world.report(project)
        writer.execute("ROLLBACK")
    assert {entry["handoff_ref"]["revision"] for entry in report["end_selection"]} == {1}


def test_a_report_writes_nothing(world: World) -> None:
    project = filled(world, 2, 1)
    writes = world.store.writes()
    world.store.forget()
    world.report(project)
    world.rendered(project, format="markdown")
    assert (world.store.written, world.store.writes()) == (0, writes)


def test_the_reader_answers_for_what_is_there_and_leaves_out_the_rest(world: World) -> None:
    world.commit("a", objective="one")
    world.commit("a", objective="two")
    reader = StoreHandoffReader(world.store)
    head = reader.latest_many(["a", "b", "A"])["a"]
    assert isinstance(head, Head)
    assert (len(reader.latest_many(["a", "b", "A"])), head.revision) == (1, 2)
    first = Exact("a", head.artifact_id, 1)
    missing = [Exact("a", head.artifact_id, 3), Exact("b", head.artifact_id, 1), Exact("a", "hnd_other", 1)]
    found = reader.get_many([first, *missing])
    assert list(found) == [first]
    assert isinstance(found[first], Revision)
    assert found[first].content["objective"] == "one"
    assert reader.get_many([]) == reader.latest_many([]) == reader.check_evidence_many([]) == {}
    assert [item.exact.revision for item in reader.revisions("a", None, 5)] == [2, 1]
    assert [item.exact.revision for item in reader.revisions("a", 2, 5)] == [1]


def test_the_digest_of_a_revision_is_that_of_its_content(world: World) -> None:
    committed = world.commit("a").committed
    assert committed is not None
    reader = StoreHandoffReader(world.store)
    assert reader.revisions("a", None, 1)[0].content_digest == committed.content_digest


def test_evidence_is_looked_up_in_its_own_scope(world: World) -> None:
    """Would catch a join over sources that forgets the scope."""
    project = world.project("shop")
    for scope_id in ("a", "b"):
        world.workstream(project, scope_id)
        world.commit(scope_id, evidence=[file_read("f", "same.py")])
    world.damage("pd_sources", "DELETE FROM pd_sources WHERE scope_id = ?", b"a")
    report = world.report(project)
    assert of(report, "a")["evidence"][0]["readable"] is False
    assert of(report, "b")["evidence"][0]["readable"] is True


def test_more_than_five_hundred_items_are_read_in_runs(world: World) -> None:
    world.commit("a", evidence=[note("n", "n")])
    reader = StoreHandoffReader(world.store)
    head = reader.latest_many([f"x{number}" for number in range(1_000)] + ["a"])["a"]
    ref = Exact("a", head.artifact_id, 1)
    refs = [Exact(f"x{number}", "hnd_x", 1) for number in range(1_000)] + [ref]
    assert list(reader.get_many(refs)) == [ref]
    assert reader.check_evidence_many(refs) == {
        ref: (EvidenceFact(True, None, "caller_supplied", "n", None, None),),
    }


citations = st.one_of(
    st.builds(
        lambda kind, name: {"kind": "source", "source_ref": {"source_type": kind, "source_id": name}},
        st.sampled_from(["file", "content"]),
        st.sampled_from(["a", "b"]),
    ),
    st.builds(
        lambda number: {
            "kind": "artifact",
            "artifact_ref": {"family": "handoff", "artifact_id": "h", "revision": number},
        },
        st.integers(1, 2),
    ),
)
statements = st.fixed_dictionaries({"text": st.just("t"), "citations": st.lists(citations, min_size=1, max_size=3)})


@settings(max_examples=50)
@given(st.lists(statements, min_size=1, max_size=3), st.none() | statements, st.lists(citations, max_size=2))
def test_evidence_facts_line_up_with_the_citations_of_the_content(
    state: list[Any], next_action: Any, omitted: list[Any]
) -> None:
    """The order of rows and the order of citations are one rule; this is what assembling relies on."""
    content = {
        "state": state,
        "next_action": next_action,
        "omissions": [{"text": "o", "citation": citation} for citation in omitted],
    }
    every = [
        item for entry in [*state, *([next_action] if next_action else [])] for item in entry["citations"]
    ] + omitted
    first = [item for index, item in enumerate(every) if item not in every[:index]]
    assert rules.cited(content) == first
