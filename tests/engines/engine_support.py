"""The product over a store on any engine, called as the wire calls it, and child processes of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import rfc8785

from passdown.app.application import open_application
from passdown.app.operations import OPERATIONS
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import SequentialIds
from passdown.kernel.operations import Principal
from passdown.kernel.wire import read_model

CHILDREN = Path(__file__).with_name("engine_children.py")
HOST = Principal("reader", "asserted", "owner", host="workbench")
START_US = 1_780_000_000_000_000
SCOPE = "scp_queue"
BY_NAME = {op.name: op for op in OPERATIONS}


class Desk:
    """One application over the store at ``url``, with a clock that stands still and ids that count up."""

    def __init__(self, url: str) -> None:
        self.clock = FixedClock(START_US)
        self.ids = SequentialIds()
        self.application = open_application(url, create=True, clock=self.clock, ids=self.ids)
        self.store = self.application.store

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.application.close()

    def ask(self, name: str, members: dict[str, Any]) -> Any:
        """JSON bytes in, JSON value out; a document is answered as its bytes."""
        op = BY_NAME[name]
        answer = self.application.caller(HOST)(op, read_model(op.ask, orjson.dumps(members)))
        return answer.body if hasattr(answer, "body") else answer.model_dump(mode="json")

    def call(self, name: str, **members: Any) -> Any:
        return self.ask(name, members)

    def note(self, text: Any = "A note.", scope_id: str = SCOPE) -> dict[str, Any]:
        """Captures content; returns the citation of it."""
        found = self.call("capture_source", scope_id=scope_id, source_type="content", content=text)
        return {"kind": "source", "source_ref": found["source"]["source_ref"]}

    def hand_off(self, scope_id: str, *, objective: str = "Keep the queue in order", **members: Any) -> Any:
        """Commit a handoff with evidence of its own, one second after the one before."""
        self.clock.move(1_000_000)
        ask = {
            "scope_id": scope_id,
            "objective": objective,
            "evidence": [{"label": "n", "source_type": "content", "content": f"Note of {scope_id}: {objective}"}],
            "state": [{"text": "It stands.", "citations": [{"kind": "inline", "label": "n"}]}],
            "disposition": "continuable",
            "next_action": None,
            "omissions": [],
            "commit": True,
        }
        return self.ask("hand_off_now", ask | members)

    def numbers(self, scope_id: str = SCOPE) -> list[int]:
        page = self.call("list_handoff_revisions", scope_id=scope_id, limit=100)
        assert page["next_cursor"] is None
        return [item["handoff_ref"]["revision"] for item in page["revisions"]]


def prepared(note: Any, base: Any = None, *, objective: str = "x", scope_id: str = SCOPE) -> dict[str, Any]:
    """A prepared handoff made by hand, its digest by RFC 8785 and hashlib alone."""
    content = {
        "schema": "powercontext.handoff.v1",
        "objective": objective,
        "state": [{"text": "It stands.", "citations": [note]}],
        "disposition": "continuable",
        "next_action": None,
        "omissions": [],
    }
    return {
        "schema": "powercontext.prepared-handoff.v1",
        "scope_id": scope_id,
        "base": base,
        "content": content,
        "content_digest": "sha256:" + hashlib.sha256(rfc8785.dumps(content)).hexdigest(),
    }


def outcome(call: Callable[[], Any]) -> Any:
    """The answer, or the code of the refusal with the revision that it tells of."""
    try:
        return call()
    except PassdownError as error:
        return {"code": error.code, "current": error.members.get("current")}


def one_winner(answers: list[Any], base: int) -> dict[str, Any]:
    """Exactly one new revision behind ``base``; everybody else is told of it."""
    won = [answer for answer in answers if "status" in answer]
    assert [answer["handoff_ref"]["revision"] for answer in won] == [base + 1], answers
    assert (won[0]["status"], won[0]["replayed"]) == ("committed", False)
    lost = [answer for answer in answers if "status" not in answer]
    assert lost == [{"code": "handoff_conflict", "current": won[0]["handoff_ref"]}] * (len(answers) - 1)
    ref: dict[str, Any] = won[0]["handoff_ref"]
    return ref


@contextmanager
def child(role: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(CHILDREN), role, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the child ended"
    return json.loads(line)
