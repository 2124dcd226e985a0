"""The table of kept answers: every statement that touches it, and nothing that decides.

Each function runs inside a transaction that its caller opened.
"""

from __future__ import annotations

from dataclasses import dataclass

from passdown.kernel.errors import PassdownError
from passdown.storage.session import Session


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of one request: the SHA-256 of its body, and the bytes that answered it."""

    body_sha256: bytes
    answer: bytes


def sweep(session: Session, until_us: int) -> None:
    """Forget the answers that were recorded at ``until_us`` or before."""
    session.run("DELETE FROM pd_replays WHERE recorded_us <= :until_us", until_us=until_us)


def reserve(session: Session, request_key: bytes, body_sha256: bytes, now_us: int) -> bool:
    """Take the key; False if another request has it. On engines with many writers the second waits for the first."""
    return session.insert_new(
        "INSERT INTO pd_replays (request_key, body_sha256, answer, recorded_us)"
        " VALUES (:request_key, :body_sha256, NULL, :now_us)",
        request_key=request_key,
        body_sha256=body_sha256,
        now_us=now_us,
    )


def complete(session: Session, request_key: bytes, answer: bytes) -> None:
    """Put in the answer of a key that this transaction took."""
    changed = session.run(
        "UPDATE pd_replays SET answer = :answer WHERE request_key = :request_key",
        request_key=request_key,
        answer=answer,
    )
    if changed != 1:
        raise PassdownError("internal_error", rule="replay_lost")


def find(session: Session, request_key: bytes) -> Kept | None:
    """What is kept under the key, or None."""
    row = session.one(
        "SELECT body_sha256, answer FROM pd_replays WHERE request_key = :request_key AND answer IS NOT NULL",
        request_key=request_key,
    )
    return None if row is None else Kept(bytes(row[0]), bytes(row[1]))
