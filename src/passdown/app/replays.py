"""``Idempotency-Key``: a request that is repeated with its key is answered with the bytes of the first answer.

States of a key (of one principal and one operation): free -> kept (answer and digest of the body) -> free again after
24 hours. The key is taken, the effect made and the answer kept in one transaction, so a crash at any instant leaves
either all three or none: an effect is never repeated, and never left without its answer. A refused request made no
effect and keeps nothing; its repetition is judged anew. Old answers are swept by the next request that carries a key.
Which operations take a key, and why, is in :mod:`passdown.app.repeating`.

Public operations: :class:`Replays`, :func:`checked_key`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from passdown.app import replay_store as table
from passdown.app.spanning import SpanningStore
from passdown.kernel import limits
from passdown.kernel.clock import Clock
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.text import TextRefused, normalise_identifier
from passdown.storage.session import Session

LIFETIME_US: Final = 24 * 3_600 * 1_000_000


def checked_key(value: str) -> str:
    """The key in its one form: an identifier of 1 to 256 characters; else ``invalid_request`` naming the header."""
    try:
        return normalise_identifier(value, max_chars=limits.IDENTIFIER)
    except TextRefused as refused:
        raise PassdownError("invalid_request", field="Idempotency-Key", rule=refused.rule) from None


class Replays:
    """The kept answers of one store. Safe to share between threads."""

    def __init__(self, store: SpanningStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def once(
        self, who: Principal, operation: str, key: str, body: bytes, work: Callable[[], bytes]
    ) -> tuple[bytes, bool]:
        """The answer to this request, and whether it is a repeated one.

        ``work`` makes the effect through the same store and returns the bytes of the answer; it runs inside one
        transaction with the keeping of them, and not at all for a repetition. The same key with another ``body`` is
        ``idempotency_conflict``.
        """
        request_key = _request_key(who.principal_id, operation, key)
        body_sha256 = hashlib.sha256(body).digest()
        now_us = self._clock.now_us()

        def spanned(session: Session) -> tuple[bytes, bool]:
            table.sweep(session, now_us - LIFETIME_US)
            # Taken before the effect: of two that come at once, the second waits here and not behind its own effect.
            if table.reserve(session, request_key, body_sha256, now_us):
                answer = work()
                table.complete(session, request_key, answer)
                return answer, False
            kept = table.find(session, request_key)
            if kept is None:
                raise PassdownError("store_busy")
            if kept.body_sha256 != body_sha256:
                raise PassdownError("idempotency_conflict", field="Idempotency-Key", rule="other_request")
            return kept.answer, True

        return self._store.span(spanned)


def _request_key(principal_id: str, operation: str, key: str) -> bytes:
    """One digest for the three; lengths in front keep different triples apart."""
    digest = hashlib.sha256()
    for part in (principal_id, operation, key):
        data = part.encode("utf-8")
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.digest()
