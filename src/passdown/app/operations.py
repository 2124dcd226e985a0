"""Every operation of this version, in one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from passdown.handoff.operations import OPERATIONS as HANDOFF
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Op
from passdown.report.operations import OPERATIONS as REPORT

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (*HANDOFF, *REPORT)

DOCUMENT_OPERATIONS: Final = frozenset({"get_handoff_report"})
"""Operations that answer bytes with a media type of their own instead of a JSON model."""

SERVICE_OPERATIONS: Final = ("events", "metrics")
"""Addresses of the server that are no operations and still ask for a token; a token may name them like operations."""


def require_operations(names: Sequence[str]) -> None:
    """Refuse a name that nothing has here, as ``invalid_request`` with ``field`` ``operation``."""
    known = {op.name for op in OPERATIONS} | set(SERVICE_OPERATIONS)
    if not known.issuperset(names):
        raise PassdownError("invalid_request", field="operation", rule="unknown")
