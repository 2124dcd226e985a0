"""The client: every operation as a typed method, the same embedded and remote.

A method takes the request as a model (``client.get_handoff(GetHandoffAsk(scope_id=…))``) or as its members
(``client.get_handoff(scope_id=…)``; objects inside may be models, mappings or sequences) and returns the model of the
answer, or raises the same ``PassdownError`` with the same members whether the store is here or behind a server.

Public operations: :class:`Client`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from passdown.client.asking import ask_of
from passdown.client.remote import TIMEOUT, Http
from passdown.client.retries import Retries
from passdown.handoff.acknowledgement_operations import (
    ACKNOWLEDGE_HANDOFF,
    AcknowledgeHandoffAnswer,
    AcknowledgeHandoffAsk,
)
from passdown.handoff.diff_operations import DIFF_HANDOFFS, DiffHandoffsAnswer, DiffHandoffsAsk
from passdown.handoff.export_operations import EXPORT_HANDOFF, ExportHandoffAsk, HandoffExport
from passdown.handoff.models import (
    PreparedHandoff,
)
from passdown.handoff.operations import (
    COMMIT_HANDOFF,
    CONTINUE_HANDOFF,
    FINALIZE_HANDOFF,
    GET_HANDOFF,
    HAND_OFF_NOW,
    LIST_HANDOFF_REVISIONS,
    PREPARE_HANDOFF,
    CommitAnswer,
    ContinueAnswer,
    ContinueHandoffAsk,
    FinalizeHandoffAsk,
    GetHandoffAnswer,
    GetHandoffAsk,
    HandOffNowAnswer,
    HandOffNowAsk,
    ListRevisionsAnswer,
    ListRevisionsAsk,
    PrepareHandoffAnswer,
    PrepareHandoffAsk,
)
from passdown.handoff.recover_operations import RECOVER_DRAFT, RecoverDraftAnswer, RecoverDraftAsk
from passdown.handoff.source_operations import (
    CAPTURE_SOURCE,
    GET_SOURCE,
    LIST_SOURCES,
    CaptureSourceAnswer,
    CaptureSourceAsk,
    GetSourceAnswer,
    GetSourceAsk,
    ListSourcesAnswer,
    ListSourcesAsk,
)
from passdown.kernel.operations import Caller, Op
from passdown.kernel.wire import Wire
from passdown.report.models import (
    GetHandoffReportAsk,
)
from passdown.report.operations import (
    CREATE_PROJECT,
    GET_PROJECT,
    GET_REPORT,
    LIST_KNOWN_SCOPES,
    LIST_PROJECTS,
    LIST_REVISIONS,
    LIST_WORKSTREAMS,
    REGISTER_WORKSTREAM,
    UPDATE_PROJECT,
    UPDATE_WORKSTREAM,
    CreateProjectAsk,
    GetProjectAsk,
    ListKnownScopesAnswer,
    ListKnownScopesAsk,
    ListProjectsAnswer,
    ListProjectsAsk,
    ListReportRevisionsAnswer,
    ListReportRevisionsAsk,
    ListWorkstreamsAnswer,
    ListWorkstreamsAsk,
    ProjectAnswer,
    RegisterWorkstreamAsk,
    RenderedReport,
    UpdateProjectAsk,
    UpdateWorkstreamAsk,
    WorkstreamAnswer,
)

Q = TypeVar("Q", bound=Wire)
A = TypeVar("A")


class Client:
    """Operations over a server. Safe to share between threads. Close it, or use ``with``.

    ``url`` is the address that the server printed; ``token`` one that its owner made. ``timeout`` is in seconds without
    a byte, ``retries`` says how often what met a busy or absent server is sent again. For a store on this machine see
    :func:`passdown.open`.
    """

    def __init__(self, url: str, token: str, *, timeout: float = TIMEOUT, retries: Retries | None = None) -> None:
        remote = Http(url, token, timeout=timeout, retries=retries)
        self._caller: Caller = remote
        self._close: Callable[[], None] = remote.close

    @classmethod
    def over(cls, caller: Caller, close: Callable[[], None]) -> Client:
        """A client over any caller; ``close`` is called when the client is closed."""
        made = cls.__new__(cls)
        made._caller, made._close = caller, close
        return made

    def close(self) -> None:
        """Close connections, or the store. Closing twice is allowed."""
        self._close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, op: Op[Q, A], ask: Q | None, members: dict[str, Any]) -> A:
        return self._caller(op, ask_of(op, ask, members))

    def capture_source(self, ask: CaptureSourceAsk | None = None, /, **members: Any) -> CaptureSourceAnswer:
        """Store one immutable piece of evidence in a workstream."""
        return self._call(CAPTURE_SOURCE, ask, members)

    def get_source(self, ask: GetSourceAsk | None = None, /, **members: Any) -> GetSourceAnswer:
        """Read one source with its body."""
        return self._call(GET_SOURCE, ask, members)

    def list_sources(self, ask: ListSourcesAsk | None = None, /, **members: Any) -> ListSourcesAnswer:
        """List the sources of a workstream, in the order of the revision that was current when they were captured."""
        return self._call(LIST_SOURCES, ask, members)

    def prepare_handoff(self, ask: PrepareHandoffAsk | None = None, /, **members: Any) -> PrepareHandoffAnswer:
        """Capture inline evidence and return a draft with everything that could be cited."""
        return self._call(PREPARE_HANDOFF, ask, members)

    def finalize_handoff(self, ask: FinalizeHandoffAsk | None = None, /, **members: Any) -> PreparedHandoff:
        """Check a draft and every citation, and return the prepared handoff; writes nothing."""
        return self._call(FINALIZE_HANDOFF, ask, members)

    def commit_handoff(self, ask: PreparedHandoff | None = None, /, **members: Any) -> CommitAnswer:
        """Append the prepared handoff as the next revision if its base is still the head."""
        return self._call(COMMIT_HANDOFF, ask, members)

    def hand_off_now(self, ask: HandOffNowAsk | None = None, /, **members: Any) -> HandOffNowAnswer:
        """Capture, finalise and commit in one call and one transaction."""
        return self._call(HAND_OFF_NOW, ask, members)

    def continue_handoff(self, ask: ContinueHandoffAsk | None = None, /, **members: Any) -> ContinueAnswer:
        """Show a handoff as untrusted history with its evidence checked and the checkout compared."""
        return self._call(CONTINUE_HANDOFF, ask, members)

    def get_handoff(self, ask: GetHandoffAsk | None = None, /, **members: Any) -> GetHandoffAnswer:
        """Read one revision, or the current one."""
        return self._call(GET_HANDOFF, ask, members)

    def list_handoff_revisions(self, ask: ListRevisionsAsk | None = None, /, **members: Any) -> ListRevisionsAnswer:
        """List the revisions of a workstream, newest first."""
        return self._call(LIST_HANDOFF_REVISIONS, ask, members)

    def acknowledge_handoff(
        self, ask: AcknowledgeHandoffAsk | None = None, /, **members: Any
    ) -> AcknowledgeHandoffAnswer:
        """Say that a handoff was accepted or declined, and what was checked of it; changes no revision."""
        return self._call(ACKNOWLEDGE_HANDOFF, ask, members)

    def diff_handoffs(self, ask: DiffHandoffsAsk | None = None, /, **members: Any) -> DiffHandoffsAnswer:
        """Compare two revisions field by field, statements matched by what they cite and say."""
        return self._call(DIFF_HANDOFFS, ask, members)

    def export_handoff(self, ask: ExportHandoffAsk | None = None, /, **members: Any) -> HandoffExport:
        """One revision with the digests of its evidence, as a document that can be checked without a server."""
        return self._call(EXPORT_HANDOFF, ask, members)

    def recover_draft(self, ask: RecoverDraftAsk | None = None, /, **members: Any) -> RecoverDraftAnswer:
        """Make a draft of work whose author could not hand off; it is never committed by itself."""
        return self._call(RECOVER_DRAFT, ask, members)

    def create_handoff_report_project(self, ask: CreateProjectAsk | None = None, /, **members: Any) -> ProjectAnswer:
        """Make a project."""
        return self._call(CREATE_PROJECT, ask, members)

    def get_handoff_report_project(self, ask: GetProjectAsk | None = None, /, **members: Any) -> ProjectAnswer:
        """Read one project by id or key."""
        return self._call(GET_PROJECT, ask, members)

    def update_handoff_report_project(self, ask: UpdateProjectAsk | None = None, /, **members: Any) -> ProjectAnswer:
        """Change or archive a project whose version you read."""
        return self._call(UPDATE_PROJECT, ask, members)

    def list_handoff_report_projects(self, ask: ListProjectsAsk | None = None, /, **members: Any) -> ListProjectsAnswer:
        """List projects, the ungrouped scopes last."""
        return self._call(LIST_PROJECTS, ask, members)

    def list_handoff_report_known_scopes(
        self, ask: ListKnownScopesAsk | None = None, /, **members: Any
    ) -> ListKnownScopesAnswer:
        """List every scope with a committed handoff, registered or not."""
        return self._call(LIST_KNOWN_SCOPES, ask, members)

    def register_handoff_report_workstream(
        self, ask: RegisterWorkstreamAsk | None = None, /, **members: Any
    ) -> WorkstreamAnswer:
        """Put a scope into a project."""
        return self._call(REGISTER_WORKSTREAM, ask, members)

    def update_handoff_report_workstream(
        self, ask: UpdateWorkstreamAsk | None = None, /, **members: Any
    ) -> WorkstreamAnswer:
        """Change or archive a workstream whose version you read."""
        return self._call(UPDATE_WORKSTREAM, ask, members)

    def list_handoff_report_workstreams(
        self, ask: ListWorkstreamsAsk | None = None, /, **members: Any
    ) -> ListWorkstreamsAnswer:
        """List the workstreams of a project, or find the one of a scope."""
        return self._call(LIST_WORKSTREAMS, ask, members)

    def list_handoff_report_revisions(
        self, ask: ListReportRevisionsAsk | None = None, /, **members: Any
    ) -> ListReportRevisionsAnswer:
        """List the handoff revisions of a scope, newest first."""
        return self._call(LIST_REVISIONS, ask, members)

    def get_handoff_report(self, ask: GetHandoffReportAsk | None = None, /, **members: Any) -> RenderedReport:
        """Build the report of a project as Markdown or canonical JSON."""
        return self._call(GET_REPORT, ask, members)
