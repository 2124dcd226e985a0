"""Whether the rows of tokens are ones that this version can judge by.

Codes: ``token_invalid`` (an unknown role, or a fingerprint that is no SHA-256), ``limit_without_token``,
``limit_invalid`` (of a kind that confines nothing).

Public operation: :func:`check`.
"""

from __future__ import annotations

from passdown.identity.rules import ROLES
from passdown.storage.findings import Check, Findings
from passdown.storage.rows import rows
from passdown.storage.session import Session
from passdown.storage.tables import TOKEN_LIMITS, TOKENS

_SHA256 = 32
_ROLES = frozenset(role.encode() for role in ROLES)


def check(session: Session) -> Check:
    """The check of tokens and of what they are confined to."""
    findings = Findings("tokens", "tokens")
    for token_id, role, token_sha256 in rows(session, TOKENS, ("token_id", "role", "token_sha256")):
        findings.examined += 1
        if role not in _ROLES or len(token_sha256) != _SHA256:
            findings.add("token_invalid", TOKENS.name, token_id=token_id)
    findings.query(
        session,
        "limit_without_token",
        TOKEN_LIMITS.name,
        TOKEN_LIMITS.key,
        f"SELECT l.token_id, l.kind, l.name FROM {TOKEN_LIMITS.name} l LEFT JOIN {TOKENS.name} t"
        " ON t.token_id = l.token_id WHERE t.token_id IS NULL",
    )
    findings.query(
        session,
        "limit_invalid",
        TOKEN_LIMITS.name,
        TOKEN_LIMITS.key,
        f"SELECT token_id, kind, name FROM {TOKEN_LIMITS.name} WHERE kind NOT IN (1, 2)",
    )
    return findings.check()
