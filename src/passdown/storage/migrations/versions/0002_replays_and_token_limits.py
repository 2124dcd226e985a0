"""Answers kept for repeated requests, and what a token is confined to.

``pd_replays``: one row per used ``Idempotency-Key``, keyed by a SHA-256 over who, which operation and the key.
``pd_token_limits``: one row per project or operation that a token names; a token without rows of a kind has no limit of
that kind.
"""

import sqlalchemy as sa

from passdown.storage.steps import content, create_index, create_table, octets, optional, required

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG = sa.BigInteger()
SMALL = sa.SmallInteger()
DIGEST = 32


def upgrade() -> None:
    create_table(
        "pd_replays",
        required("request_key", octets(DIGEST)),
        required("body_sha256", octets(DIGEST)),
        # NULL only inside the transaction that makes the effect; a committed row has its answer.
        optional("answer", content()),
        required("recorded_us", BIG),
        sa.PrimaryKeyConstraint("request_key"),
    )
    create_index("pd_replays_recorded", "pd_replays", ["recorded_us"])
    create_table(
        "pd_token_limits",
        required("token_id", octets(64)),
        required("kind", SMALL),  # 1 project, 2 operation
        required("name", octets(256)),
        sa.PrimaryKeyConstraint("token_id", "kind", "name"),
        clustered=True,
    )
