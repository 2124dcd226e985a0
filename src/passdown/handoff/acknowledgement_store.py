"""The table of receipts: every statement that touches it, and nothing that decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from passdown.handoff.codes import IDENTITY, IDENTITY_WORD, VERDICT, VERDICT_WORD
from passdown.kernel.operations import Principal
from passdown.storage.session import Session, chunks, in_list


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """One stored receipt. ``revision`` 0 is a prepared handoff; ``body`` are canonical bytes of reason and checks."""

    content_digest: bytes
    revision: int
    receipt_key: bytes
    verdict: str
    body: bytes
    recorded_us: int
    recorded_by: str
    recorded_identity: str


Tally = Mapping[tuple[bytes, int, str], int]
"""How many receipts there are, by content digest, revision and verdict."""

_RECEIPT = (
    "SELECT content_digest, revision, receipt_key, verdict, body, recorded_us, recorded_by, recorded_identity"
    " FROM pd_acknowledgements WHERE scope_id = :s AND content_digest = :d"
)


def _receipt(row: Any) -> ReceiptRow:
    return ReceiptRow(
        row[0], row[1], row[2], VERDICT_WORD[row[3]], row[4], row[5], row[6].decode(), IDENTITY_WORD[row[7]]
    )


def receipt(session: Session, scope_id: str, digest: bytes, revision: int, key: bytes) -> ReceiptRow | None:
    """One receipt, or None."""
    sql = f"{_RECEIPT} AND revision = :r AND receipt_key = :k"
    row = session.one(sql, s=scope_id.encode(), d=digest, r=revision, k=key)
    return None if row is None else _receipt(row)


def newest(session: Session, scope_id: str, digest: bytes, revision: int, limit: int) -> list[ReceiptRow]:
    """At most ``limit`` receipts of a revision, those of the same content while it was prepared among them."""
    sql = f"{_RECEIPT} AND revision IN (0, :r) ORDER BY recorded_us DESC, receipt_key LIMIT :n"
    return [_receipt(row) for row in session.all(sql, s=scope_id.encode(), d=digest, r=revision, n=limit)]


def tally(session: Session, scope_id: str, digests: Iterable[bytes]) -> Tally:
    """Count the receipts of these contents."""
    found: dict[tuple[bytes, int, str], int] = {}
    for chunk in chunks(sorted(set(digests))):
        fragment, params = in_list("d", chunk)
        sql = (
            "SELECT content_digest, revision, verdict, COUNT(*) FROM pd_acknowledgements"
            f" WHERE scope_id = :s AND content_digest IN {fragment} GROUP BY content_digest, revision, verdict"
        )
        for digest, revision, verdict, count in session.all(sql, s=scope_id.encode(), **params):
            found[digest, revision, VERDICT_WORD[verdict]] = count
    return found


def insert(session: Session, scope_id: str, item: ReceiptRow, who: Principal) -> bool:
    """Insert a receipt; False when it is there already."""
    return session.insert_new(
        "INSERT INTO pd_acknowledgements (scope_id, content_digest, revision, receipt_key, verdict, body, recorded_us,"
        " recorded_by, recorded_identity) VALUES (:s, :d, :r, :k, :v, :b, :t, :w, :i)",
        s=scope_id.encode(),
        d=item.content_digest,
        r=item.revision,
        k=item.receipt_key,
        v=VERDICT[item.verdict],
        b=item.body,
        t=item.recorded_us,
        w=who.principal_id.encode(),
        i=IDENTITY[who.identity],
    )
