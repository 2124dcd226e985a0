"""A real server over a real store, with three small operations that really write, read and erase rows."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
import orjson
from fastapi import FastAPI

from passdown.api.app import create_app
from passdown.api.server import bind_listener, make_server, url_of
from passdown.identity.service import TokenService
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import ERRORS, PassdownError
from passdown.kernel.ids import RandomIds
from passdown.kernel.operations import Op, Principal
from passdown.kernel.wire import Count, Identifier, Wire, text
from passdown.storage import Session, Store, open_store

MARK = "zq7mark"
"""Stands in everything that a test sends, so that no answer may contain it."""

NOW_US = 1_800_000_000_000_000


class AddNoteAsk(Wire):
    name: Identifier
    body: Annotated[str, text(100, required=False)] = ""
    weight: Count = 0
    pinned: bool = False


class AddNoteAnswer(Wire):
    name: Identifier
    written_by: str
    identity: str
    host: str | None
    total: Count
    note: str | None = None


class CountNotesAsk(Wire):
    scope: Identifier | None = None


class CountNotesAnswer(Wire):
    total: Count


class EraseNotesAsk(Wire):
    name: Identifier


class PrintNotesAsk(Wire):
    format: str = "markdown"
    download: bool = False
    file_name: str = "notes-1.md"


@dataclass(frozen=True)
class Printed:
    body: bytes
    media_type: str
    selection_digest: str
    report_digest: str
    file_name: str


ADD = Op("add_note", "/v1/notes/add", AddNoteAsk, AddNoteAnswer, ("source_conflict",), "append", "Add a note.")
COUNT = Op("count_notes", "/v1/notes/count", CountNotesAsk, CountNotesAnswer, ("source_not_found",), "read", "Count.")
ERASE = Op(
    "erase_notes", "/v1/notes/erase", EraseNotesAsk, CountNotesAnswer, ("source_not_found",), "destroy", "Erase."
)
PRINT = Op("print_notes", "/v1/notes/print", PrintNotesAsk, Printed, (), "read", "Print the notes.")
OPERATIONS: tuple[Op[Any, Any], ...] = (ADD, COUNT, ERASE, PRINT)

PRINTED_MARKDOWN = "# Notes\n\n项目\n".encode()
PRINTED_JSON = '{"title":"项目"}'.encode()


class Notes:
    """Handlers over the counters table of the store. The note ``held`` waits between ``entered`` and ``hold``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entered = threading.Event()
        self.hold = threading.Event()
        self.left = threading.Event()
        self.on_print: Callable[[], object] = lambda: None

    def add(self, who: Principal, ask: AddNoteAsk) -> AddNoteAnswer:
        if ask.name == "conflict":
            raise PassdownError("source_conflict", current={"revision": 3})
        if ask.name == "fault":
            raise RuntimeError(f"the private text {ask.body}")
        if ask.name == "wrong-answer":
            return CountNotesAnswer(total=1)  # type: ignore[return-value]
        if ask.name == "busy":
            raise PassdownError("store_busy")
        if ask.name == "held":
            self.entered.set()
            self.hold.wait(30)

        def work(session: Session) -> int:
            key = b"note:" + ask.name.encode()[:50]
            if not session.insert_new("INSERT INTO pd_counters (name, value) VALUES (:name, 1)", name=key):
                session.run("UPDATE pd_counters SET value = value + 1 WHERE name = :name", name=key)
            return _total(session)

        total = self._store.write(work)
        self.left.set()
        return AddNoteAnswer(
            name=ask.name, written_by=who.principal_id, identity=who.identity, host=who.host, total=total
        )

    def count(self, _who: Principal, _ask: CountNotesAsk) -> CountNotesAnswer:
        return CountNotesAnswer(total=self._store.read(_total))

    def erase(self, _who: Principal, ask: EraseNotesAsk) -> CountNotesAnswer:
        key = b"note:" + ask.name.encode()
        gone = self._store.write(lambda session: session.run("DELETE FROM pd_counters WHERE name = :name", name=key))
        return CountNotesAnswer(total=gone)

    def print(self, _who: Principal, ask: PrintNotesAsk) -> Printed:
        self.on_print()
        as_json = ask.format == "json"
        return Printed(
            body=PRINTED_JSON if as_json else PRINTED_MARKDOWN,
            media_type="application/json" if as_json else "text/markdown; charset=utf-8",
            selection_digest="sha256:" + "1" * 64,
            report_digest="sha256:" + "2" * 64,
            file_name=ask.file_name,
        )

    def handlers(self) -> dict[str, Callable[[Principal, Any], Any]]:
        return {"add_note": self.add, "count_notes": self.count, "erase_notes": self.erase, "print_notes": self.print}


def _total(session: Session) -> int:
    row = session.one(
        "SELECT COALESCE(SUM(value), 0) FROM pd_counters WHERE name > :low AND name < :high",
        low=b"note:",
        high=b"note;",
    )
    assert row is not None
    return int(row[0])


@dataclass
class Site:
    """A running server and what stands behind it. Stopping twice is allowed."""

    folder: Path
    url: str
    port: int
    app: FastAPI
    store: Store
    tokens: TokenService
    clock: FixedClock
    notes: Notes
    owner: str
    agent: str
    reader: str
    server: Any
    thread: threading.Thread
    client: httpx.Client = field(repr=False)

    def post(self, path: str, content: Any = b"{}", token: str | None = None, **headers: str) -> httpx.Response:
        """POST bytes (or the JSON of a value, or an iterator of chunks) as the agent."""
        if isinstance(content, dict | list):
            content = orjson.dumps(content)
        sent = {"Authorization": f"Bearer {token or self.agent}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(self.url + path, content=content, headers=sent)

    def stop(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.store.close()


def start_site(folder: Path, *, whole: bool = False, **options: Any) -> Site:
    store = open_store(folder / "passdown.db", create=True)
    clock = FixedClock(NOW_US)
    tokens = TokenService(store, clock, RandomIds(clock))
    notes = Notes(store)
    handlers = notes.handlers()
    operations = OPERATIONS
    if whole:
        # Loaded here, because the server of its own process needs none of it.
        from passdown.app.application import Application
        from passdown.app.operations import OPERATIONS as PRODUCT_OPERATIONS
        from passdown.report.report_models import HandoffReport

        application = Application(store, clock)
        handlers |= application.handlers()
        options = {"replays": application.replays(), "places": application.places(), **options}
        operations += PRODUCT_OPERATIONS
        options["document_model"] = HandoffReport
    documents = {"print_notes", "get_handoff_report"}
    options = {"writes": store.writes, **options}
    app = create_app(handlers, operations, tokens, document_operations=documents, **options)
    listener = bind_listener("127.0.0.1", 0)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    return Site(
        folder=folder,
        url=url_of("127.0.0.1", listener),
        port=listener.getsockname()[1],
        app=app,
        store=store,
        tokens=tokens,
        clock=clock,
        notes=notes,
        owner=tokens.create("owner", "olga", "owner")[0],
        agent=tokens.create("agent", "codex-2", "agent", host="buildbox")[0],
        reader=tokens.create("reader", "rae", "reader")[0],
        server=server,
        thread=thread,
        client=httpx.Client(timeout=30, trust_env=False),
    )


def check_problem(answer: httpx.Response, code: str, **members: Any) -> dict[str, Any]:
    """The answer is the problem of ``code``, whole and well formed, and repeats nothing that was sent."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code
    row = ERRORS[code]
    assert answer.status_code == problem["status"] == row.status
    assert problem["type"] == f"urn:passdown:problem:{code}"
    assert problem["title"] == row.sentence
    assert problem["next_step"] == row.next_step
    assert problem["correlation_id"] == answer.headers["x-request-id"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert MARK not in answer.text
    assert all(MARK not in value for value in answer.headers.values())
    assert {name: problem.get(name) for name in members} == members
    return problem


def raw_exchange(port: int, sent: bytes) -> httpx.Response:
    """Send bytes as they are, end nothing, and read the first answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(sent)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        body = answer.read()
        headers = answer.getheaders()
        status = answer.status
        answer.close()
    return httpx.Response(status, headers=headers, content=body)
