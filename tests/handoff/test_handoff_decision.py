"""The decision of a commit, explored over every small history against an oracle that only knows the history."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from passdown.handoff.rules import CommitDecision, CommitFacts, Head, decide_commit

DIGESTS = ("a", "b", "c")
OWN, FOREIGN = "hnd_own", "hnd_foreign"
BASES = [None, *(Head(artifact, revision) for artifact in (OWN, FOREIGN) for revision in range(1, 7))]
Request = tuple[Head | None, str]


def histories(length: int) -> list[tuple[str, ...]]:
    return [found for size in range(length + 1) for found in product(DIGESTS, repeat=size)]


def facts_of(history: tuple[str, ...], base: Head | None) -> CommitFacts:
    """What the store reads: the head, and the digests of revision ``base`` and the one behind it."""

    def digest(revision: int) -> str | None:
        return history[revision - 1] if 1 <= revision <= len(history) else None

    at = base.revision if base else 0
    return CommitFacts(Head(OWN, len(history)) if history else None, digest(at) if base else None, digest(at + 1))


def oracle(history: tuple[str, ...], base: Head | None, digest: str) -> CommitDecision:
    """In words: the base is a position in this history or it is nothing at all."""
    positions = {None: 0} | {Head(OWN, number): number for number in range(1, len(history) + 1)}
    position = positions.get(base)
    conflict = CommitDecision("conflict", len(history))
    if position is None:
        return conflict
    behind = history[position:]
    if position > 0 and history[position - 1] == digest:
        return CommitDecision("unchanged", position)
    if not behind:
        return CommitDecision("append", position + 1)
    return CommitDecision("replayed", position + 1) if behind[0] == digest else conflict


def test_the_decision_is_the_oracles_for_every_history_base_and_digest() -> None:
    """Histories up to five revisions over three contents, even those that no sequence of commits can make."""
    cases = 0
    for history in histories(5):
        for base, digest in product(BASES, (*DIGESTS, "new")):
            facts = facts_of(history, base)
            assert decide_commit(base, digest, facts) == oracle(history, base, digest), (history, base, digest)
            cases += 1
    assert cases == 364 * 13 * 4


def reachable(depth: int) -> dict[tuple[str, ...], dict[Request, int]]:
    """Every history that commits can make, with one log of which request made which revision."""
    found: dict[tuple[str, ...], dict[Request, int]] = {(): {}}
    frontier = list(found)
    for _ in range(depth):
        following = []
        for history in frontier:
            for base, digest in product(BASES, DIGESTS):
                decision = decide_commit(base, digest, facts_of(history, base))
                if decision.kind != "append":
                    continue
                grown = (*history, digest)
                if grown not in found:
                    found[grown] = found[history] | {(base, digest): decision.revision}
                    following.append(grown)
        frontier = following
    return found


@pytest.fixture(scope="module")
def explored() -> dict[tuple[str, ...], dict[Request, int]]:
    return reachable(5)


def test_no_two_neighbours_of_a_reachable_history_are_equal(
    explored: dict[tuple[str, ...], dict[Request, int]],
) -> None:
    """Three contents, no repetition: 1 + 3 + 6 + 12 + 24 + 48 histories."""
    assert len(explored) == 94
    for history in explored:
        assert all(one != other for one, other in pairwise(history))


def test_whoever_asks_again_is_answered_with_the_first_revision_for_ever(
    explored: dict[tuple[str, ...], dict[Request, int]],
) -> None:
    for history, log in explored.items():
        for (base, digest), revision in log.items():
            assert decide_commit(base, digest, facts_of(history, base)) == CommitDecision("replayed", revision)


def test_from_one_base_at_most_one_content_ever_wins(explored: dict[tuple[str, ...], dict[Request, int]]) -> None:
    for history, log in explored.items():
        assert len({base for base, _ in log}) == len(log) == len(history)
        for base in BASES:
            decisions = [decide_commit(base, digest, facts_of(history, base)) for digest in (*DIGESTS, "new")]
            behind = {item.revision for item in decisions if item.kind in ("append", "replayed")}
            assert len(behind) <= 1


def test_only_the_head_may_be_appended_to(explored: dict[tuple[str, ...], dict[Request, int]]) -> None:
    for history in explored:
        head = Head(OWN, len(history)) if history else None
        for base in BASES:
            decision = decide_commit(base, "new", facts_of(history, base))
            assert (decision.kind == "append") is (base == head)
            assert decision.revision == len(history) + (base == head)
