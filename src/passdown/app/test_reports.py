"""Test reports of a checkout as evidence: found in the usual places, or named by a person."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from passdown.git.files import read_regular
from passdown.handoff.host import Checkout
from passdown.handoff.junit import REPORT_BYTES, read_junit
from passdown.kernel.errors import PassdownError
from passdown.kernel.text import nfc

MAX_FOUND: Final = 10
MAX_LOOKED_AT: Final = 40
FOUND_BYTES: Final = 4 * 1024 * 1024
USUAL_PLACES: Final = (
    "junit.xml",
    "report.xml",
    "test-report.xml",
    "test-results.xml",
    "junit-*.xml",
    "reports/junit*.xml",
    "test-results/*.xml",
    "test-reports/*.xml",
    "build/test-results/*/*.xml",
    "target/surefire-reports/TEST-*.xml",
)
"""Where common runners write their reports, below the root of the worktree."""


def report_evidence(checkout: Checkout, path: Path, commit: str | None) -> dict[str, Any]:
    """Inline evidence of one report. ``commit`` names what the tests ran on where the report does not say it itself.

    ``file_not_readable`` where there is no such regular file, ``test_report_refused`` and ``body_too_large`` as
    :func:`~passdown.handoff.junit.read_junit` has them, ``git_object_not_found`` for a name that is no commit here,
    ``invalid_request`` where report and person name different commits.
    """
    try:
        data = read_regular(path, REPORT_BYTES)
    except OSError:
        data = None
    if data is None:
        raise PassdownError("file_not_readable", field="tests")
    found = read_junit(data)
    named, basis = found.commit, "report" if found.commit else None
    if commit is not None:
        said = checkout.git.commit(commit).oid
        if named is not None and named != said:
            raise PassdownError("invalid_request", field="tests_commit", rule="the_report_names_another_commit")
        named, basis = said, basis or "said"
    sha256 = hashlib.sha256(data).hexdigest()
    return {
        "label": f"tests {sha256}",
        "source_type": "test_report",
        "descriptor": {
            "path": _shown(checkout, path),
            "sha256": sha256,
            "size": len(data),
            "tests": found.tests,
            "failures": found.failures,
            "errors": found.errors,
            "skipped": found.skipped,
            "failing": list(found.failing),
            "failing_total": found.failing_total,
            "declared": found.declared,
            "commit": named,
            "commit_basis": basis,
        },
    }


def _shown(checkout: Checkout, path: Path) -> str:
    """The path below the worktree; of a file elsewhere its name alone: places of a machine are nobody's evidence."""
    whole = path.resolve()
    root = checkout.git.repository.worktree
    inside = whole.relative_to(root) if whole.is_relative_to(root) else Path(whole.name)
    return nfc(str(inside).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def find_reports(checkout: Checkout) -> list[Path]:
    """At most ten reports in the usual places that can be read, in the order of the places.

    At most forty files of 4 MiB are looked at; links are not followed.
    """
    root = checkout.git.repository.worktree
    return list(islice(filter(_is_report, islice(_candidates(root), MAX_LOOKED_AT)), MAX_FOUND))


def _candidates(root: Path) -> Iterator[Path]:
    for pattern in USUAL_PLACES:
        for path in sorted(root.glob(pattern)):
            if not any(part.is_symlink() for part in (path, *path.parents) if part.is_relative_to(root)):
                yield path


def _is_report(path: Path) -> bool:
    try:
        data = read_regular(path, FOUND_BYTES)
        return data is not None and len(data) <= FOUND_BYTES and bool(read_junit(data))
    except (PassdownError, OSError):
        return False
