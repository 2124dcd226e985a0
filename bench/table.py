"""One line of what was measured, and how lines are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def row(
    name: str, value: float, unit: str, how: str, *, at_most: float | None = None, at_least: float | None = None
) -> dict[str, Any]:
    """``{name, value, unit, target, met, how}``; ``target`` and ``met`` are null for a line that only informs."""
    target, met = None, None
    if at_most is not None:
        target, met = f"<= {at_most:g}", value <= at_most
    elif at_least is not None:
        target, met = f">= {at_least:g}", value >= at_least
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "how": how}


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Aligned lines: met or not, name, value, target, how."""
    width = max((len(item["name"]) for item in rows), default=0)
    marks = {True: "✓", False: "✗", None: "·"}
    out = []
    for item in rows:
        value = f"{item['value']:>10g} {item['unit']:<6}"
        out.append(f"{marks[item['met']]} {item['name']:<{width}} {value} {item['target'] or '':<9} {item['how']}")
    return out
