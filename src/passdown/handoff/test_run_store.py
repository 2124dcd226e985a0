"""The table of test runs: every statement that touches it, and nothing that decides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from passdown.handoff.codes import ASSURANCE_WORD, COMMIT_BASIS, COMMIT_BASIS_WORD, source_key
from passdown.handoff.facts import TestReportFacts
from passdown.storage.session import Session, chunks, in_list


@dataclass(frozen=True, slots=True)
class TestRunRow:
    """The counts of one report, and its source."""

    __test__ = False  # the test runner is not meant

    source_type: str
    source_id: str
    assurance: str
    commit_basis: str
    tests: int
    failures: int
    errors: int
    skipped: int


def insert(session: Session, scope_id: str, source_id: str, facts: TestReportFacts) -> None:
    """Keep the counts of a report that names its commit, beside its source and in the same transaction."""
    session.insert_new(
        "INSERT INTO pd_test_runs (scope_id, commit_oid, source_key, commit_basis, tests, failures, errors, skipped)"
        " VALUES (:s, :c, :k, :b, :t, :f, :e, :n)",
        s=scope_id.encode(),
        c=bytes.fromhex(facts.commit or ""),
        k=source_key("test_report", source_id),
        b=COMMIT_BASIS[facts.commit_basis or "said"],
        t=facts.tests,
        f=facts.failures,
        e=facts.errors,
        n=facts.skipped,
    )


def runs_of(session: Session, scope_id: str, oids: Iterable[str]) -> dict[str, list[TestRunRow]]:
    """The runs of each of these commits, those whose reports were stored last first."""
    found: dict[str, list[TestRunRow]] = {}
    for chunk in chunks(sorted({bytes.fromhex(oid) for oid in oids})):
        fragment, params = in_list("c", chunk)
        sql = (
            "SELECT r.commit_oid, s.source_type, s.source_id, s.assurance, r.commit_basis, r.tests, r.failures,"
            " r.errors, r.skipped FROM pd_test_runs r JOIN pd_sources s ON s.scope_id = r.scope_id AND"
            f" s.source_key = r.source_key WHERE r.scope_id = :s AND r.commit_oid IN {fragment}"
            " ORDER BY r.commit_oid, s.recorded_us DESC, s.source_key"
        )
        for oid, kind, named, assurance, basis, *counts in session.all(sql, s=scope_id.encode(), **params):
            row = TestRunRow(
                kind.decode(), named.decode(), ASSURANCE_WORD[assurance], COMMIT_BASIS_WORD[basis], *counts
            )
            found.setdefault(oid.hex(), []).append(row)
    return found
