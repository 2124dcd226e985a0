"""Every operation of this version, in one list."""

from __future__ import annotations

from typing import Any, Final

from passdown.handoff.operations import OPERATIONS as HANDOFF
from passdown.kernel.operations import Op
from passdown.report.operations import OPERATIONS as REPORT

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (*HANDOFF, *REPORT)
