"""Counters, sources, handoffs, tokens, and the catalog of projects and workstreams.

Keys lead with the scope or the project. Times end in ``_us``: microseconds since 1970, UTC. Small integers are the
numbers that the rooms above give to their words.
"""

import sqlalchemy as sa

from passdown.storage.steps import (
    content,
    create_counter,
    create_index,
    create_table,
    forbid_changes,
    octets,
    optional,
    required,
)

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger()
SMALL = sa.SmallInteger()
SCOPE = 1024
PRINCIPAL = 1024
DIGEST = 32
PROJECT = 64


def upgrade() -> None:
    create_table(
        "pd_counters",
        required("name", octets(64)),
        required("value", BIG),
        sa.PrimaryKeyConstraint("name"),
        clustered=True,
    )
    create_counter(b"writes")
    _sources()
    _handoffs()
    _tokens()
    _projects()
    _workstreams()


def _sources() -> None:
    create_table(
        "pd_sources",
        required("scope_id", octets(SCOPE)),
        required("source_key", octets(DIGEST)),
        required("source_type", octets(256)),
        required("source_id", octets(2048)),
        required("materialization", SMALL),
        required("assurance", SMALL),
        optional("read_by", content()),
        required("media_type", octets(64)),
        optional("name", content()),
        optional("description", content()),
        # What a reader sees first, and which remote-tracking refs held a commit: kept beside the body so that views of
        # many sources read no bodies.
        required("label", content()),
        optional("remote_refs", content()),
        required("size", BIG),
        required("sha256", octets(DIGEST)),
        optional("body", content()),
        # The head of the scope when the source was captured; 0 before the first handoff.
        required("after_revision", BIG),
        required("recorded_us", BIG),
        required("recorded_by", octets(PRINCIPAL)),
        required("recorded_identity", SMALL),
        sa.PrimaryKeyConstraint("scope_id", "source_key"),
    )
    create_index("pd_sources_after", "pd_sources", ["scope_id", "after_revision", "source_key"])
    forbid_changes("pd_sources")


def _handoffs() -> None:
    create_table(
        "pd_handoff_heads",
        required("scope_id", octets(SCOPE)),
        required("artifact_id", octets(512)),
        required("revision", BIG),
        required("updated_us", BIG),
        sa.PrimaryKeyConstraint("scope_id"),
        sa.UniqueConstraint("artifact_id", name="pd_handoff_heads_artifact"),
        clustered=True,
    )
    create_index("pd_handoff_heads_updated", "pd_handoff_heads", ["updated_us"])
    create_table(
        "pd_handoff_revisions",
        required("scope_id", octets(SCOPE)),
        required("revision", BIG),
        required("artifact_id", octets(512)),
        required("base_revision", BIG),  # 0: based on none
        required("content_digest", octets(DIGEST)),
        required("content", content()),
        required("recorded_us", BIG),
        required("recorded_by", octets(PRINCIPAL)),
        required("recorded_identity", SMALL),
        sa.PrimaryKeyConstraint("scope_id", "revision"),
    )
    create_table(
        "pd_handoff_evidence",
        required("scope_id", octets(SCOPE)),
        required("revision", BIG),
        required("ordinal", sa.Integer()),
        required("kind", SMALL),  # 1 source, 2 artifact
        optional("source_key", octets(DIGEST)),
        optional("artifact_revision", BIG),
        sa.PrimaryKeyConstraint("scope_id", "revision", "ordinal"),
        clustered=True,
    )
    forbid_changes("pd_handoff_revisions")
    forbid_changes("pd_handoff_evidence")


def _tokens() -> None:
    create_table(
        "pd_tokens",
        required("token_id", octets(64)),
        required("name", octets(1024)),
        required("principal", octets(PRINCIPAL)),
        required("role", octets(16)),
        required("token_sha256", octets(DIGEST)),
        optional("host", octets(1024)),
        required("created_us", BIG),
        optional("expires_us", BIG),
        optional("revoked_us", BIG),
        sa.PrimaryKeyConstraint("token_id"),
        sa.UniqueConstraint("token_sha256", name="pd_tokens_sha256"),
    )


def _projects() -> None:
    create_table(
        "pc_handoff_report_projects",
        required("project_id", octets(PROJECT)),
        required("project_key", octets(256)),
        required("version", BIG),
        required("catalog_revision", BIG),
        required("catalog_state", SMALL),
        required("created_us", BIG),
        required("descriptor", content()),
        sa.PrimaryKeyConstraint("project_id"),
        sa.UniqueConstraint("project_key", name="pc_handoff_report_projects_key"),
    )
    create_table(
        "pc_handoff_report_project_revisions",
        required("project_id", octets(PROJECT)),
        required("version", BIG),
        required("catalog_revision", BIG),
        required("effective_us", BIG),
        required("descriptor", content()),
        sa.PrimaryKeyConstraint("project_id", "version"),
    )
    forbid_changes("pc_handoff_report_project_revisions")


def _workstreams() -> None:
    create_table(
        "pc_handoff_report_workstreams",
        required("scope_id", octets(SCOPE)),
        required("project_id", octets(PROJECT)),
        optional("workstream_key", octets(256)),
        required("version", BIG),
        required("catalog_state", SMALL),
        required("created_us", BIG),
        required("descriptor", content()),
        sa.PrimaryKeyConstraint("scope_id"),
        sa.UniqueConstraint("project_id", "workstream_key", name="pc_handoff_report_workstreams_key"),
    )
    create_index("pc_handoff_report_workstreams_project", "pc_handoff_report_workstreams", ["project_id", "scope_id"])
    create_table(
        "pc_handoff_report_workstream_revisions",
        required("scope_id", octets(SCOPE)),
        required("version", BIG),
        required("project_id", octets(PROJECT)),
        required("catalog_revision", BIG),
        required("effective_us", BIG),
        required("descriptor", content()),
        sa.PrimaryKeyConstraint("scope_id", "version"),
    )
    create_index(
        "pc_handoff_report_workstream_revisions_catalog",
        "pc_handoff_report_workstream_revisions",
        ["project_id", "catalog_revision"],
    )
    forbid_changes("pc_handoff_report_workstream_revisions")
