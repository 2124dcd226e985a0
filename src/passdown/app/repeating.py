"""What it means to send a request twice, for every operation that writes. Data only; it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KEYED: Final[Mapping[str, str]] = {
    "hand_off_now": "without `expected_base` a repetition after somebody else's commit would put old content on top",
    "create_handoff_report_project": "a repetition finds the key taken and cannot tell by whom",
    "register_handoff_report_workstream": "without `scope_id` every repetition makes another scope",
    "update_handoff_report_project": "a repetition finds a newer version and cannot tell whose change made it",
    "update_handoff_report_workstream": "a repetition finds a newer version and cannot tell whose change made it",
}
"""Operations that take an ``Idempotency-Key``, each with the reason why it has no identity of its own."""

NATURAL: Final[Mapping[str, str]] = {
    "capture_source": "the same source with the same content is one source",
    "prepare_handoff": "what it captures is identified by content, and the draft is computed",
    "acknowledge_handoff": "the same words of the same principal about the same handoff are one receipt",
    "recover_draft": "what it captures is identified by content, and the draft is computed",
    "commit_handoff": "base and content digest identify the revision, which is answered again",
}
"""Writes that a repetition answers as the first time by themselves; a key is neither needed nor read."""
