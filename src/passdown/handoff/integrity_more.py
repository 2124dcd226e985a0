"""Whether receipts and test runs still say what was stored with them.

Codes. ``receipts``: ``receipt_key_differs`` (not the digest of who and what), ``receipt_invalid`` (words that cannot be
read), ``receipt_without_revision`` (of a revision that is not there or says something else), ``code_unknown``.
``test_runs``: ``run_source_missing``, ``run_differs`` (not what its report says), ``run_missing`` (a report that names
its commit has no run), ``code_unknown``.

Public operation: :func:`more_checks`.
"""

from __future__ import annotations

from typing import Any

import orjson

from passdown.handoff.acknowledgement_operations import ReceiverCheck
from passdown.handoff.acknowledgements import receipt_key
from passdown.handoff.codes import COMMIT_BASIS, COMMIT_BASIS_WORD, IDENTITY_WORD, VERDICT_WORD
from passdown.handoff.facts import TestReportFacts
from passdown.kernel.canonical import canonical_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.wire import validate
from passdown.storage.findings import Check, Findings
from passdown.storage.rows import Progress, batches
from passdown.storage.session import Session
from passdown.storage.tables import ACKNOWLEDGEMENTS, REVISIONS, SOURCES, TEST_RUNS

_Run = tuple[bytes, int, int, int, int, int]
"""Commit, basis, tests, failures, errors, skipped."""


def more_checks(session: Session, progress: Progress | None = None) -> list[Check]:
    """The two checks of this module."""
    return [_receipts(session, progress), _test_runs(session, progress)]


def _receipts(session: Session, progress: Progress | None) -> Check:
    findings = Findings("receipts", "receipts")
    columns = ("scope_id", "content_digest", "revision", "receipt_key", "verdict", "body", "recorded_by")
    for batch in batches(session, ACKNOWLEDGEMENTS, (*columns, "recorded_identity")):
        for scope_id, _, number, key, verdict, body, who, identity in batch:
            place = {"scope_id": scope_id, "revision": number, "receipt_key": key.hex()}
            if verdict not in VERDICT_WORD or identity not in IDENTITY_WORD:
                findings.add("code_unknown", ACKNOWLEDGEMENTS.name, **place)
                continue
            try:
                said = _words(body)
                author = Principal(who.decode(), IDENTITY_WORD[identity], "reader")  # type: ignore[arg-type]
                expected = receipt_key(author, {"verdict": VERDICT_WORD[verdict], **said})
            except (PassdownError, ValueError, TypeError):
                findings.add("receipt_invalid", ACKNOWLEDGEMENTS.name, **place)
                continue
            if expected != key:
                findings.add("receipt_key_differs", ACKNOWLEDGEMENTS.name, **place)
        findings.examined += len(batch)
        if progress is not None:
            progress(ACKNOWLEDGEMENTS.name, findings.examined)
    findings.query(
        session,
        "receipt_without_revision",
        ACKNOWLEDGEMENTS.name,
        ("scope_id", "revision"),
        f"SELECT a.scope_id, a.revision FROM {ACKNOWLEDGEMENTS.name} a LEFT JOIN {REVISIONS.name} r"
        " ON r.scope_id = a.scope_id AND r.revision = a.revision AND r.content_digest = a.content_digest"
        " WHERE a.revision > 0 AND r.scope_id IS NULL",
    )
    return findings.check()


def _words(body: bytes) -> dict[str, Any]:
    """Reason and checks, of the form that a receipt has."""
    said: dict[str, Any] = orjson.loads(body)
    if not isinstance(said, dict) or set(said) != {"reason", "checks"} or canonical_bytes(said) != body:
        raise ValueError("words")
    for check in said["checks"]:
        validate(ReceiverCheck, check)
    return said


def _test_runs(session: Session, progress: Progress | None) -> Check:
    findings = Findings("test_runs", "test runs")
    expected = _expected(session)
    columns = ("scope_id", "commit_oid", "source_key", "commit_basis", "tests", "failures", "errors", "skipped")
    for batch in batches(session, TEST_RUNS, columns):
        for scope_id, oid, key, basis, *counts in batch:
            place = {"scope_id": scope_id, "source_key": key.hex()}
            there = expected.pop((scope_id, key), None)
            if basis not in COMMIT_BASIS_WORD:
                findings.add("code_unknown", TEST_RUNS.name, **place)
            elif there is None:
                findings.add("run_source_missing", TEST_RUNS.name, **place)
            elif there != (oid, basis, *counts):
                findings.add("run_differs", TEST_RUNS.name, **place)
        findings.examined += len(batch)
        if progress is not None:
            progress(TEST_RUNS.name, findings.examined)
    for scope_id, key in expected:
        findings.add("run_missing", SOURCES.name, scope_id=scope_id, source_key=key.hex())
    return findings.check()


def _expected(session: Session) -> dict[tuple[bytes, bytes], _Run]:
    """The run of every stored report that names its commit; one that cannot be read is the business of the sources."""
    found: dict[tuple[bytes, bytes], _Run] = {}
    for batch in batches(session, SOURCES, ("scope_id", "source_key", "source_type", "body")):
        for scope_id, key, kind, body in batch:
            if kind != b"test_report" or body is None:
                continue
            try:
                facts = validate(TestReportFacts, orjson.loads(body))
            except (PassdownError, ValueError):
                continue
            if facts.commit is not None and facts.commit_basis is not None:
                counts = (facts.tests, facts.failures, facts.errors, facts.skipped)
                found[scope_id, key] = (bytes.fromhex(facts.commit), COMMIT_BASIS[facts.commit_basis], *counts)
    return found
