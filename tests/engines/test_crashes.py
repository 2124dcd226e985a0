"""Killed at every statement of a handoff, on every engine: the old head or the new one, whole, and never two."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import rfc8785
from engine_support import BY_NAME, HOST, hear, tell

from passdown.app.application import open_application
from passdown.app.integrity import check_store
from passdown.kernel.wire import read_model
from support.places import Place

CHILDREN = Path(__file__).with_name("crash_children.py")
NOTES = ("One.", "Two.", "Three.")


@contextmanager
def makers(place: Place) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(CHILDREN), place.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(place: Place, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The answers to operations, by an application that is opened for them alone."""
    with open_application(place.url, create=False) as application:
        call = application.caller(HOST)
        return [
            call(BY_NAME[name], read_model(BY_NAME[name].ask, orjson.dumps(members))).model_dump(mode="json")
            for name, members in calls
        ]


def ref_of(text: str) -> dict[str, str]:
    return {"source_type": "content", "source_id": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"}


def content(citations: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "objective": "Keep the queue in order",
        "state": [{"text": "It stands.", "citations": citations}],
        "disposition": "continuable",
        "next_action": None,
        "omissions": [],
    }


def committing(scope_id: str, base: Any) -> dict[str, Any]:
    """A prepared handoff that cites what is captured already."""
    body = {"schema": "powercontext.handoff.v1"}
    body |= content([{"kind": "source", "source_ref": ref_of(text)} for text in NOTES])
    return {
        "schema": "powercontext.prepared-handoff.v1",
        "scope_id": scope_id,
        "base": base,
        "content": body,
        "content_digest": "sha256:" + hashlib.sha256(rfc8785.dumps(body)).hexdigest(),
    }


def handing_off(scope_id: str, base: Any) -> dict[str, Any]:
    """The same handoff with its evidence, in one request."""
    return {
        "scope_id": scope_id,
        **content([{"kind": "inline", "label": text} for text in NOTES]),
        "evidence": [{"label": text, "source_type": "content", "content": text} for text in NOTES],
        "expected_base": base,
        "expect_first": base is None,
        "commit": True,
    }


@dataclass(frozen=True)
class Making:
    """One way to make a handoff: the request, what is there before, and where the answer tells of the revision."""

    operation: str
    ask_of: Callable[[str, Any], dict[str, Any]]
    captured_before: bool
    answer_of: Callable[[Any], Any]


MAKINGS = {
    "commit_handoff": Making("commit_handoff", committing, True, lambda answer: answer),
    "hand_off_now": Making("hand_off_now", handing_off, False, lambda answer: answer["committed"]),
}


@dataclass
class Scope:
    """A workstream of one crash, with the handoff that is to be made in it."""

    place: Place
    making: Making
    scope_id: str
    has_head: bool

    def prepare(self) -> None:
        """What stands before the crash: perhaps a first revision, and the evidence where the request only names it."""
        captures = [
            ("capture_source", {"scope_id": self.scope_id, "source_type": "content", "content": text}) for text in NOTES
        ]
        first = handing_off(self.scope_id, None) | {"objective": "Before"}
        if self.has_head:
            first |= {"evidence": [{"label": "b", "source_type": "content", "content": "Before."}]}
            first |= {"state": [{"text": "Before.", "citations": [{"kind": "inline", "label": "b"}]}]}
        calls = [("hand_off_now", first)] if self.has_head else []
        answers = ask(self.place, *calls, *(captures if self.making.captured_before else []))
        self.base = answers[0]["committed"]["handoff_ref"] if self.has_head else None
        self.request = self.making.ask_of(self.scope_id, self.base)

    @property
    def new(self) -> int:
        """The number of the revision that is to be made."""
        return 2 if self.has_head else 1

    def rows(self, columns: str, table: str) -> list[tuple[Any, ...]]:
        """Rows of this scope, by the driver alone."""
        scope = self.place.literal(self.scope_id.encode())
        return sorted(self.place.rows(f"SELECT {columns} FROM {table} WHERE scope_id = {scope}"))

    def check_new(self) -> None:
        """The new revision is there with everything that it cites, and nothing twice."""
        numbers = [(number,) for number in range(1, self.new + 1)]
        assert self.rows("revision", "pd_handoff_revisions") == numbers
        assert self.rows("revision", "pd_handoff_heads") == numbers[-1:]
        before = [(1, 0)] if self.has_head else []
        cited = [(self.new, ordinal) for ordinal in range(len(NOTES))]
        assert self.rows("revision, ordinal", "pd_handoff_evidence") == before + cited
        stored = [bytes(row[0]) for row in self.rows("sha256", "pd_sources")]
        wanted = [hashlib.sha256(text.encode()).digest() for text in (*NOTES, *(["Before."] if self.has_head else []))]
        assert sorted(stored) == sorted(wanted)


def check_sound(place: Place) -> None:
    found = check_store(place.target)
    assert found.ok, [problem for check in found.checks for problem in check.problems]


@pytest.mark.slow
@pytest.mark.parametrize("has_head", [False, True], ids=["first", "next"])
@pytest.mark.parametrize("making", MAKINGS.values(), ids=MAKINGS)
def test_killed_at_any_statement_the_scope_has_the_old_head_or_the_new_one_whole(
    place: Place, making: Making, has_head: bool
) -> None:
    """Catches: a statement outside of the transaction, a commit in the middle of it, a retry that appends again.

    Which statements there are is found out by a run that lives, so new ones are covered as they come.
    """
    with makers(place) as process:

        def make(scope: Scope, number: int | None = None, when: str | None = None) -> Any:
            told = {"operation": making.operation, "ask": scope.request, "number": number, "when": when}
            tell(process, json.dumps(told))
            return hear(process)

        alive = Scope(place, making, "scp_alive", has_head)
        alive.prepare()
        statements = make(alive)
        assert hear(process) == {"killed": False, "status": 0}
        alive.check_new()
        assert statements[-1] == "COMMIT"
        assert statements.count("COMMIT") == 1
        # Behind a statement is in front of the next one, but for what the process does between; a server sees neither.
        sides = ("before", "after") if place.engine == "sqlite" else ("before",)
        points = [(number, when) for number in range(len(statements)) for when in sides]
        points += [] if points[-1][1] == "after" else [(len(statements) - 1, "after")]
        for number, when in points:
            scope = Scope(place, making, f"scp_{number}_{when}", has_head)
            scope.prepare()
            old = place.everything()
            assert make(scope, number, when) == {"killed": True, "status": 9}, (number, when)
            is_made = (number, when) == points[-1]
            if is_made:
                scope.check_new()
            else:
                assert place.everything() == old, (statements[number], when)
            if place.engine == "sqlite":
                check_sound(place)  # of the whole store, which takes a server a second; there once at the end
            answers = ask(place, *[(making.operation, scope.request)] * 2)
            first, again = map(making.answer_of, answers)
            assert first["handoff_ref"]["revision"] == scope.new
            assert (first["status"], first["replayed"]) == ("committed", is_made)
            assert again == first | {"replayed": True}
            scope.check_new()
        check_sound(place)
