"""A store on disk with the handoff core and the report room over it, and short ways to fill it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import orjson

from passdown.handoff.operations import HandOffNowAnswer, HandOffNowAsk
from passdown.handoff.service import HandoffService
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import SequentialIds
from passdown.kernel.operations import Principal
from passdown.kernel.wire import Wire, validate
from passdown.report.handoff_reader import StoreHandoffReader
from passdown.report.models import GetHandoffReportAsk, ProjectDescriptor, WorkstreamDescriptor
from passdown.report.operations import (
    OPERATIONS,
    CreateProjectAsk,
    RegisterWorkstreamAsk,
    RenderedReport,
    UpdateProjectAsk,
    UpdateWorkstreamAsk,
)
from passdown.report.port import HandoffReader
from passdown.report.report_models import HandoffReport
from passdown.report.service import ReportService
from passdown.storage import Session, Store, open_store

T = TypeVar("T")
HOST = Principal("reader", "asserted", "owner", host="workbench")
CALLER = Principal("caller", "asserted", "owner")
START_US = 1_780_000_000_000_000
ASKS = {op.name: op.ask for op in OPERATIONS}


class RecordingSession:
    """Passes statements on and keeps their text and parameters."""

    def __init__(self, session: Session, log: list[tuple[str, dict[str, Any]]]) -> None:
        self._session = session
        self._log = log

    @property
    def statements(self) -> int:
        return self._session.statements

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._session, name)

        def call(sql: str, /, **params: Any) -> Any:
            self._log.append((sql, params))
            return method(sql, **params)

        return call


class RecordingStore:
    """A store that counts its transactions and the statements that its sessions executed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.url = store.url
        self.engine = store.engine
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.statements = 0
        self.reads = 0
        self.written = 0

    def read(self, work: Callable[[Session], T]) -> T:
        self.reads += 1
        return self._store.read(lambda session: self._counted(session, work))

    def write(self, work: Callable[[Session], T]) -> T:
        self.written += 1
        return self._store.write(lambda session: self._counted(session, work))

    def _counted(self, session: Session, work: Callable[[Session], T]) -> T:
        before = session.statements
        result = work(RecordingSession(session, self.log))  # type: ignore[arg-type]
        self.statements += session.statements - before
        return result

    def writes(self) -> int:
        return self._store.writes()

    def close(self) -> None:
        self._store.close()

    def forget(self) -> None:
        self.log.clear()
        self.statements = self.reads = self.written = 0


def plain_renderer(report: dict[str, Any]) -> bytes:
    """Stands where Markdown is made, for tests that only need bytes which depend on the report."""
    return f"# {report['project']['title']}\n{report['report_digest']}\n".encode()


def cite(label: str) -> dict[str, Any]:
    return {"kind": "inline", "label": label}


def statement(text: str, *labels: str) -> dict[str, Any]:
    return {"text": text, "citations": [cite(label) for label in labels]}


def note(label: str, text: str) -> dict[str, Any]:
    """Evidence that rests on the caller's word."""
    return {"label": label, "source_type": "content", "content": text}


def file_read(label: str, path: str) -> dict[str, Any]:
    """Evidence whose facts the reader of a host took."""
    sha256 = hashlib.sha256(path.encode()).hexdigest()
    return {"label": label, "source_type": "file", "descriptor": {"path": path, "sha256": sha256, "size": 1}}


def commit_read(label: str, number: int, remote_refs: Sequence[str] | None) -> dict[str, Any]:
    descriptor = {
        "oid": f"{number:040x}",
        "subject": f"Change {number}",
        "remote_refs": None if remote_refs is None else list(remote_refs),
    }
    return {"label": label, "source_type": "git_commit", "descriptor": descriptor}


class World:
    """One store, one clock, one source of ids, and the two rooms over them."""

    def __init__(
        self,
        path: Path,
        *,
        renderer: Callable[[dict[str, Any]], bytes] = plain_renderer,
        wrap: Callable[[HandoffReader], HandoffReader] = lambda reader: reader,
        **limits: int,
    ) -> None:
        self.path = path
        self.store = RecordingStore(open_store(path, create=True))
        self.clock = FixedClock(START_US)
        self.ids = SequentialIds()
        self.handoffs = HandoffService(self.store, self.clock, self.ids)
        self.reader = wrap(StoreHandoffReader(self.store))
        self.service = ReportService(self.store, self.clock, self.ids, self.reader, renderer, **limits)
        self.handlers = self.service.handlers()

    def close(self) -> None:
        self.store.close()

    def call(self, name: str, **members: Any) -> Any:
        """An operation as the wire calls it: the request goes through its model."""
        return self.handlers[name](CALLER, validate(ASKS[name], members))

    def project(self, key: str = "shop", **members: Any) -> ProjectDescriptor:
        ask = validate(CreateProjectAsk, {"key": key, "title": members.pop("title", key)} | members)
        return self.service.handlers()["create_handoff_report_project"](CALLER, ask).project

    def workstream(
        self, project: ProjectDescriptor, scope_id: str | None = None, **members: Any
    ) -> WorkstreamDescriptor:
        asked = {"project_id": project.project_id, "title": members.pop("title", scope_id or "untitled")} | members
        if scope_id is not None:
            asked["scope_id"] = scope_id
        ask = validate(RegisterWorkstreamAsk, asked)
        return self.handlers["register_handoff_report_workstream"](CALLER, ask).workstream

    def update_project(self, project: ProjectDescriptor, **members: Any) -> Any:
        asked = {"project_id": project.project_id, "expected_version": project.version} | members
        return self.handlers["update_handoff_report_project"](CALLER, validate(UpdateProjectAsk, asked))

    def update_workstream(self, workstream: WorkstreamDescriptor, **members: Any) -> Any:
        asked = {"scope_id": workstream.scope_id, "expected_version": workstream.version} | members
        return self.handlers["update_handoff_report_workstream"](CALLER, validate(UpdateWorkstreamAsk, asked))

    def commit(
        self,
        scope_id: str,
        disposition: str = "continuable",
        *,
        objective: str = "Keep the queue in order",
        evidence: Sequence[Mapping[str, Any]] = (),
        state: Sequence[Mapping[str, Any]] = (),
        next_action: Mapping[str, Any] | None = None,
        omissions: Sequence[Mapping[str, Any]] = (),
        who: Principal = HOST,
        move_us: int = 1_000_000,
    ) -> HandOffNowAnswer:
        """Commit a handoff through the core, one second after the one before it."""
        self.clock.move(move_us)
        offered = list(evidence) or [note("n", f"note of {scope_id}")]
        ask = {
            "scope_id": scope_id,
            "objective": objective,
            "evidence": offered,
            "state": list(state) or [statement("It stands.", offered[0]["label"])],
            "disposition": disposition,
            "next_action": next_action,
            "omissions": list(omissions),
            "commit": True,
        }
        return self.handoffs.hand_off_now(who, validate(HandOffNowAsk, ask))

    def rendered(self, project: ProjectDescriptor | str, **members: Any) -> RenderedReport:
        project_id = project if isinstance(project, str) else project.project_id
        ask = validate(GetHandoffReportAsk, {"project_id": project_id, "format": "json"} | members)
        return self.service.get_handoff_report(CALLER, ask)

    def report(self, project: ProjectDescriptor | str, **members: Any) -> dict[str, Any]:
        """The JSON report, checked against its own schema."""
        body = self.rendered(project, **members).body
        value: dict[str, Any] = orjson.loads(body)
        HandoffReport.model_validate_json(body)
        return value

    def damage(self, table: str, statement: str, *params: Any) -> None:
        """Change rows behind the back of the product, as a damaged or foreign store would show them."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            triggers = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)
            ).fetchall()
            for (name,) in triggers:
                connection.execute(f'DROP TRIGGER "{name}"')
            assert connection.execute(statement, params).rowcount > 0

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return self.store.read(lambda session: session.all(sql, **params))


def scopes_of(report: Mapping[str, Any]) -> list[str]:
    """The workstreams in the order in which the report shows them."""
    return [item["workstream"]["scope_id"] for item in report["workstreams"]]


def of(report: Mapping[str, Any], scope_id: str) -> dict[str, Any]:
    """The part of the report on one workstream."""
    found: dict[str, Any] = next(item for item in report["workstreams"] if item["workstream"]["scope_id"] == scope_id)
    return found


def code_of(call: Callable[[], Any]) -> PassdownError:
    """The refusal that a call ends with."""
    try:
        call()
    except PassdownError as error:
        return error
    raise AssertionError("it was not refused")


def as_wire(value: Wire) -> dict[str, Any]:
    return value.model_dump(mode="json")


MakeWorld = Callable[..., World]
"""Makes a world with settings of its own."""
