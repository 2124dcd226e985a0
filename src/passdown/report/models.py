"""Wire models of the report's catalog and of the request for a report.

A project is the largest aggregation boundary, a workstream is what one ``scope_id`` identifies; their descriptors are
mutable directory entries, each with its own compare-and-set ``version``. Keys, titles and labels are for people and
never identity.

Arrays of descriptors and filters are sets: they are stored in the byte order of their canonical form, without repeats,
whatever order the caller used. Limits (report RFC, "Limits and errors"): keys 1..64, title 256, description 2,000
characters, 32 labels of 128 characters, 32 external references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from passdown.kernel import limits
from passdown.kernel.canonical import canonical_bytes_of_validated
from passdown.kernel.timestamps import is_zone
from passdown.kernel.wire import Count, Identifier, Key, Wire, dump, identifier, text

PROJECT_SCHEMA: Final = "powercontext.project.v1"
WORKSTREAM_SCHEMA: Final = "powercontext.workstream.v1"
REPORT_SCHEMA: Final = "powercontext.handoff-report.v1"
SELECTION_SCHEMA: Final = "powercontext.handoff-report-selection.v1"

UNGROUPED_ID: Final = "prj_ungrouped"
UNGROUPED_KEY: Final = "ungrouped"
UNGROUPED_TITLE: Final = "Ungrouped"
DEFAULT_LOCALE: Final = "zh-CN"
PROJECT_ID: Final = 64
FILTER_VALUES: Final = 100
"""Values in one member of the filters."""

Kind = Literal["feature", "bug", "refactor", "operations", "research", "other"]
CatalogState = Literal["included", "archived"]
RefKind = Literal["issue", "task", "pull_request", "branch", "feature", "release", "program", "other"]
FilterDisposition = Literal["continuable", "blocked", "complete", "no_handoff"]
ActivitySource = Literal["handoff_observation", "git_commit", "git_worktree", "coding_session", "other"]
TimeBasis = Literal["source_reported", "host_observed", "first_seen", "current_only", "unknown"]


def one_of(code: str, *allowed: str) -> BeforeValidator:
    """Refuse any other text with an error code of its own instead of ``invalid_request``."""

    def check(value: Any) -> Any:
        if isinstance(value, str) and value not in allowed:
            raise PydanticCustomError(code, "{rule}", {"rule": "not_offered"})
        return value

    return BeforeValidator(check)


Locale = Annotated[Literal["zh-CN", "en"], one_of("unsupported_report_locale", "zh-CN", "en")]
Format = Annotated[Literal["markdown", "json"], one_of("unsupported_report_format", "markdown", "json")]


def _zone(value: str) -> str:
    if not is_zone(value):
        raise PydanticCustomError("zone", "not an IANA time zone")
    return value


# Nothing but a plain web address may become a link: no other scheme, no credentials, no white space, no controls.
_WEB_ADDRESS: Final = re.compile(r"https?://[^/?#@\\\s\x00-\x20\x7f]+(?:[/?#][^\\\s\x00-\x20\x7f]*)?\Z", re.IGNORECASE)


def _web_address(value: str) -> str:
    if not _WEB_ADDRESS.match(value):
        raise PydanticCustomError("web_address", "not a plain http or https address")
    return value


V = TypeVar("V")


def as_set(order: Callable[[V], Any]) -> AfterValidator:
    """Sort by ``order`` and drop repeats, where two values with one ``order`` are the same value."""

    def normalise(values: tuple[V, ...]) -> tuple[V, ...]:
        distinct: dict[Hashable, V] = {}
        for value in values:
            distinct.setdefault(order(value), value)
        return tuple(distinct[key] for key in sorted(distinct))  # type: ignore[type-var]

    return AfterValidator(normalise)


def _canonical(value: Wire) -> bytes:
    return canonical_bytes_of_validated(dump(value))


TEXT_SET: Final = as_set(str.encode)
OBJECT_SET: Final = as_set(_canonical)

ProjectId = Annotated[str, identifier(PROJECT_ID)]
Title = Annotated[str, text(limits.TITLE)]
Zone = Annotated[str, Field(max_length=limits.NAME), AfterValidator(_zone)]
Label = Annotated[str, identifier(limits.LABEL)]
Labels = Annotated[tuple[Label, ...], Field(max_length=limits.LABELS), TEXT_SET]
Provider = Annotated[str, identifier(limits.PROVIDER)]
ExternalId = Annotated[str, identifier(limits.EXTERNAL_ID)]
WebAddress = Annotated[str, identifier(limits.URL), AfterValidator(_web_address)]


class ExternalRef(Wire):
    """Points at something upstream, for navigation and filters only. It is no parent, no evidence and no identity."""

    kind: RefKind
    provider: Provider
    external_id: ExternalId
    url: WebAddress | None = None


ExternalRefs = Annotated[tuple[ExternalRef, ...], Field(max_length=limits.EXTERNAL_REFS), OBJECT_SET]


class ProjectDescriptor(Wire):
    """A project as the catalog has it. ``version`` is 0 only for the reserved project of ungrouped scopes."""

    schema_: Literal["powercontext.project.v1"] = Field(alias="schema")
    project_id: ProjectId
    project_key: Key
    title: Title
    description: str | None
    default_locale: Locale
    timezone: str | None
    catalog_state: CatalogState
    version: Count


class WorkstreamDescriptor(Wire):
    """A workstream as the catalog has it. ``version`` is 0 only for a scope that belongs to no project."""

    schema_: Literal["powercontext.workstream.v1"] = Field(alias="schema")
    scope_id: Identifier
    project_id: ProjectId
    key: Key | None
    title: Title
    kind: Kind
    catalog_state: CatalogState
    external_refs: ExternalRefs
    labels: Labels
    version: Count


class ExternalRefFilter(Wire):
    """Matches references whose members equal these; null matches any, and not all three may be null."""

    kind: RefKind | None = None
    provider: Provider | None = None
    external_id: ExternalId | None = None

    @model_validator(mode="after")
    def _names_something(self) -> ExternalRefFilter:
        if self.kind is None and self.provider is None and self.external_id is None:
            raise PydanticCustomError("matches_all", "a filter that matches everything")
        return self


def _values(order: AfterValidator) -> tuple[Any, AfterValidator]:
    return Field(max_length=FILTER_VALUES), order


class Filters(Wire):
    """What a report shows: any value within a member, every member together, an empty member shows all.

    ``dispositions`` also takes ``no_handoff``. The last three members apply to observed activity only.
    """

    kinds: Annotated[tuple[Kind, ...], *_values(TEXT_SET)] = ()
    dispositions: Annotated[tuple[FilterDisposition, ...], *_values(TEXT_SET)] = ()
    labels: Annotated[tuple[Label, ...], *_values(TEXT_SET)] = ()
    external_refs: Annotated[tuple[ExternalRefFilter, ...], *_values(OBJECT_SET)] = ()
    activity_sources: Annotated[tuple[ActivitySource, ...], *_values(TEXT_SET)] = ()
    agent_labels: Annotated[tuple[Label, ...], *_values(TEXT_SET)] = ()
    time_bases: Annotated[tuple[TimeBasis, ...], *_values(TEXT_SET)] = ()
    include_archived: bool = False


class LatestSelection(Wire):
    """The latest committed handoff of every workstream that the filters select."""

    mode: Literal["latest"]


class GetHandoffReportAsk(Wire):
    """Which report, and as what. ``locale`` left out is the project's own; ``download`` only names a file.

    ``include_evidence_checks`` false answers ``not_checked`` for every handoff. No summary provider exists, so a
    requested summary is answered as ``unavailable``.
    """

    project_id: ProjectId
    report_kind: Literal["handoff"] = "handoff"
    selection: LatestSelection = LatestSelection(mode="latest")
    filters: Filters = Filters()
    include_evidence_checks: bool = True
    include_generated_summary: bool = False
    format: Format = "markdown"
    download: bool = False
    locale: Locale | None = None
