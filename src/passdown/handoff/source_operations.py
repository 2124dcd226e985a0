"""The operations on sources, described once: capture one, read one, list them.

A source is immutable: capturing the same identity with the same content is a replay, with other content it is
``source_conflict``. Who read it decides its assurance, never the body. (Handoff core, "Scope, Source, Artifact".)
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from passdown.handoff.models import Assurance, Label, Materialization, Recorder, SourceRef, SourceType
from passdown.kernel import limits
from passdown.kernel.operations import Op
from passdown.kernel.wire import Count, Cursor, Description, Identifier, Limit, Name, Wire, identifier


class CaptureSourceAsk(Wire):
    """``content`` is the body of a ``content`` source (text or any JSON); the reader types give ``descriptor``.

    ``source_id`` left out is derived from the content, so the same fact captured twice is one source. ``said`` says
    that the host did not read this itself, for instance because it came in a file: it can only lower the assurance.
    """

    scope_id: Identifier
    source_type: SourceType
    source_id: Annotated[str, identifier(limits.SOURCE_ID)] | None = None
    content: Any = None
    descriptor: dict[str, Any] | None = None
    name: Name | None = None
    description: Description | None = None
    said: bool = False


class Source(Wire):
    """A captured source. ``content`` or ``descriptor`` is its body; ``sha256`` covers the stored body bytes."""

    scope_id: Identifier
    source_ref: SourceRef
    materialization: Materialization
    assurance: Assurance
    read_by: str | None
    media_type: str
    name: str | None
    description: str | None
    label: str
    size: Count
    sha256: str
    content: Any
    descriptor: dict[str, Any] | None
    recorded_at: str
    recorded_by: Recorder


class CaptureSourceAnswer(Wire):
    """``replayed`` is true when the same identity with the same content was there already."""

    source: Source
    replayed: bool


class GetSourceAsk(Wire):
    scope_id: Identifier
    source_ref: SourceRef


class GetSourceAnswer(Wire):
    source: Source


class ListSourcesAsk(Wire):
    scope_id: Identifier
    cursor: Cursor | None = None
    limit: Limit = limits.LIST_DEFAULT


class SourceSummary(Wire):
    """A source without its body."""

    source_ref: SourceRef
    assurance: Assurance
    label: str
    size: Count
    sha256: str
    recorded_at: str


class ListSourcesAnswer(Wire):
    sources: tuple[SourceSummary, ...]
    next_cursor: str | None


class InlineEvidence(Wire):
    """Evidence that is captured with the request; statements cite it as ``{"kind": "inline", "label": ...}``.

    ``said`` as for ``capture_source``.
    """

    label: Label
    source_type: SourceType
    source_id: Annotated[str, identifier(limits.SOURCE_ID)] | None = None
    content: Any = None
    descriptor: dict[str, Any] | None = None
    name: Name | None = None
    description: Description | None = None
    said: bool = False


MAX_EVIDENCE: Final = 256

CAPTURE_SOURCE: Final = Op(
    "capture_source",
    "/v1/sources/capture",
    CaptureSourceAsk,
    CaptureSourceAnswer,
    ("source_conflict", "source_too_large", "not_canonical"),
    "append",
    "Store one immutable piece of evidence in a workstream.",
    "policy",
)
GET_SOURCE: Final = Op(
    "get_source",
    "/v1/sources/get",
    GetSourceAsk,
    GetSourceAnswer,
    ("source_not_found",),
    "read",
    "Read one source with its body.",
    "default",
)
LIST_SOURCES: Final = Op(
    "list_sources",
    "/v1/sources/list",
    ListSourcesAsk,
    ListSourcesAnswer,
    ("invalid_cursor",),
    "read",
    "List the sources of a workstream, in the order of the revision that was current when they were captured.",
    "default",
)

SOURCE_OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (CAPTURE_SOURCE, GET_SOURCE, LIST_SOURCES)
