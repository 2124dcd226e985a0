"""The port through which reports see handoffs: read only, in sets, and nothing else of the handoff core.

Every method is one consistent read of its own; nothing is promised across two calls, which is why a selection collects
heads twice. Contents come parsed: they were validated and made canonical when they were committed. No method writes,
takes a write lock, or costs more statements for more workstreams, revisions or evidence (per 500 items).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Head:
    """The current revision of a scope, and when it became current (microseconds UTC)."""

    scope_id: str
    artifact_id: str
    revision: int
    updated_us: int


class Exact(NamedTuple):
    """Names one revision of one scope."""

    scope_id: str
    artifact_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Revision:
    """A stored revision. ``data`` are the bytes of its content as they are stored.

    ``content`` is what they say, the JSON value of ``powercontext.handoff.v1``. It may be shared with other reports, so
    nobody changes it. Equal if everything stored is equal.
    """

    exact: Exact
    content: Mapping[str, Any] = field(compare=False)
    content_digest: str
    recorded_us: int
    data: bytes


class EvidenceFact(NamedTuple):
    """What one distinct citation of a revision resolves to, in the order of first appearance in the content.

    ``artifact_id`` is that of the cited revision where one exists. ``remote_refs``: null is "not read" or no commit.
    """

    readable: bool
    artifact_id: str | None
    assurance: str | None
    label: str | None
    read_by: str | None
    remote_refs: tuple[str, ...] | None


class Position(NamedTuple):
    """A place in the list of scopes: ``given`` scopes whose head moved at ``updated_us`` were listed already."""

    updated_us: int
    given: int


class HandoffReader(Protocol):
    """What a report may ask of the handoff core."""

    def scopes(self, after: Position | None, limit: int) -> Sequence[Head]:
        """Scopes with a committed handoff, newest head first, then ``scope_id``; at most ``limit`` behind ``after``."""
        ...

    def ungrouped(self, after: Position | None, limit: int | None) -> Sequence[Head]:
        """The same for the scopes that belong to no project; ``limit`` None lists them all."""
        ...

    def latest_many(self, scope_ids: Sequence[str]) -> Mapping[str, Head]:
        """The heads of those of the scopes that have one."""
        ...

    def get_many(self, refs: Sequence[Exact]) -> Mapping[Exact, Revision]:
        """Those of the revisions that exist."""
        ...

    def revisions(self, scope_id: str, before: int | None, limit: int) -> Sequence[Revision]:
        """At most ``limit`` revisions of a scope below ``before`` (None: from the head), newest first."""
        ...

    def check_evidence_many(self, refs: Sequence[Exact]) -> Mapping[Exact, tuple[EvidenceFact, ...]]:
        """For each revision one fact per distinct citation. A revision that cites nothing is absent."""
        ...
