"""The exact selection behind a report, and its digest. Pure.

An envelope names everything that a report was made from: project and catalog counter, filters, period, one entry per
workstream (an exact revision, or that there was none) and the observed events. It says nothing about language, time of
making or rendering, so equal selections have one ``selection_digest`` in every projection.

Heads move while they are collected. :func:`stable` compares two collections; only equal ones may be frozen.

Canonical form: NFC, timestamps in UTC microseconds where the schema has timestamps and nowhere else, entries by the
bytes of ``scope_id``, events by effective time, ``observed_at``, ``event_id`` with undated ones last, filter values by
their bytes, no repeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from passdown.kernel.canonical import canonical_bytes, canonical_bytes_of_validated, digest, digest_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import dump, validate
from passdown.report.models import SELECTION_SCHEMA
from passdown.report.port import Exact, Head
from passdown.report.report_models import SelectionEnvelope

_OCCURRED: Final = frozenset({"source_reported"})
_OBSERVED: Final = frozenset({"host_observed", "first_seen"})


def stable(first: Mapping[str, Head], second: Mapping[str, Head]) -> bool:
    """Whether two collections of heads name the same revision for every scope."""
    return {head.scope_id: _exact(head) for head in first.values()} == {
        head.scope_id: _exact(head) for head in second.values()
    }


def _exact(head: Head) -> Exact:
    return Exact(head.scope_id, head.artifact_id, head.revision)


def entry(workstream: Mapping[str, Any], head: Head | None) -> dict[str, Any]:
    """One entry: the workstream at its catalog version, with the revision selected for it or none."""
    return {
        "scope_id": workstream["scope_id"],
        "workstream_revision": workstream["version"],
        "status": "no_handoff" if head is None else "selected",
        "handoff_ref": None if head is None else handoff_ref(head),
    }


def handoff_ref(head: Head | Exact) -> dict[str, Any]:
    """The reference of a revision as reports write it."""
    return {"family": "handoff", "artifact_id": head.artifact_id, "revision": head.revision}


def by_scope(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries in the byte order of ``scope_id``."""
    return sorted(entries, key=_scope_bytes)


def latest_envelope(
    *, project_id: str, project_revision: int, filters: Mapping[str, Any], entries: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The envelope of a selection that this store made itself. Everything given is canonical already."""
    return {
        "schema": SELECTION_SCHEMA,
        "project_id": project_id,
        "project_revision": project_revision,
        "normalized_filters": dict(filters),
        "normalized_period": None,
        "selection_consistency": "optimistic_stable",
        "activity_cursor": 0,
        "baseline_selection": None,
        "end_selection": by_scope(entries),
        "activity_selection": [],
    }


def canonical_envelope(raw: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope as anybody wrote it, in canonical form.

    ``invalid_request`` for a member that is missing, unknown or of a wrong form, ``not_canonical`` for a value that has
    no canonical form, ``selection_not_resolvable`` with rule ``repeated`` for a scope or event that stands there twice.
    """
    canonical_bytes(raw)  # refuses what no canonical form exists for, before anything is coerced or compared
    value = dump(validate(SelectionEnvelope, raw))
    for member in ("baseline_selection", "end_selection"):
        if value[member] is not None:
            value[member] = by_scope(value[member])
            _refuse_repeats(member, [item["scope_id"] for item in value[member]])
    value["activity_selection"] = sorted(value["activity_selection"], key=_event_order)
    _refuse_repeats("activity_selection", [item["event_id"] for item in value["activity_selection"]])
    return value


def selection_digest(envelope: Mapping[str, Any]) -> str:
    """``sha256:`` digest over the canonical form of an envelope, however its arrays and timestamps were written."""
    return digest(canonical_envelope(envelope))


def digest_of_own(envelope: dict[str, Any]) -> str:
    """The same for an envelope of :func:`latest_envelope`, which needs no second look."""
    return digest_bytes(canonical_bytes_of_validated(envelope))


def _scope_bytes(item: Mapping[str, Any]) -> bytes:
    scope_id: str = item["scope_id"]
    return scope_id.encode()


def _event_order(event: Mapping[str, Any]) -> tuple[int, str, str, bytes]:
    # Canonical timestamps have one width, so their text sorts as the moments do.
    basis = event["time_basis"]
    effective = event["occurred_at"] if basis in _OCCURRED else event["observed_at"] if basis in _OBSERVED else None
    return (1 if effective is None else 0, effective or "", event["observed_at"], event["event_id"].encode())


def _refuse_repeats(member: str, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise PassdownError("selection_not_resolvable", field=member, rule="repeated")
