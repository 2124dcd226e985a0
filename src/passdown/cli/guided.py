"""The guided handoff: what git shows is numbered; a person says where the work stands and picks what that rests on.

Every question has an answer that Enter gives: the objective, the words, the disposition and the next action of last
time go on. Nothing is written here; the answers become :class:`~passdown.app.citing.Words`, and the handoff is shown
before it is committed. The end of input calls it off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from passdown.app.citing import Said, Words
from passdown.app.handing import own_words, read_git
from passdown.app.test_reports import find_reports, report_evidence
from passdown.cli import screen
from passdown.handoff.relation import commit_of
from passdown.handoff.rules import cited
from passdown.kernel.wire import dump

if TYPE_CHECKING:
    from passdown.app.desks import Desk
    from passdown.handoff.models import Disposition

MAX_OFFERED_PATHS: Final = 30
"""Changed files that are numbered; more are counted, and can be named after the command with ``--cite``."""
_LETTERS: Final[dict[str, Disposition]] = {"c": "continuable", "b": "blocked", "d": "complete"}
_NUMBERS: Final = re.compile(r"[0-9]+(?:[ ,]+[0-9]+)*")


@dataclass(frozen=True, slots=True)
class Offer:
    """Something to rest a statement on. ``name`` is how the checkout knows it; a test report has its ``item``."""

    kind: str
    name: str
    shown: str
    item: dict[str, object] | None = None


def ask(at: Desk) -> Words:
    """Ask for the words of a handoff; raises Abort where the input ends."""
    offers, more = _offers(at)
    last = at.last.content if at.last else None
    objective = _objective(at)
    _show_offers(offers, more)
    earlier = own_words(last) if last else []
    keep = _still_true(earlier)
    state = _statements("Where does it stand? One statement a line; an empty line ends.", offers)
    disposition = _disposition(last.disposition if last else "continuable")
    blocked: list[Said] = []
    if disposition == "blocked" and not (last and last.disposition == "blocked" and keep):
        blocked = _statements("What blocks it? One statement a line; an empty line ends.", offers)
    proposed = last.next_action.text if last and last.next_action else None
    next_action, is_taken_back = _next_action(proposed, offers)
    return Words(
        objective=objective,
        state=state,
        blocked=blocked,
        disposition=None if disposition == (last.disposition if last else "continuable") else disposition,
        keep=keep if earlier else None,
        next_action=next_action,
        no_next_action=is_taken_back,
        evidence=[dict(offer.item) for offer in offers if offer.item is not None],
    )


def _line(question: str) -> str:
    answer = screen.ask(question)
    if answer is None:
        raise typer.Abort
    return answer


def _offers(at: Desk) -> tuple[list[Offer], int]:
    """What can be picked, and how many changed files there are beside."""
    known = frozenset(filter(None, map(commit_of, cited(dump(at.last.content))))) if at.last else frozenset()
    facts = read_git(at.checkout, known, at.recent)
    offers = [
        Offer("commit", commit["oid"], f"{commit['oid'][:12]}  {screen.plain(commit['subject'] or '')}")
        for commit in facts.commits
    ]
    changed = [item for item in facts.worktree["entries"] if item["sha256"] is not None]
    offers += [
        Offer("changed", item["path"], f"{screen.plain(item['path'])}  ({item['status']})")
        for item in changed[:MAX_OFFERED_PATHS]
    ]
    for path in find_reports(at.checkout):
        item = report_evidence(at.checkout, path, None)
        offers.append(Offer("tests", str(item["label"]), _counts(item["descriptor"]), item))
    total = len(facts.worktree["entries"]) + facts.worktree["omitted_paths"]
    return offers, total - len(changed[:MAX_OFFERED_PATHS])


def _counts(report: Mapping[str, Any]) -> str:
    bad = report["failures"] + report["errors"]
    told = f"{report['tests']} tests, {bad} failed, {report['skipped']} skipped"
    return f"{screen.plain(report['path'])}  ({told})"


def _show_offers(offers: Sequence[Offer], more: int) -> None:
    screen.say("What git shows since then" if offers else "Git shows nothing new.")
    rows = [(str(number), offer.kind, offer.shown) for number, offer in enumerate(offers, 1)]
    screen.say(*screen.table(rows))
    if more > 0:
        screen.say(f"  … {more} more changed paths; all of them are recorded")


def _objective(at: Desk) -> str | None:
    if at.last is None:
        screen.say(*screen.flowing(f"Objective: {at.title}", 0))
        return _line("  Enter takes it, or type another: ") or None
    screen.say(*screen.flowing(f"Objective: {at.last.content.objective}", 0))
    return _line("  Enter keeps it, or type another: ") or None


def _still_true(earlier: Sequence[str]) -> list[int]:
    """Which of the earlier words go on, by index."""
    if not earlier:
        return []
    screen.say("Said last time")
    for number, text in enumerate(earlier, 1):
        screen.say(*screen.flowing(f"{number}  {text}", 2))
    while True:
        answer = _line("  Enter keeps all; numbers drop some, `-` drops all: ")
        if answer == "-":
            return []
        gone = _numbers(answer, len(earlier))
        if gone is not None:
            return [index for index in range(len(earlier)) if index + 1 not in gone]
        screen.say(f"  Numbers from 1 to {len(earlier)}, please.")


def _numbers(answer: str, last: int) -> set[int] | None:
    """The numbers in an answer; None where it is not only numbers from 1 to ``last``."""
    if not answer:
        return set()
    if not _NUMBERS.fullmatch(answer):
        return None
    found = {int(number) for number in re.findall("[0-9]{1,9}", answer)}
    return found if all(1 <= number <= last for number in found) else None


def _statements(question: str, offers: Sequence[Offer]) -> list[Said]:
    screen.say(question)
    found = []
    while text := _line("  • "):
        found.append(_resting(text, offers))
    return found


def _resting(text: str, offers: Sequence[Offer]) -> Said:
    """The statement with what the person picked for it."""
    while offers:
        picked = _numbers(_line("    rests on (numbers; Enter: HEAD and what is uncommitted): "), len(offers))
        if picked is None:
            screen.say(f"    Numbers from 1 to {len(offers)}, please.")
            continue
        chosen = [offers[number - 1] for number in sorted(picked)]
        return Said(
            text,
            cite=[offer.name for offer in chosen if offer.item is None],
            citations=[{"kind": "inline", "label": offer.name} for offer in chosen if offer.item is not None],
            only_named=True,
        )
    return Said(text)


def _disposition(before: Disposition) -> Disposition:
    letter = next(key for key, word in _LETTERS.items() if word == before)
    while True:
        answer = _line(f"(c)ontinuable, (b)locked or (d)one? [{letter}] ").lower() or letter
        if answer[:1] in _LETTERS:
            return _LETTERS[answer[:1]]


def _next_action(proposed: str | None, offers: Sequence[Offer]) -> tuple[Said | None, bool]:
    """The next action, and whether that of last time is taken back."""
    if proposed is not None:
        screen.say(*screen.flowing(f"Next action: {proposed}", 0))
        answer = _line("  Enter keeps it, `-` takes it back, or type another: ")
    else:
        answer = _line("Next action (Enter: none): ")
    if answer == "-" and proposed is not None:
        return None, True
    return (_resting(answer, offers) if answer else None), False
