"""The whole check of a store: every room's own, over one snapshot.

Design: a file that SQLite finds damaged, or a schema with parts missing, is told alone, since nothing that is read from
such a store means anything. Nothing is repaired, and an older schema is not upgraded: it is refused.

Public operations: :func:`check_store`.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from passdown.app.features import REPORT_TABLES, features_off
from passdown.storage import Session, open_store
from passdown.storage.findings import Check, Findings
from passdown.storage.integrity import check_counters, check_foundation
from passdown.storage.rows import Progress
from passdown.storage.tables import REPLAYS
from passdown.storage.version import SCHEMA_HEAD


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. ``complete`` is False where damage kept further checks from being made."""

    engine: str
    schema_version: str
    checks: tuple[Check, ...]
    complete: bool

    @property
    def ok(self) -> bool:
        """Whether everything was checked and nothing is wrong."""
        return self.complete and all(check.ok for check in self.checks)


def check_store(target: Path | str, progress: Progress | None = None) -> Checked:
    """Read everything that ``target`` (as for :func:`passdown.storage.open_store`) holds and compare it.

    Raises what opening raises: ``store_not_readable`` (``missing``, ``damaged``, ``schema_behind`` …),
    ``schema_too_new``.
    """
    with closing(open_store(target, create=False, migrate=False)) as store:
        off = features_off(os.environ)
        has_report = "report" not in off
        found, sound = check_foundation(store, without=None if has_report else REPORT_TABLES)
        if sound:
            found += store.read(lambda session: _rows(session, progress, has_report=has_report))
        return Checked(store.engine, SCHEMA_HEAD, tuple(found), complete=sound)


def _rows(session: Session, progress: Progress | None, *, has_report: bool) -> list[Check]:
    from passdown.handoff import integrity as handoff
    from passdown.handoff.integrity_more import more_checks
    from passdown.identity import integrity as identity
    from passdown.report import integrity as report

    return [
        check_counters(session),
        *handoff.checks(session, progress),
        *more_checks(session, progress),
        *(report.checks(session, progress) if has_report else ()),
        identity.check(session),
        _replays(session),
    ]


def _replays(session: Session) -> Check:
    """A kept answer is stored in the transaction that made it; without one the row should not be there."""
    findings = Findings("replays", "kept answers")
    counted = session.one(f"SELECT COUNT(*) FROM {REPLAYS.name}")
    findings.examined = int(counted[0]) if counted else 0
    findings.query(
        session,
        "answer_missing",
        REPLAYS.name,
        REPLAYS.key,
        f"SELECT request_key FROM {REPLAYS.name} WHERE answer IS NULL",
    )
    return findings.check()
