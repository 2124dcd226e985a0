"""Whether the rows of the handoff core still say what was committed.

Design: what can be asked of whole tables is asked in SQL; digests, content and citations are computed anew, row by row
and in bounded memory, over the one snapshot of the session. Nothing is repaired.

Codes, by check. ``heads``: ``head_differs`` (not the last revision), ``head_time_differs``, ``head_missing``,
``revision_gap``, ``base_differs``, ``artifact_differs``. ``revisions``: ``content_digest_differs``,
``content_not_canonical``, ``content_invalid``, ``code_unknown``. ``evidence``: ``evidence_differs`` (not what the
content cites), ``evidence_without_revision``, ``evidence_source_missing``, ``evidence_revision_missing``.
``sources``: ``source_digest_differs``, ``source_size_differs``, ``source_key_differs``, ``source_body_missing``,
``source_after_head``, ``code_unknown``.

Public operation: :func:`checks`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from passdown.handoff.codes import (
    ASSURANCE_WORD,
    CITATION_KIND,
    IDENTITY_WORD,
    MATERIALIZATION,
    MATERIALIZATION_WORD,
)
from passdown.handoff.models import HandoffContent
from passdown.handoff.rules import cited, reference
from passdown.kernel.canonical import canonical_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.strict_json import parse_json
from passdown.kernel.wire import dump, validate
from passdown.storage.findings import Check, Findings
from passdown.storage.rows import Progress, batches, rows
from passdown.storage.session import Session
from passdown.storage.tables import EVIDENCE, HEADS, REVISIONS, SOURCES

_LAST = (
    "SELECT scope_id, MIN(revision) AS lowest, MAX(revision) AS highest, COUNT(*) AS amount"
    " FROM pd_handoff_revisions GROUP BY scope_id"
)
_Evidence = tuple[int, int, bytes | None, int | None]
"""Ordinal, kind, source key, artifact revision."""


def checks(session: Session, progress: Progress | None = None) -> list[Check]:
    """The four checks of the handoff core."""
    heads = _heads(session)
    revisions, evidence = _revisions_and_evidence(session, progress)
    return [heads, revisions, evidence, _sources(session, progress)]


# --- heads --------------------------------------------------------------------------------------------------------


def _heads(session: Session) -> Check:
    findings = Findings("heads", "workstreams")
    counted = session.one(f"SELECT COUNT(*) FROM {HEADS.name}")
    findings.examined = int(counted[0]) if counted else 0
    scope = ("scope_id",)
    findings.query(
        session,
        "head_differs",
        HEADS.name,
        scope,
        f"SELECT h.scope_id FROM {HEADS.name} h LEFT JOIN ({_LAST}) r ON r.scope_id = h.scope_id"
        " WHERE r.highest IS NULL OR r.highest <> h.revision",
    )
    findings.query(
        session,
        "head_time_differs",
        HEADS.name,
        scope,
        f"SELECT h.scope_id FROM {HEADS.name} h JOIN {REVISIONS.name} r"
        " ON r.scope_id = h.scope_id AND r.revision = h.revision WHERE r.recorded_us <> h.updated_us",
    )
    findings.query(
        session,
        "head_missing",
        REVISIONS.name,
        scope,
        f"SELECT r.scope_id FROM ({_LAST}) r LEFT JOIN {HEADS.name} h ON h.scope_id = r.scope_id"
        " WHERE h.scope_id IS NULL",
    )
    findings.query(
        session,
        "revision_gap",
        REVISIONS.name,
        scope,
        f"SELECT r.scope_id FROM ({_LAST}) r WHERE r.lowest <> 1 OR r.highest <> r.amount",
    )
    findings.query(
        session,
        "base_differs",
        REVISIONS.name,
        REVISIONS.key,
        f"SELECT scope_id, revision FROM {REVISIONS.name} WHERE base_revision <> revision - 1",
    )
    findings.query(
        session,
        "artifact_differs",
        REVISIONS.name,
        REVISIONS.key,
        f"SELECT r.scope_id, r.revision FROM {REVISIONS.name} r JOIN {HEADS.name} h ON h.scope_id = r.scope_id"
        " WHERE r.artifact_id <> h.artifact_id",
    )
    return findings.check()


# --- revisions and what they cite ---------------------------------------------------------------------------------


def _revisions_and_evidence(session: Session, progress: Progress | None) -> tuple[Check, Check]:
    """One pass over both tables, which are in the same order."""
    revisions = Findings("revisions", "revisions")
    evidence = Findings("evidence", "citations")
    groups = _evidence_groups(session, evidence)
    group = next(groups, None)
    for scope_id, number, digest, content, identity in _revision_rows(session, revisions, progress):
        place = (scope_id, number)
        expected = _read_content(revisions, scope_id, number, digest, content)
        if identity not in IDENTITY_WORD:
            revisions.add("code_unknown", REVISIONS.name, scope_id=scope_id, revision=number)
        while group is not None and group[0] < place:
            _without_revision(evidence, group[0])
            group = next(groups, None)
        found: list[_Evidence] = []
        if group is not None and group[0] == place:
            found = group[1]
            group = next(groups, None)
        if expected is not None and found != expected:
            evidence.add("evidence_differs", EVIDENCE.name, scope_id=scope_id, revision=number)
    while group is not None:
        _without_revision(evidence, group[0])
        group = next(groups, None)
    _resolve_evidence(session, evidence)
    return revisions.check(), evidence.check()


def _revision_rows(
    session: Session, findings: Findings, progress: Progress | None
) -> Iterator[tuple[bytes, int, bytes, bytes, int]]:
    columns = ("scope_id", "revision", "content_digest", "content", "recorded_identity")
    for batch in batches(session, REVISIONS, columns):
        findings.examined += len(batch)
        yield from batch
        if progress is not None:
            progress(REVISIONS.name, findings.examined)


def _evidence_groups(session: Session, findings: Findings) -> Iterator[tuple[tuple[bytes, int], list[_Evidence]]]:
    """The citations of one revision after the other."""
    for place, group in groupby(rows(session, EVIDENCE), key=lambda row: (row[0], row[1])):
        found = [(row[2], row[3], row[4], row[5]) for row in group]
        findings.examined += len(found)
        yield place, found


def _without_revision(findings: Findings, place: tuple[bytes, int]) -> None:
    findings.add("evidence_without_revision", EVIDENCE.name, scope_id=place[0], revision=place[1])


def _read_content(
    findings: Findings, scope_id: bytes, number: int, digest: bytes, content: bytes
) -> list[_Evidence] | None:
    """What the content of a revision cites; None if it cannot be read."""
    place = {"scope_id": scope_id, "revision": number}
    if hashlib.sha256(content).digest() != digest:
        findings.add("content_digest_differs", REVISIONS.name, **place)
    try:
        value: Any = parse_json(content, max_bytes=len(content))
        if canonical_bytes(value) != content:
            findings.add("content_not_canonical", REVISIONS.name, **place)
        whole = dump(validate(HandoffContent, value))
    except PassdownError:
        findings.add("content_invalid", REVISIONS.name, **place)
        return None
    return [
        (ordinal, CITATION_KIND["source" if ref.key else "artifact"], ref.key, ref.revision)
        for ordinal, ref in enumerate(map(reference, cited(whole)))
    ]


def _resolve_evidence(session: Session, findings: Findings) -> None:
    findings.query(
        session,
        "evidence_source_missing",
        EVIDENCE.name,
        EVIDENCE.key,
        f"SELECT e.scope_id, e.revision, e.ordinal FROM {EVIDENCE.name} e LEFT JOIN {SOURCES.name} s"
        " ON s.scope_id = e.scope_id AND s.source_key = e.source_key"
        f" WHERE e.kind = {CITATION_KIND['source']} AND s.scope_id IS NULL",
    )
    findings.query(
        session,
        "evidence_revision_missing",
        EVIDENCE.name,
        EVIDENCE.key,
        f"SELECT e.scope_id, e.revision, e.ordinal FROM {EVIDENCE.name} e LEFT JOIN {REVISIONS.name} r"
        " ON r.scope_id = e.scope_id AND r.revision = e.artifact_revision AND r.revision < e.revision"
        f" WHERE e.kind = {CITATION_KIND['artifact']} AND r.scope_id IS NULL",
    )


# --- sources ------------------------------------------------------------------------------------------------------


def _sources(session: Session, progress: Progress | None) -> Check:
    findings = Findings("sources", "sources")
    columns = (
        "scope_id",
        "source_key",
        "source_type",
        "source_id",
        "materialization",
        "assurance",
        "recorded_identity",
        "size",
        "sha256",
        "body",
    )
    for batch in batches(session, SOURCES, columns):
        for scope_id, key, kind, source_id, materialization, assurance, identity, size, sha256, body in batch:
            place = {"scope_id": scope_id, "source_key": key.hex()}
            if hashlib.sha256(kind + b"\0" + source_id).digest() != key:
                findings.add("source_key_differs", SOURCES.name, **place)
            if (
                materialization not in MATERIALIZATION_WORD
                or assurance not in ASSURANCE_WORD
                or identity not in IDENTITY_WORD
            ):
                findings.add("code_unknown", SOURCES.name, **place)
            if body is None:
                if materialization == MATERIALIZATION["captured"]:
                    findings.add("source_body_missing", SOURCES.name, **place)
                continue
            if hashlib.sha256(body).digest() != sha256:
                findings.add("source_digest_differs", SOURCES.name, **place)
            if len(body) != size:
                findings.add("source_size_differs", SOURCES.name, **place)
        findings.examined += len(batch)
        if progress is not None:
            progress(SOURCES.name, findings.examined)
    findings.query(
        session,
        "source_after_head",
        SOURCES.name,
        ("scope_id",),
        f"SELECT s.scope_id FROM (SELECT scope_id, MAX(after_revision) AS highest FROM {SOURCES.name}"
        f" GROUP BY scope_id) s LEFT JOIN {HEADS.name} h ON h.scope_id = s.scope_id"
        " WHERE s.highest > COALESCE(h.revision, 0)",
    )
    return findings.check()
