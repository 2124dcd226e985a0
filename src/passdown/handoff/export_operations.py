"""One handoff as a document that can be checked without a server, described once.

The document has the revision, one entry for each piece of evidence that it cites, and what receivers said of it. It is
a copy: nothing in it changes when the store goes on. ``export_digest`` covers all other members in canonical form.
(Handoff core, "Lifecycle".)
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from passdown.handoff.acknowledgement_operations import Acknowledgements
from passdown.handoff.models import (
    ArtifactRef,
    Assurance,
    Citation,
    HandoffContent,
    Materialization,
    Recorder,
)
from passdown.kernel import limits
from passdown.kernel.operations import Op
from passdown.kernel.wire import Count, Digest, Identifier, Sha256Hex, Wire

EXPORT_SCHEMA: Final = "passdown.handoff-export.v1"
BODY_BYTES: Final = limits.REPORT_BYTES
"""Bytes of bodies that one export takes with it; those beyond are left out and counted."""


class ExportHandoffAsk(Wire):
    """Without ``handoff_ref`` the current revision. ``include_bodies`` takes what the sources say along."""

    scope_id: Identifier
    handoff_ref: ArtifactRef | None = None
    include_bodies: bool = False


class ExportedSource(Wire):
    """A source as it was stored. ``sha256`` covers ``size`` bytes of body.

    ``body`` is text for ``text/plain``, else the JSON value whose canonical form those bytes are; null where bodies
    were not asked for, or ``body_left_out`` says that there was no room.
    """

    materialization: Materialization
    assurance: Assurance
    read_by: str | None
    media_type: str
    name: str | None
    description: str | None
    label: str
    size: Count
    sha256: Sha256Hex
    recorded_at: str
    recorded_by: Recorder
    body: Any
    body_left_out: bool


class ExportedEvidence(Wire):
    """``source`` for a source, ``content_digest`` for an earlier handoff; neither where it could not be read."""

    citation: Citation
    source: ExportedSource | None
    content_digest: Digest | None


class HandoffExport(Wire):
    """``assurance`` and ``recorded_*`` are the word of whoever exported: the digests cannot prove them."""

    schema_: Literal["passdown.handoff-export.v1"] = Field(alias="schema")
    scope_id: Identifier
    handoff_ref: ArtifactRef
    base: ArtifactRef | None
    content: HandoffContent
    content_digest: Digest
    recorded_at: str
    recorded_by: Recorder
    evidence: tuple[ExportedEvidence, ...]
    bodies_left_out: Count
    acknowledgements: Acknowledgements
    export_digest: Digest


EXPORT_HANDOFF: Final = Op(
    "export_handoff",
    "/v1/handoff/export",
    ExportHandoffAsk,
    HandoffExport,
    ("handoff_not_found", "handoff_scope_mismatch"),
    "read",
    "One revision with the digests of its evidence, as a document that can be checked without a server.",
    "policy",
)

EXPORT_OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (EXPORT_HANDOFF,)
