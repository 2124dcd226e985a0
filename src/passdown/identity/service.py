"""Tokens: made, shown once, checked on every request, revoked.

Design: the secret leaves :meth:`TokenService.create` and is never seen again; a request is authenticated by looking up
the SHA-256 of what it shows. Nothing is cached, so a revocation holds for the next request of every server over the
store; the price is one indexed read.

Public operations: :meth:`~TokenService.create`, :meth:`~TokenService.access`, :meth:`~TokenService.authenticate`,
:meth:`~TokenService.list`, :meth:`~TokenService.revoke`, :meth:`~TokenService.any_owner`.
"""

from __future__ import annotations

import builtins
import hmac
import secrets
from collections.abc import Sequence

from passdown.identity import store as table
from passdown.identity.rules import SECRET_BYTES, Access, TokenRecord, fingerprint, new_record, spell
from passdown.kernel.clock import Clock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import IdSource
from passdown.kernel.operations import Principal
from passdown.storage.session import Session, Store


class TokenService:
    """Tokens of one store. Safe to share between threads."""

    def __init__(self, store: Store, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    def create(
        self,
        name: str,
        principal: str,
        role: str,
        host: str | None = None,
        expires_us: int | None = None,
        *,
        projects: Sequence[str] = (),
        operations: Sequence[str] = (),
    ) -> tuple[str, TokenRecord]:
        """Make a token; the first member of the answer is the secret text, shown only here.

        ``name`` is for people and need not be unique. ``host`` gives the right that what the token captures from a
        repository counts as read by that host. ``expires_us`` is in microseconds UTC, None for never. ``projects``
        (ids) and ``operations`` (names) confine it; a project or operation that does not exist confines all the same.
        Raises ``invalid_request`` and what the store raises.
        """
        token = spell(secrets.token_bytes(SECRET_BYTES))
        token_sha256 = _fingerprint_of_ours(token)
        record = new_record(
            token_id=self._ids.new("tok_"),
            name=name,
            principal=principal,
            role=role,
            host=host,
            created_us=self._clock.now_us(),
            expires_us=expires_us,
            projects=projects,
            operations=operations,
        )

        def add(session: Session) -> bool:
            return table.insert(session, record, token_sha256)

        if not self._store.write(add):
            raise PassdownError("internal_error", rule="token_repeated")
        return token, record

    def authenticate(self, token: str) -> Principal:
        """Who shows this token; see :meth:`access`."""
        return self.access(token).principal

    def access(self, token: str) -> Access:
        """Who shows this token, and what it is confined to.

        Raises ``unauthenticated`` with ``rule``: ``malformed``, ``unknown``, ``expired``, ``revoked``.
        """
        shown = fingerprint(token)
        if shown is None:
            raise PassdownError("unauthenticated", rule="malformed")
        found = self._store.read(lambda session: table.by_fingerprint(session, shown))
        if found is None or not hmac.compare_digest(found[1], shown):
            raise PassdownError("unauthenticated", rule="unknown")
        record = found[0]
        why_not = record.why_not(self._clock.now_us())
        if why_not is not None:
            raise PassdownError("unauthenticated", rule=why_not)
        return record.as_access()

    def list(self) -> builtins.list[TokenRecord]:
        """Every token ever made, oldest first, without its secret."""
        return self._store.read(table.all_tokens)

    def revoke(self, token_id: str) -> TokenRecord:
        """End a token; it stays in the list. Revoking twice keeps the first time. Raises ``token_not_found``."""
        if not token_id.isascii():
            raise PassdownError("token_not_found")
        now_us = self._clock.now_us()

        def end(session: Session) -> TokenRecord | None:
            table.mark_revoked(session, token_id, now_us)
            return table.by_id(session, token_id)

        record = self._store.write(end)
        if record is None:
            raise PassdownError("token_not_found")
        return record

    def any_owner(self) -> bool:
        """Whether somebody can act as owner now: a token of that role that is neither expired nor revoked."""
        now_us = self._clock.now_us()
        return any(record.role == "owner" and record.why_not(now_us) is None for record in self.list())


def _fingerprint_of_ours(token: str) -> bytes:
    value = fingerprint(token)
    if value is None:
        raise PassdownError("internal_error", rule="token_shape")
    return value
