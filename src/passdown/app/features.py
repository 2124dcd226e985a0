"""Which features of this installation are switched off: ``PASSDOWN_FEATURES_OFF``, names with commas between them.

Only ``report`` can be: then there is no operation, route, worker or command of the report room, nothing reads or writes
its tables, and they may be dropped. Handoffs, sources and tokens stay as they are. A name that is none is refused, so
that a slip of the pen does not leave on what somebody meant to switch off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Op

FEATURES: Final = frozenset({"report"})
REPORT_MARK: Final = "handoff_report"
"""Every operation of the report room, and no other, has this in its wire name."""
REPORT_TABLES: Final = "pc_handoff_report_"
"""Every table and index of the report room, and no other, begins with this."""


def features_off(environment: Mapping[str, str]) -> frozenset[str]:
    """The features that are off, or ``invalid_request`` for a name that no feature has."""
    named = (name.strip() for name in environment.get("PASSDOWN_FEATURES_OFF", "").split(","))
    found = frozenset(name for name in named if name)
    if not found <= FEATURES:
        raise PassdownError("invalid_request", field="PASSDOWN_FEATURES_OFF", rule="unknown_feature")
    return found


def operations_on(operations: Sequence[Op[Any, Any]], off: frozenset[str]) -> tuple[Op[Any, Any], ...]:
    """The operations that are there."""
    return tuple(op for op in operations if not ("report" in off and REPORT_MARK in op.name))


def require_on(name: str, off: frozenset[str]) -> None:
    """Refuse an operation of a feature that is off, as ``feature_off``."""
    if "report" in off and REPORT_MARK in name:
        raise PassdownError("feature_off", feature="report")
