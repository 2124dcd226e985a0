"""Which workstreams a report shows. Pure.

Two stages, because the first needs the catalog only: :func:`catalog_matches` by kind, label and external reference,
then :func:`disposition_matches` by what the selected handoff says. Within a member any value matches, every member has
to match, an empty member matches all. Filters of observed activity do not touch workstreams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passdown.report.models import Filters


def catalog_matches(filters: Filters) -> Callable[[Mapping[str, Any]], bool]:
    """The first stage: a test of a workstream descriptor. Archived ones were left out before, unless asked for."""
    kinds = frozenset(filters.kinds)
    labels = frozenset(filters.labels)
    wanted = [(ref.kind, ref.provider, ref.external_id) for ref in filters.external_refs]

    def matches(workstream: Mapping[str, Any]) -> bool:
        if kinds and workstream["kind"] not in kinds:
            return False
        if labels and labels.isdisjoint(workstream["labels"]):
            return False
        return not wanted or _any_ref(workstream["external_refs"], wanted)

    return matches


def disposition_matches(filters: Filters, disposition: str | None) -> bool:
    """The second stage. ``disposition`` None is a workstream without handoff, which only ``no_handoff`` names."""
    return not filters.dispositions or (disposition or "no_handoff") in filters.dispositions


def _any_ref(refs: Sequence[Mapping[str, Any]], wanted: Sequence[tuple[str | None, str | None, str | None]]) -> bool:
    return any(
        kind in (None, ref["kind"])
        and provider in (None, ref["provider"])
        and external_id in (None, ref["external_id"])
        for ref in refs
        for kind, provider, external_id in wanted
    )
