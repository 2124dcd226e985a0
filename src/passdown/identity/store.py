"""The tables of tokens: every statement that touches them, and nothing that decides.

Each function runs inside a transaction that its caller opened. Text is stored as its UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from passdown.identity.rules import TokenRecord
from passdown.kernel.operations import Role
from passdown.storage.session import Row, Session

_COLUMNS: Final = "token_id, name, principal, role, host, created_us, expires_us, revoked_us"


_KINDS: Final = {"project": 1, "operation": 2}


def insert(session: Session, record: TokenRecord, token_sha256: bytes) -> bool:
    """Add a token with what it is confined to; False if its id or its secret is there already."""
    added = session.insert_new(
        f"INSERT INTO pd_tokens ({_COLUMNS}, token_sha256) VALUES "
        "(:token_id, :name, :principal, :role, :host, :created_us, :expires_us, :revoked_us, :token_sha256)",
        token_id=record.token_id.encode(),
        name=record.name.encode(),
        principal=record.principal.encode(),
        role=record.role.encode(),
        host=None if record.host is None else record.host.encode(),
        created_us=record.created_us,
        expires_us=record.expires_us,
        revoked_us=record.revoked_us,
        token_sha256=token_sha256,
    )
    if added:
        _insert_limits(session, record.token_id, "project", record.projects)
        _insert_limits(session, record.token_id, "operation", record.operations)
    return added


def _insert_limits(session: Session, token_id: str, kind: str, names: Sequence[str]) -> None:
    for name in names:
        session.run(
            "INSERT INTO pd_token_limits (token_id, kind, name) VALUES (:token_id, :kind, :name)",
            token_id=token_id.encode(),
            kind=_KINDS[kind],
            name=name.encode(),
        )


def by_fingerprint(session: Session, token_sha256: bytes) -> tuple[TokenRecord, bytes] | None:
    """The token with this SHA-256 and the SHA-256 as stored, for a comparison in constant time."""
    row = session.one(
        f"SELECT {_COLUMNS}, token_sha256 FROM pd_tokens WHERE token_sha256 = :token_sha256", token_sha256=token_sha256
    )
    return None if row is None else (_record(row, _limits(session, bytes(row[0]))), bytes(row[8]))


def by_id(session: Session, token_id: str) -> TokenRecord | None:
    """The token with this id."""
    row = session.one(f"SELECT {_COLUMNS} FROM pd_tokens WHERE token_id = :token_id", token_id=token_id.encode())
    return None if row is None else _record(row, _limits(session, bytes(row[0])))


def all_tokens(session: Session) -> list[TokenRecord]:
    """Every token ever made, oldest first."""
    limits: dict[bytes, list[Row]] = {}
    for token_id, kind, name in session.all("SELECT token_id, kind, name FROM pd_token_limits"):
        limits.setdefault(bytes(token_id), []).append((kind, name))
    rows = session.all(f"SELECT {_COLUMNS} FROM pd_tokens ORDER BY created_us, token_id")
    return [_record(row, limits.get(bytes(row[0]), [])) for row in rows]


def mark_revoked(session: Session, token_id: str, revoked_us: int) -> bool:
    """Revoke a token that is not revoked yet; False if it is, or is not there."""
    touched = session.run(
        "UPDATE pd_tokens SET revoked_us = :revoked_us WHERE token_id = :token_id AND revoked_us IS NULL",
        token_id=token_id.encode(),
        revoked_us=revoked_us,
    )
    return touched == 1


def _limits(session: Session, token_id: bytes) -> list[Row]:
    return session.all("SELECT kind, name FROM pd_token_limits WHERE token_id = :token_id", token_id=token_id)


def _names(limits: Sequence[Row], kind: str) -> tuple[str, ...]:
    return tuple(sorted(bytes(name).decode() for of_kind, name in limits if of_kind == _KINDS[kind]))


def _record(row: Row, limits: Sequence[Row]) -> TokenRecord:
    return TokenRecord(
        token_id=bytes(row[0]).decode(),
        name=bytes(row[1]).decode(),
        principal=bytes(row[2]).decode(),
        role=cast(Role, bytes(row[3]).decode()),
        host=None if row[4] is None else bytes(row[4]).decode(),
        created_us=int(row[5]),
        expires_us=None if row[6] is None else int(row[6]),
        revoked_us=None if row[7] is None else int(row[7]),
        projects=_names(limits, "project"),
        operations=_names(limits, "operation"),
    )
