"""The one error table.

Every refusal of Passdown, on every surface, is a :class:`PassdownError` whose ``code`` has exactly one row in
:data:`ERRORS`. The row gives the HTTP status, the exit code of the command line, the sentence for a person and the next
step. HTTP answers it as RFC 9457 problem details, the command line prints ``code: sentence`` and the next step on
stderr. Sentences never contain caller's text: what was wrong is told by the typed members ``field`` and ``rule`` and by
the extra members of the code (``limit``, ``actual``, ``current`` ...).

Exit codes: 2 input, 3 conflict, 4 not found or not resolvable, 5 unavailable or busy, 1 fault of ours.
"""

from __future__ import annotations

from typing import Any

from passdown.kernel.error_table import ERRORS, ErrorSpec

__all__ = ["ERRORS", "ErrorSpec", "PassdownError"]


class PassdownError(Exception):
    """A typed refusal.

    ``code`` is a key of :data:`ERRORS`. ``members`` become extra members of the problem: JSON values only, and never
    text that a caller sent. ``field`` (dotted path of the offending member) and ``rule`` (short word) are the two
    members that most refusals have.
    """

    def __init__(self, code: str, *, field: str | None = None, rule: str | None = None, **members: Any) -> None:
        self.spec = ERRORS[code]
        self.code = code
        self.members: dict[str, Any] = dict(members)
        if field is not None:
            self.members["field"] = field
        if rule is not None:
            self.members["rule"] = rule
        super().__init__(f"{code}: {self.spec.sentence}")

    def problem(self, correlation_id: str | None = None) -> dict[str, Any]:
        """RFC 9457 problem details: ``type, title, status, code, next_step`` and the typed members."""
        body: dict[str, Any] = {
            "type": self.spec.type,
            "title": self.spec.sentence,
            "status": self.spec.status,
            "code": self.code,
            "next_step": self.spec.next_step,
            "correlation_id": correlation_id,
        }
        body.update(self.members)
        return body
