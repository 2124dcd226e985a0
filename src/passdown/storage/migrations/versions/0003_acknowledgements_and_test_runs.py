"""What receivers said about handoffs, and which tests ran on which commit.

``pd_acknowledgements``: one row per receipt, append-only; revision 0 stands for a prepared handoff, which is known by
its digest alone. ``pd_test_runs``: the counts of a ``test_report`` source that names its commit, found by that commit
without reading bodies.
"""

import sqlalchemy as sa

from passdown.storage.steps import content, create_table, forbid_changes, octets, required

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BIG = sa.BigInteger()
SMALL = sa.SmallInteger()
SCOPE = 1024
PRINCIPAL = 1024
DIGEST = 32


def upgrade() -> None:
    create_table(
        "pd_acknowledgements",
        required("scope_id", octets(SCOPE)),
        required("content_digest", octets(DIGEST)),
        required("revision", BIG),
        # A digest over who, verdict, reason and checks: the same receipt sent twice is one row.
        required("receipt_key", octets(DIGEST)),
        required("verdict", SMALL),
        required("body", content()),
        required("recorded_us", BIG),
        required("recorded_by", octets(PRINCIPAL)),
        required("recorded_identity", SMALL),
        sa.PrimaryKeyConstraint("scope_id", "content_digest", "revision", "receipt_key"),
    )
    forbid_changes("pd_acknowledgements")
    create_table(
        "pd_test_runs",
        required("scope_id", octets(SCOPE)),
        required("commit_oid", octets(DIGEST)),
        required("source_key", octets(DIGEST)),
        required("commit_basis", SMALL),  # 1 the report names the commit, 2 somebody said so
        required("tests", BIG),
        required("failures", BIG),
        required("errors", BIG),
        required("skipped", BIG),
        sa.PrimaryKeyConstraint("scope_id", "commit_oid", "source_key"),
        clustered=True,
    )
    forbid_changes("pd_test_runs")
