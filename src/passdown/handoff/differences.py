"""What differs between two handoffs. Pure.

Statements are matched one to one, the most certain first: equal in text and in the set of citations; then equal in the
set of citations; then equal in text. What is left on either side was added or removed. Among equal candidates the
earlier one is taken. The order of citations within a statement says nothing and is ignored.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from passdown.handoff.rules import identity

Value = Mapping[str, Any]


def differences(before: Value | None, after: Value) -> dict[str, Any]:
    """The members of ``DiffHandoffsAnswer`` about content; ``before`` None is a handoff that says nothing."""
    state = _statements(before["state"] if before else (), after["state"])
    omissions = _omissions(before["omissions"] if before else (), after["omissions"])
    found: dict[str, Any] = {
        "objective": _text(before["objective"] if before else None, after["objective"]),
        "disposition": _text(before["disposition"] if before else None, after["disposition"]),
        "next_action": _next_action(before["next_action"] if before else None, after["next_action"]),
        "state": state,
        "omissions": omissions,
    }
    kinds = ("same", "moved", "text_changed", "citations_changed", "added", "removed")
    counts = {kind: sum(item["kind"] == kind for item in state) for kind in kinds}
    identical = (
        not found["objective"]["changed"]
        and not found["disposition"]["changed"]
        and found["next_action"]["kind"] in ("same", "none")
        and counts["same"] == len(state)
        and all(item["kind"] == "same" for item in omissions)
    )
    return {**found, "counts": counts, "identical": identical}


def _text(before: str | None, after: str) -> dict[str, Any]:
    return {"changed": before != after, "before": before, "after": after}


def _cited(statement: Value) -> Hashable:
    return frozenset(identity(citation) for citation in statement["citations"])


def _both(statement: Value) -> Hashable:
    return (statement["text"], _cited(statement))


def _said(statement: Value) -> Hashable:
    return str(statement["text"])


def _statements(before: Sequence[Value], after: Sequence[Value]) -> list[dict[str, Any]]:
    pairs: dict[int, tuple[int, str]] = {}
    left = dict(enumerate(before))
    rules: tuple[tuple[Callable[[Value], Hashable], str], ...] = (
        (_both, "same"),
        (_cited, "text_changed"),
        (_said, "citations_changed"),
    )
    for key, kind in rules:
        waiting: dict[Hashable, list[int]] = {}
        for index in left:
            waiting.setdefault(key(before[index]), []).append(index)
        for index, statement in enumerate(after):
            same = waiting.get(key(statement)) if index not in pairs else None
            if same:
                pairs[index] = (same.pop(0), kind)
                del left[pairs[index][0]]
    moved = _moved([(index, old) for index, (old, _) in sorted(pairs.items())])
    shown = []
    for index, statement in enumerate(after):
        old, kind = pairs.get(index, (None, "added"))
        if kind == "same" and index in moved:
            kind = "moved"
        shown.append(_change(kind, old, index, None if old is None else before[old], statement))
    for old in sorted(left):
        shown.insert(_where(shown, old), _change("removed", old, None, before[old], None))
    return shown


def _moved(pairs: Sequence[tuple[int, int]]) -> set[int]:
    """The places of ``after`` that stand outside of the longest run that kept its order; the earliest such run."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int | None] = []
    for place, (_, old) in enumerate(pairs):
        at = bisect_left(tails, old)
        previous.append(ends[at - 1] if at else None)
        if at == len(tails):
            tails.append(old)
            ends.append(place)
        else:
            tails[at], ends[at] = old, place
    kept: set[int] = set()
    place_now: int | None = ends[-1] if ends else None
    while place_now is not None:
        kept.add(pairs[place_now][0])
        place_now = previous[place_now]
    return {index for index, _ in pairs} - kept


def _where(shown: Sequence[Value], old: int) -> int:
    """Behind the last line that shows an earlier statement of the older side."""
    places = [place for place, item in enumerate(shown) if item["before_index"] is not None]
    earlier = [place for place in places if shown[place]["before_index"] < old]
    return earlier[-1] + 1 if earlier else 0


def _change(kind: str, old: int | None, new: int | None, before: Value | None, after: Value | None) -> dict[str, Any]:
    return {"kind": kind, "before_index": old, "after_index": new, "before": before, "after": after}


def _next_action(before: Value | None, after: Value | None) -> dict[str, Any]:
    if before is None or after is None:
        kind = "none" if before is after else "added" if before is None else "removed"
    elif _both(before) == _both(after):
        kind = "same"
    elif _said(before) == _said(after):
        kind = "citations_changed"
    else:
        kind = "text_changed" if _cited(before) == _cited(after) else "replaced"
    return {"kind": kind, "before": before, "after": after}


def _omissions(before: Sequence[Value], after: Sequence[Value]) -> list[dict[str, Any]]:
    """Omissions are equal or not: with their citation they are one sentence."""

    def key(omission: Value) -> Hashable:
        return (omission["text"], None if omission["citation"] is None else identity(omission["citation"]))

    left = list(before)
    shown = []
    for omission in after:
        same = next((item for item in left if key(item) == key(omission)), None)
        if same is not None:
            left.remove(same)
        shown.append({"kind": "added" if same is None else "same", "omission": omission})
    return shown + [{"kind": "removed", "omission": omission} for omission in left]
