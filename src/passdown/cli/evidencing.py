"""Statements with numbered evidence, and the evidence itself, as lines of a screen.

Three facts of a commit are kept apart and all of them said: *committed* (it is one), *pushed* (which remote-tracking
refs held it when it was read) and *checked* (which test reports name it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passdown.cli import screen
from passdown.cli.previewing import held

_ASSURANCE = {"caller_supplied": "said, not read", "referenced": "reference only"}


def citation_key(citation: Any) -> str:
    """What makes two citations the same on a screen."""
    from passdown.kernel.wire import dump

    return repr(sorted(dump(citation).items(), key=str))


def numbered(evidence: Sequence[Any]) -> dict[str, int]:
    """The number of each citation on the screen, from 1."""
    return {citation_key(item.citation): index for index, item in enumerate(evidence, 1)}


def marks(citations: Sequence[Any], markers: dict[str, int]) -> str:
    """The numbers behind a statement."""
    return "".join(f"[{markers[citation_key(citation)]}]" for citation in citations)


def bulleted(text: str, bullet: str, numbers: str) -> list[str]:
    """A text behind a bullet, further lines under its first word."""
    indent = len(bullet) + 3
    wrapped = screen.wrapped(f"{text} {numbers}".rstrip(), indent)
    return [f"  {bullet} {wrapped[0]}", *(" " * indent + line for line in wrapped[1:])]


def statement_lines(said: Any, markers: dict[str, int], bullet: str = "•") -> list[str]:
    """A statement with its numbers."""
    return bulleted(said.text, bullet, marks(said.citations, markers))


def checked(item: Any) -> str:
    """Which test reports name a commit, in words; the newest one is told, the others are counted."""
    if not item.checks:
        return "no test report names it"
    run = item.checks[0]
    bad = run.failures + run.errors
    ran = run.tests - run.skipped
    told = f"{bad} of {ran} tests FAILED" if bad else f"{ran} tests passed" if ran else "no test ran"
    if run.skipped:
        told += f", {run.skipped} skipped"
    said = "" if run.commit_basis == "report" else "; that it ran on this commit is said, not read"
    said = said if run.assurance == "host_read" else " (said, not read)"
    more = f" and {item.checks_total - 1} more reports" if item.checks_total > 1 else ""
    return f"checked: {told}{said}{more}"


def evidence_lines(evidence: Sequence[Any], *, verbose: bool) -> list[str]:
    """Each piece with what is known of it; twelve at most unless everything is wanted."""
    rows = []
    for index, item in enumerate(evidence, 1):
        kind = item.citation.source_ref.source_type if item.citation.kind == "source" else "handoff"
        if item.assurance == "host_read":
            word = f"read by {screen.plain(item.read_by or '')}"
        else:
            word = _ASSURANCE.get(item.assurance or "", "stored here" if item.readable else "")
        if kind == "git_commit":
            word += f", {held(item.remote_refs)}, {checked(item)}"
        mark = "readable" if item.readable else "NOT READABLE"
        rows.append((f"[{index}]", mark, _KINDS.get(kind, kind), screen.plain(item.label), word))
    shown = rows if verbose else rows[:_EVIDENCE_ROWS]
    lines = []
    for number, mark, kind, label, word in shown:
        lines += [*screen.flowing(f"{number} {kind} {label}", 2), *screen.flowing(f"{mark}, {word}", 6)]
    if len(shown) < len(rows):
        lines.append(f"  … {len(rows) - len(shown)} more with --verbose")
    return lines


_KINDS = {
    "git_commit": "commit",
    "content": "note",
    "worktree": "uncommitted files at",
    "test_report": "test report",
    "handoff": "earlier",
}
_EVIDENCE_ROWS = 12
