"""Each thing that can be wrong in a furnished store: the statements that make it so, and what a check has to say.

The names of the checks come first, then the code of each problem with how many there are.
"""

from __future__ import annotations

import hashlib

from store_support import FIRST, SECOND


def hexed(text: str) -> str:
    return f"x'{text.encode().hex()}'"


def one(table: str, where: str, number: str = "rowid") -> str:
    """A condition for exactly one row: the first one of ``where``."""
    return f"{number} = (SELECT MIN({number}) FROM {table} WHERE {where})"


F, S = hexed(FIRST), hexed(SECOND)
REVISIONS, EVIDENCE, SOURCES, HEADS = (
    "pd_handoff_revisions",
    "pd_handoff_evidence",
    "pd_sources",
    "pd_handoff_heads",
)
RECEIPTS, RUNS = "pd_acknowledgements", "pd_test_runs"
PROJECTS, WORKSTREAMS = "pc_handoff_report_projects", "pc_handoff_report_workstreams"
P_HISTORY, W_HISTORY = "pc_handoff_report_project_revisions", "pc_handoff_report_workstream_revisions"
SHOP = f"project_id = (SELECT project_id FROM {PROJECTS} WHERE project_key = {hexed('shop')})"
EARLY = f"UPDATE {REVISIONS} SET {{}} WHERE scope_id = {F} AND revision = 1"
LAST_SOURCE = f"scope_id = {F} AND source_key = (SELECT MAX(source_key) FROM {SOURCES} WHERE scope_id = {F})"
BACK_TO_TWO = f"UPDATE {HEADS} SET revision = 2 WHERE scope_id = {F}"
HEAD_TIME = (
    f"UPDATE {HEADS} SET updated_us = (SELECT recorded_us FROM {REVISIONS} WHERE scope_id = {F} AND revision = 2)"
    f" WHERE scope_id = {F}"
)
UNCITE = f"DELETE FROM {EVIDENCE} WHERE scope_id = {F} AND revision = {{}}"

DAMAGES: dict[str, tuple[list[str], dict[str, dict[str, int]]]] = {
    "the counter of writes is gone": (["DELETE FROM pd_counters"], {"counters": {"counter_missing": 1}}),
    "a counter below zero": (["UPDATE pd_counters SET value = -1"], {"counters": {"counter_negative": 1}}),
    "a head that is behind": ([BACK_TO_TWO, HEAD_TIME], {"heads": {"head_differs": 1}}),
    "a head that is ahead": (
        [f"UPDATE {HEADS} SET revision = 4 WHERE scope_id = {F}"],
        {"heads": {"head_differs": 1}},
    ),
    "a head at another time": (
        [f"UPDATE {HEADS} SET updated_us = 5 WHERE scope_id = {F}"],
        {"heads": {"head_time_differs": 1}},
    ),
    "a head without revisions": (
        [f"DELETE FROM {REVISIONS} WHERE scope_id = {S}", f"DELETE FROM {EVIDENCE} WHERE scope_id = {S}"],
        {"heads": {"head_differs": 1}},
    ),
    "revisions without a head": (
        [f"DELETE FROM {HEADS} WHERE scope_id = {S}"],
        {"heads": {"head_missing": 1}},
    ),
    "a revision lost in the middle": (
        [f"DELETE FROM {REVISIONS} WHERE scope_id = {F} AND revision = 2", UNCITE.format(2)],
        {"heads": {"revision_gap": 1}},
    ),
    "the first revision lost": (
        [f"DELETE FROM {REVISIONS} WHERE scope_id = {F} AND revision = 1", UNCITE.format(1), UNCITE.format(2)],
        {"heads": {"revision_gap": 1}, "evidence": {"evidence_differs": 1}},
    ),
    "a revision based on another": ([EARLY.format("base_revision = 1")], {"heads": {"base_differs": 1}}),
    "a revision of another artifact": ([EARLY.format("artifact_id = x'6b'")], {"heads": {"artifact_differs": 1}}),
    "a changed digest": (
        [EARLY.format(f"content_digest = x'{hashlib.sha256(b'').hexdigest()}'")],
        {"revisions": {"content_digest_differs": 1}},
    ),
    "one changed letter": (
        [EARLY.format("content = CAST(replace(CAST(content AS TEXT), 'Keep the queue', 'Lose the queue') AS BLOB)")],
        {"revisions": {"content_digest_differs": 1}},
    ),
    "content that is no JSON": (
        [EARLY.format("content = substr(content, 2)")],
        {"revisions": {"content_digest_differs": 1, "content_invalid": 1}},
    ),
    "content that is empty": (
        [EARLY.format("content = x''")],
        {"revisions": {"content_digest_differs": 1, "content_invalid": 1}},
    ),
    "content of another schema": (
        [EARLY.format("content = CAST(replace(CAST(content AS TEXT), 'handoff.v1', 'handoff.v9') AS BLOB)")],
        {"revisions": {"content_digest_differs": 1, "content_invalid": 1}},
    ),
    "content that is not canonical": (
        [EARLY.format("content = CAST(CAST(content AS TEXT) || ' ' AS BLOB)")],
        {"revisions": {"content_digest_differs": 1, "content_not_canonical": 1}},
    ),
    "an identity that nobody knows": ([EARLY.format("recorded_identity = 9")], {"revisions": {"code_unknown": 1}}),
    "a citation lost": (
        [f"DELETE FROM {EVIDENCE} WHERE scope_id = {F} AND revision = 2 AND ordinal = 1"],
        {"evidence": {"evidence_differs": 1}},
    ),
    "citations in another order": (
        [
            f"UPDATE {EVIDENCE} SET ordinal = ordinal + 10 WHERE scope_id = {F} AND revision = 2",
            f"UPDATE {EVIDENCE} SET ordinal = 11 - ordinal WHERE scope_id = {F} AND revision = 2",
        ],
        {"evidence": {"evidence_differs": 1}},
    ),
    "a citation of nothing": (
        [f"INSERT INTO {EVIDENCE} VALUES ({S}, 7, 0, 2, NULL, 1)"],
        {"evidence": {"evidence_without_revision": 1}},
    ),
    "a citation behind the last scope": (
        [f"INSERT INTO {EVIDENCE} VALUES (x'ff', 1, 0, 2, NULL, 1)"],
        {"evidence": {"evidence_without_revision": 1, "evidence_revision_missing": 1}},
    ),
    "a cited source lost": (
        [f"DELETE FROM {SOURCES} WHERE scope_id = {S}"],
        {"evidence": {"evidence_source_missing": 1}},
    ),
    "a citation of a later revision": (
        [f"UPDATE {EVIDENCE} SET artifact_revision = 3 WHERE scope_id = {F} AND revision = 2 AND kind = 2"],
        {"evidence": {"evidence_differs": 1, "evidence_revision_missing": 1}},
    ),
    "a citation of an unknown kind": (
        [f"UPDATE {EVIDENCE} SET kind = 3 WHERE scope_id = {S}"],
        {"evidence": {"evidence_differs": 1}},
    ),
    "a changed body": (
        [f"UPDATE {SOURCES} SET body = CAST(replace(CAST(body AS TEXT), 'e', 'a') AS BLOB) WHERE scope_id = {S}"],
        {"sources": {"source_digest_differs": 1}},
    ),
    "a body cut off": (
        [f"UPDATE {SOURCES} SET body = substr(body, 2) WHERE scope_id = {S}"],
        {"sources": {"source_digest_differs": 1, "source_size_differs": 1}},
    ),
    "another size": ([f"UPDATE {SOURCES} SET size = 1 WHERE {LAST_SOURCE}"], {"sources": {"source_size_differs": 1}}),
    "a body lost": (
        [f"UPDATE {SOURCES} SET body = NULL WHERE {LAST_SOURCE}"],
        {"sources": {"source_body_missing": 1}},
    ),
    "another source id": (
        [f"UPDATE {SOURCES} SET source_id = x'6b' WHERE {LAST_SOURCE}"],
        {"sources": {"source_key_differs": 1}},
    ),
    "an assurance that nobody knows": (
        [f"UPDATE {SOURCES} SET assurance = 0 WHERE {LAST_SOURCE}"],
        {"sources": {"code_unknown": 1}},
    ),
    "a source after the last handoff": (
        [f"UPDATE {SOURCES} SET after_revision = 4 WHERE {LAST_SOURCE}"],
        {"sources": {"source_after_head": 1}},
    ),
    "a version of a project lost": (
        [f"DELETE FROM {P_HISTORY} WHERE version = 1 AND {SHOP}"],
        {"projects": {"version_gap": 1, "catalog_gap": 1}},
    ),
    "a project at an older version": (
        [f"UPDATE {PROJECTS} SET version = 1 WHERE project_key = {hexed('shop')}"],
        {"projects": {"version_differs": 1, "descriptor_differs": 2}},
    ),
    "a project without its history": (
        [f"DELETE FROM {P_HISTORY} WHERE NOT {SHOP}"],
        {"projects": {"version_differs": 1, "catalog_counter_differs": 1}},
    ),
    "a history without its project": (
        [f"DELETE FROM {PROJECTS} WHERE NOT {SHOP}"],
        {"projects": {"revision_without_descriptor": 1}},
    ),
    "a catalog counter that is ahead": (
        [f"UPDATE {PROJECTS} SET catalog_revision = catalog_revision + 1 WHERE {SHOP}"],
        {"projects": {"catalog_counter_differs": 1}},
    ),
    "a catalog number used twice": (
        [f"UPDATE {P_HISTORY} SET catalog_revision = 1 WHERE version = 2 AND {SHOP}"],
        {"projects": {"catalog_gap": 1}},
    ),
    "another key than the descriptor says": (
        [f"UPDATE {PROJECTS} SET project_key = x'6b' WHERE {SHOP}"],
        {"projects": {"descriptor_differs": 1}},
    ),
    "another state than the descriptor says": (
        [f"UPDATE {PROJECTS} SET catalog_state = 2 WHERE {SHOP}"],
        {"projects": {"descriptor_differs": 1}},
    ),
    "a changed title": (
        [
            f"UPDATE {PROJECTS} SET descriptor = CAST(replace(CAST(descriptor AS TEXT), 'The shop', 'A shop') AS BLOB)"
            f" WHERE {SHOP}"
        ],
        {"projects": {"descriptor_differs": 1}},
    ),
    "a descriptor that is none": (
        [f"UPDATE {P_HISTORY} SET descriptor = x'7b7d' WHERE version = 1 AND {SHOP}"],
        {"projects": {"descriptor_invalid": 1}},
    ),
    "a descriptor that is not canonical": (
        [
            f"UPDATE {P_HISTORY} SET descriptor = CAST(CAST(descriptor AS TEXT) || ' ' AS BLOB)"
            f" WHERE version = 1 AND {SHOP}"
        ],
        {"projects": {"descriptor_invalid": 1}},
    ),
    "a version of a workstream lost": (
        [f"DELETE FROM {W_HISTORY} WHERE scope_id = {F} AND version = 2"],
        {"projects": {"catalog_gap": 1}, "workstreams": {"version_gap": 1}},
    ),
    "a workstream of no project": (
        [f"DELETE FROM {PROJECTS} WHERE {SHOP}"],
        {"projects": {"revision_without_descriptor": 1}, "workstreams": {"project_missing": 2}},
    ),
    "a workstream moved to another project": (
        [
            f"UPDATE {WORKSTREAMS} SET project_id = (SELECT project_id FROM {PROJECTS} WHERE NOT {SHOP})"
            f" WHERE scope_id = {S}"
        ],
        {"workstreams": {"project_differs": 1, "descriptor_differs": 1}},
    ),
    "another workstream key": (
        [f"UPDATE {WORKSTREAMS} SET workstream_key = x'6b' WHERE scope_id = {S}"],
        {"workstreams": {"descriptor_differs": 1}},
    ),
    "a role that nobody knows": (
        ["UPDATE pd_tokens SET role = x'6b' WHERE host IS NULL"],
        {"tokens": {"token_invalid": 2}},
    ),
    "a fingerprint that is too short": (
        [f"UPDATE pd_tokens SET token_sha256 = x'00' WHERE {one('pd_tokens', '1', 'token_id')}"],
        {"tokens": {"token_invalid": 1}},
    ),
    "limits of no token": (["DELETE FROM pd_tokens"], {"tokens": {"limit_without_token": 2}}),
    "a limit of an unknown kind": (
        ["UPDATE pd_token_limits SET kind = 3 WHERE kind = 2"],
        {"tokens": {"limit_invalid": 1}},
    ),
    "a kept answer lost": (["UPDATE pd_replays SET answer = NULL"], {"replays": {"answer_missing": 1}}),
    "a receipt with another verdict": (
        [f"UPDATE {RECEIPTS} SET verdict = 1 WHERE revision = 1"],
        {"receipts": {"receipt_key_differs": 1}},
    ),
    "a receipt by somebody else": (
        [f"UPDATE {RECEIPTS} SET recorded_by = {hexed('mallory')} WHERE revision = 1"],
        {"receipts": {"receipt_key_differs": 1}},
    ),
    "a receipt of words that nobody can read": (
        [f"UPDATE {RECEIPTS} SET body = {hexed('{}')} WHERE revision = 0"],
        {"receipts": {"receipt_invalid": 1}},
    ),
    "a receipt of no known verdict": (
        [f"UPDATE {RECEIPTS} SET verdict = 9 WHERE revision = 1"],
        {"receipts": {"code_unknown": 1}},
    ),
    "a receipt of a revision that says something else": (
        [f"UPDATE {RECEIPTS} SET revision = 2 WHERE revision = 1"],
        {"receipts": {"receipt_without_revision": 1}},
    ),
    "a test run with other counts": ([f"UPDATE {RUNS} SET failures = 0"], {"test_runs": {"run_differs": 1}}),
    "a test run of another commit": (
        [f"UPDATE {RUNS} SET commit_oid = x'{'2e' * 20}'"],
        {"test_runs": {"run_differs": 1}},
    ),
    "a test run of no known basis": ([f"UPDATE {RUNS} SET commit_basis = 7"], {"test_runs": {"code_unknown": 1}}),
    "a test report without its run": ([f"DELETE FROM {RUNS}"], {"test_runs": {"run_missing": 1}}),
    "a test run without its report": (
        ["DELETE FROM pd_sources WHERE source_type = CAST('test_report' AS BLOB)"],
        {"test_runs": {"run_source_missing": 1}},
    ),
}
