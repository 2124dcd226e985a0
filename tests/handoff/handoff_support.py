"""A store on disk with every operation over it, short ways to fill it, and digests made without the product."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
import rfc8785

from passdown.app.application import open_application
from passdown.app.operations import OPERATIONS
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import SequentialIds
from passdown.kernel.operations import Principal
from passdown.kernel.wire import read_model

HOST = Principal("reader", "asserted", "owner", host="workbench")
CALLER = Principal("caller", "asserted", "owner")
TOKEN = Principal("agent-7", "authenticated", "agent")
START_US = 1_780_000_000_000_000
SCOPE = "scp_queue"
BY_NAME = {op.name: op for op in OPERATIONS}
TABLES = ("pd_sources", "pd_handoff_heads", "pd_handoff_revisions", "pd_handoff_evidence", "pd_counters")


class Desk:
    """One application over the store in ``data``, with a clock that stands still and ids that count up."""

    def __init__(self, data: Path) -> None:
        self.path = data / "passdown.db"
        self.clock = FixedClock(START_US)
        self.application = open_application(data, create=True, clock=self.clock, ids=SequentialIds())

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.application.close()

    def call(self, name: str, who: Principal = HOST, /, **members: Any) -> Any:
        """An operation as the wire calls it: JSON bytes in, JSON value out."""
        return self.ask(name, members, who)

    def ask(self, name: str, members: dict[str, Any], who: Principal = HOST) -> Any:
        op = BY_NAME[name]
        answer = self.application.caller(who)(op, read_model(op.ask, orjson.dumps(members)))
        return answer.model_dump(mode="json")

    def refused(self, code: str, name: str, who: Principal = HOST, /, **members: Any) -> PassdownError:
        """The refusal that a call meets; not one byte of any row may differ after it."""
        before = self.everything()
        with pytest.raises(PassdownError) as caught:
            self.ask(name, members, who)
        assert caught.value.code == code, caught.value.problem()
        assert self.everything() == before
        return caught.value

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows, seen by SQLite itself."""
        return {table: self.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES}

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql, params).fetchall()

    # --- short ways ---------------------------------------------------------------------------------------------------

    def note(self, text: Any = "A note.", *, scope_id: str = SCOPE, who: Principal = HOST, **members: Any) -> Any:
        """Captures content; returns the citation of it."""
        found = self.call("capture_source", who, scope_id=scope_id, source_type="content", content=text, **members)
        return cite(found["source"]["source_ref"])

    def commit_fact(self, oid: str, *, scope_id: str = SCOPE, who: Principal = HOST, **facts: Any) -> Any:
        """Captures a commit header; returns the citation of it."""
        descriptor = {"oid": oid} | facts
        found = self.call("capture_source", who, scope_id=scope_id, source_type="git_commit", descriptor=descriptor)
        return cite(found["source"]["source_ref"])

    def finalize(self, *, scope_id: str = SCOPE, **members: Any) -> Any:
        """A prepared handoff on the head of this moment; without ``state`` it cites a note of its own."""
        state = members.pop("state", None) or [say("It stands.", self.note(scope_id=scope_id))]
        return self.call("finalize_handoff", scope_id=scope_id, draft=draft(state, **members))

    def commit(self, *, scope_id: str = SCOPE, **members: Any) -> Any:
        """Finalises and commits; returns the answer of the commit."""
        return self.ask("commit_handoff", self.finalize(scope_id=scope_id, **members))

    def latest(self, scope_id: str = SCOPE, **members: Any) -> Any:
        return self.call(
            "continue_handoff", scope_id=scope_id, target={"kind": "latest"}, confirm_scope=scope_id, **members
        )

    def numbers(self, scope_id: str = SCOPE) -> list[int]:
        """The revision numbers of a scope, newest first, over all pages."""
        found: list[int] = []
        cursor = None
        while True:
            page = self.call("list_handoff_revisions", scope_id=scope_id, cursor=cursor, limit=100)
            found += [item["handoff_ref"]["revision"] for item in page["revisions"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return found


def cite(source_ref: dict[str, str]) -> dict[str, Any]:
    return {"kind": "source", "source_ref": source_ref}


def cite_revision(handoff_ref: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "artifact", "artifact_ref": handoff_ref}


def inline(label: str) -> dict[str, str]:
    return {"kind": "inline", "label": label}


def say(text: str, *citations: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "citations": list(citations)}


def draft(state: Sequence[dict[str, Any]], **members: Any) -> dict[str, Any]:
    return {
        "objective": "Keep the queue in order",
        "state": list(state),
        "disposition": "continuable",
        "next_action": None,
        "omissions": [],
    } | members


def content(state: Sequence[dict[str, Any]], **members: Any) -> dict[str, Any]:
    return {"schema": "powercontext.handoff.v1"} | draft(state, **members)


def prepared(body: dict[str, Any], base: dict[str, Any] | None = None, scope_id: str = SCOPE) -> dict[str, Any]:
    """A prepared handoff made by hand, with a digest of our own."""
    return {
        "schema": "powercontext.prepared-handoff.v1",
        "scope_id": scope_id,
        "base": base,
        "content": body,
        "content_digest": digest_of(body),
    }


def digest_of(value: Any) -> str:
    """The digest by RFC 8785 and hashlib alone; texts are expected in NFC."""
    return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stored(text: str) -> str:
    """What free text is once it is inside: NFC, CR LF as LF."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n"))


def places(error: PassdownError) -> list[tuple[str, str]]:
    """Where something was refused, and why."""
    return [(item["field"], item["rule"]) for item in error.members["errors"]]


def hostile_cases() -> list[tuple[str, str]]:
    path = Path(__file__).parent.parent / "data" / "hostile_text.json"
    return [(case["id"], case["text"]) for case in json.loads(path.read_text(encoding="utf-8"))["cases"]]
