"""Every table of a store, in one list: what a backup copies and what a check reads.

Design: names only, in the order in which the migrations create them; the migrations stay the one description of types.
The keys are the primary keys, so reading in their order is reading along an index, and the order is the same on every
engine: identity text is bytes and compares bytewise.

Invariant: the list is exactly the schema of this version, on every engine; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_NARROW: Final = 1_000
_WIDE: Final = 32
"""Rows read at once. A wide row may hold some hundred kilobytes, and only one batch is in memory at a time."""


@dataclass(frozen=True, slots=True)
class Table:
    """``columns`` are all of them in the order of the schema; ``batch`` is how many rows are read at once."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    immutable: bool
    batch: int


def _table(name: str, key: str, columns: str, *, immutable: bool = False, wide: bool = False) -> Table:
    return Table(name, tuple(key.split()), tuple(columns.split()), immutable, _WIDE if wide else _NARROW)


COUNTERS: Final = _table("pd_counters", "name", "name value")
SOURCES: Final = _table(
    "pd_sources",
    "scope_id source_key",
    "scope_id source_key source_type source_id materialization assurance read_by media_type name description label"
    " remote_refs size sha256 body after_revision recorded_us recorded_by recorded_identity",
    immutable=True,
    wide=True,
)
HEADS: Final = _table("pd_handoff_heads", "scope_id", "scope_id artifact_id revision updated_us")
REVISIONS: Final = _table(
    "pd_handoff_revisions",
    "scope_id revision",
    "scope_id revision artifact_id base_revision content_digest content recorded_us recorded_by recorded_identity",
    immutable=True,
    wide=True,
)
EVIDENCE: Final = _table(
    "pd_handoff_evidence",
    "scope_id revision ordinal",
    "scope_id revision ordinal kind source_key artifact_revision",
    immutable=True,
)
TOKENS: Final = _table(
    "pd_tokens",
    "token_id",
    "token_id name principal role token_sha256 host created_us expires_us revoked_us",
)
PROJECTS: Final = _table(
    "pc_handoff_report_projects",
    "project_id",
    "project_id project_key version catalog_revision catalog_state created_us descriptor",
    wide=True,
)
PROJECT_REVISIONS: Final = _table(
    "pc_handoff_report_project_revisions",
    "project_id version",
    "project_id version catalog_revision effective_us descriptor",
    immutable=True,
    wide=True,
)
WORKSTREAMS: Final = _table(
    "pc_handoff_report_workstreams",
    "scope_id",
    "scope_id project_id workstream_key version catalog_state created_us descriptor",
    wide=True,
)
WORKSTREAM_REVISIONS: Final = _table(
    "pc_handoff_report_workstream_revisions",
    "scope_id version",
    "scope_id version project_id catalog_revision effective_us descriptor",
    immutable=True,
    wide=True,
)
REPLAYS: Final = _table("pd_replays", "request_key", "request_key body_sha256 answer recorded_us", wide=True)
TOKEN_LIMITS: Final = _table("pd_token_limits", "token_id kind name", "token_id kind name")

ACKNOWLEDGEMENTS: Final = _table(
    "pd_acknowledgements",
    "scope_id content_digest revision receipt_key",
    "scope_id content_digest revision receipt_key verdict body recorded_us recorded_by recorded_identity",
    immutable=True,
    wide=True,
)
TEST_RUNS: Final = _table(
    "pd_test_runs",
    "scope_id commit_oid source_key",
    "scope_id commit_oid source_key commit_basis tests failures errors skipped",
    immutable=True,
)

TABLES: Final = (
    COUNTERS,
    SOURCES,
    HEADS,
    REVISIONS,
    EVIDENCE,
    TOKENS,
    PROJECTS,
    PROJECT_REVISIONS,
    WORKSTREAMS,
    WORKSTREAM_REVISIONS,
    REPLAYS,
    TOKEN_LIMITS,
    ACKNOWLEDGEMENTS,
    TEST_RUNS,
)

INDEXES: Final = (
    "pd_sources_after",
    "pd_handoff_heads_updated",
    "pc_handoff_report_workstreams_project",
    "pc_handoff_report_workstream_revisions_catalog",
    "pd_replays_recorded",
)
"""The indexes that have a name of their own on every engine."""

_NUMBERS: Final = (
    "value materialization assurance size after_revision recorded_us recorded_identity revision updated_us"
    " base_revision ordinal kind artifact_revision created_us expires_us revoked_us version catalog_revision"
    " catalog_state effective_us verdict commit_basis tests failures errors skipped"
)
NUMBERS: Final = frozenset(_NUMBERS.split())
"""The columns that hold integers, in whatever table; all others hold bytes."""

WRITES: Final = b"writes"
"""The counter that every writing transaction raises last, by one."""
