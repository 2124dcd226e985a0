"""The operations of the catalog and of the handoff report, described once.

Project and workstream descriptors move ``included <-> archived`` and nothing is ever deleted. Invariants:
``project_id`` and ``scope_id`` never change; a project key is unique in the catalog, a workstream key in its project;
every change names the version that it read, raises ``version`` of its descriptor and ``project_revision`` of its
project by one and appends an immutable catalog revision; a scope belongs to at most one project. Reports only read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from passdown.handoff.models import ArtifactRef, Disposition
from passdown.kernel import limits
from passdown.kernel.operations import Op
from passdown.kernel.wire import Count, Cursor, Description, Digest, Identifier, Key, Limit, Revision, Wire
from passdown.report.models import (
    DEFAULT_LOCALE,
    CatalogState,
    ExternalRefs,
    GetHandoffReportAsk,
    Kind,
    Labels,
    Locale,
    ProjectDescriptor,
    ProjectId,
    Title,
    WorkstreamDescriptor,
    Zone,
)

_BASE: Final = "/v1/handoff-reports"


class _Change(Wire):
    """A change of a descriptor: null leaves a member as it is, a name in ``clear`` makes it null."""

    @model_validator(mode="after")
    def _says_something_once(self) -> _Change:
        cleared: tuple[str, ...] = getattr(self, "clear", ())
        given = {
            name
            for name, value in self
            if value is not None and name not in {"project_id", "scope_id", "expected_version", "clear"}
        }
        if not given and not cleared:
            raise PydanticCustomError("no_change", "no member to change")
        if given & set(cleared):
            raise PydanticCustomError("set_and_cleared", "a member is set and cleared at once")
        return self


# --- projects ---------------------------------------------------------------------------------------------------------


class CreateProjectAsk(Wire):
    """``key`` becomes ``project_key``; a blank ``description`` is none; without ``timezone`` renderers show UTC."""

    key: Key
    title: Title
    description: Description | None = None
    default_locale: Locale = DEFAULT_LOCALE
    timezone: Zone | None = None


class GetProjectAsk(Wire):
    """By ``project_id``, or by ``key`` to learn the id; exactly one of both. Archived projects are found too."""

    project_id: ProjectId | None = None
    key: Key | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> GetProjectAsk:
        if (self.project_id is None) == (self.key is None):
            raise PydanticCustomError("exactly_one", "give project_id or key")
        return self


class UpdateProjectAsk(_Change):
    """Changes the members that are given. Archiving is ``catalog_state``."""

    project_id: ProjectId
    expected_version: Revision
    key: Key | None = None
    title: Title | None = None
    description: Description | None = None
    default_locale: Locale | None = None
    timezone: Zone | None = None
    catalog_state: CatalogState | None = None
    clear: Annotated[tuple[Literal["description", "timezone"], ...], Field(max_length=2)] = ()


class ListProjectsAsk(Wire):
    include_archived: bool = False
    cursor: Cursor | None = None
    limit: Limit = limits.LIST_DEFAULT


class ProjectAnswer(Wire):
    """A project and its catalog counter, which every change of the project or of one of its workstreams raises."""

    project: ProjectDescriptor
    project_revision: Count


class ListProjectsAnswer(Wire):
    """In order of creation; the reserved project of ungrouped scopes is last, and there only while it has members."""

    projects: tuple[ProjectDescriptor, ...]
    next_cursor: str | None


# --- workstreams ------------------------------------------------------------------------------------------------------


class RegisterWorkstreamAsk(Wire):
    """Puts a scope into a project. Without ``scope_id`` a new one is made."""

    project_id: ProjectId
    scope_id: Identifier | None = None
    key: Key | None = None
    title: Title
    kind: Kind = "other"
    external_refs: ExternalRefs = ()
    labels: Labels = ()


class UpdateWorkstreamAsk(_Change):
    """Changes the members that are given; ``external_refs`` and ``labels`` are replaced whole."""

    scope_id: Identifier
    expected_version: Revision
    key: Key | None = None
    title: Title | None = None
    kind: Kind | None = None
    external_refs: ExternalRefs | None = None
    labels: Labels | None = None
    catalog_state: CatalogState | None = None
    clear: Annotated[tuple[Literal["key"], ...], Field(max_length=1)] = ()


class ListWorkstreamsAsk(Wire):
    """Of a project, or the one of ``scope_id``; ``key`` narrows a project to one.

    Asking for one by ``scope_id`` or ``key`` finds it archived too.
    """

    project_id: ProjectId | None = None
    scope_id: Identifier | None = None
    key: Key | None = None
    include_archived: bool = False
    cursor: Cursor | None = None
    limit: Limit = limits.LIST_DEFAULT

    @model_validator(mode="after")
    def _names_a_place(self) -> ListWorkstreamsAsk:
        if self.project_id is None and (self.scope_id is None or self.key is not None):
            raise PydanticCustomError("project_or_scope", "give project_id or scope_id")
        return self


class WorkstreamAnswer(Wire):
    """A workstream and the catalog counter of its project."""

    workstream: WorkstreamDescriptor
    project_revision: Count


class ListWorkstreamsAnswer(Wire):
    """In order of registration; scopes that belong to no project newest handoff first."""

    workstreams: tuple[WorkstreamDescriptor, ...]
    next_cursor: str | None


# --- scopes, revisions, the report ------------------------------------------------------------------------------------


class ListKnownScopesAsk(Wire):
    cursor: Cursor | None = None
    limit: Limit = limits.LIST_DEFAULT


class KnownScope(Wire):
    """A scope with a committed handoff. ``project_id`` is null while it belongs to no project."""

    scope_id: Identifier
    handoff_ref: ArtifactRef
    updated_at: str
    project_id: ProjectId | None


class ListKnownScopesAnswer(Wire):
    """Newest handoff first. Only scopes that this store knows, never all that may exist elsewhere."""

    scopes: tuple[KnownScope, ...]
    next_cursor: str | None


class ListReportRevisionsAsk(Wire):
    scope_id: Identifier
    cursor: Cursor | None = None
    limit: Limit = limits.LIST_DEFAULT


class ReportRevision(Wire):
    """One revision in short. ``recorded_at`` is when it was stored here."""

    handoff_ref: ArtifactRef
    content_digest: Digest
    objective: str
    disposition: Disposition
    recorded_at: str


class ListReportRevisionsAnswer(Wire):
    """Newest first; empty for a scope without a committed handoff."""

    revisions: tuple[ReportRevision, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """A report as it leaves: at most 10,485,760 bytes. ``file_name`` holds identity and digest only, never a title."""

    body: bytes
    media_type: str
    selection_digest: str
    report_digest: str
    file_name: str


CREATE_PROJECT: Final = Op(
    "create_handoff_report_project",
    f"{_BASE}/projects/create",
    CreateProjectAsk,
    ProjectAnswer,
    ("project_conflict", "unsupported_report_locale"),
    "append",
    "Make a project.",
    "policy",
)
GET_PROJECT: Final = Op(
    "get_handoff_report_project",
    f"{_BASE}/projects/get",
    GetProjectAsk,
    ProjectAnswer,
    ("project_not_found",),
    "read",
    "Read one project by id or key.",
    "default",
)
UPDATE_PROJECT: Final = Op(
    "update_handoff_report_project",
    f"{_BASE}/projects/update",
    UpdateProjectAsk,
    ProjectAnswer,
    ("project_not_found", "project_conflict", "unsupported_report_locale"),
    "change",
    "Change or archive a project whose version you read.",
    "policy",
)
LIST_PROJECTS: Final = Op(
    "list_handoff_report_projects",
    f"{_BASE}/projects/list",
    ListProjectsAsk,
    ListProjectsAnswer,
    ("invalid_cursor",),
    "read",
    "List projects, the ungrouped scopes last.",
    "default",
)
LIST_KNOWN_SCOPES: Final = Op(
    "list_handoff_report_known_scopes",
    f"{_BASE}/scopes/list-known",
    ListKnownScopesAsk,
    ListKnownScopesAnswer,
    ("invalid_cursor",),
    "read",
    "List every scope with a committed handoff, registered or not.",
    "default",
)
REGISTER_WORKSTREAM: Final = Op(
    "register_handoff_report_workstream",
    f"{_BASE}/workstreams/register",
    RegisterWorkstreamAsk,
    WorkstreamAnswer,
    ("project_not_found", "project_conflict", "scope_already_grouped", "workstream_conflict"),
    "append",
    "Put a scope into a project.",
    "policy",
)
UPDATE_WORKSTREAM: Final = Op(
    "update_handoff_report_workstream",
    f"{_BASE}/workstreams/update",
    UpdateWorkstreamAsk,
    WorkstreamAnswer,
    ("workstream_not_found", "workstream_conflict"),
    "change",
    "Change or archive a workstream whose version you read.",
    "policy",
)
LIST_WORKSTREAMS: Final = Op(
    "list_handoff_report_workstreams",
    f"{_BASE}/workstreams/list",
    ListWorkstreamsAsk,
    ListWorkstreamsAnswer,
    ("project_not_found", "invalid_cursor"),
    "read",
    "List the workstreams of a project, or find the one of a scope.",
    "default",
)
LIST_REVISIONS: Final = Op(
    "list_handoff_report_revisions",
    f"{_BASE}/revisions/list",
    ListReportRevisionsAsk,
    ListReportRevisionsAnswer,
    ("invalid_cursor",),
    "read",
    "List the handoff revisions of a scope, newest first.",
    "default",
)
GET_REPORT: Final = Op(
    "get_handoff_report",
    f"{_BASE}/get",
    GetHandoffReportAsk,
    RenderedReport,
    (
        "project_not_found",
        "too_many_workstreams",
        "handoff_report_too_large",
        "handoff_report_busy",
        "handoff_report_inconsistent",
        "unsupported_report_locale",
        "unsupported_report_format",
    ),
    "read",
    "Build the report of a project as Markdown or canonical JSON.",
    "default",
)

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    CREATE_PROJECT,
    GET_PROJECT,
    UPDATE_PROJECT,
    LIST_PROJECTS,
    LIST_KNOWN_SCOPES,
    REGISTER_WORKSTREAM,
    UPDATE_WORKSTREAM,
    LIST_WORKSTREAMS,
    LIST_REVISIONS,
    GET_REPORT,
)
