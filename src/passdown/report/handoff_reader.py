"""The port :class:`~passdown.report.port.HandoffReader` over the tables of this store.

The only file of the room that knows the tables of the handoff core. It reads sets with one statement per 500 items,
each method in a snapshot of its own, and never writes. Rows are read anew by every call; only what equal rows say is
kept between calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from passdown.handoff.codes import ASSURANCE_WORD, CITATION_KIND
from passdown.report.fragments import Fragments
from passdown.report.port import EvidenceFact, Exact, Head, Position, Revision
from passdown.storage.session import Session, Store, chunks, in_list, in_pairs, table_of_pairs

_SOURCE: Final = CITATION_KIND["source"]

_HEAD: Final = "h.scope_id, h.artifact_id, h.revision, h.updated_us"
_REVISION: Final = "scope_id, artifact_id, revision, content, content_digest, recorded_us"
_EVIDENCE: Final = (
    "SELECT e.scope_id, e.revision, e.kind, s.source_key, s.assurance, s.label, s.read_by, s.remote_refs, r.artifact_id"
    " FROM {asked} a JOIN pd_handoff_evidence e ON e.scope_id = a.scope_id AND e.revision = a.revision"
    " LEFT JOIN pd_sources s ON s.scope_id = e.scope_id AND s.source_key = e.source_key"
    " LEFT JOIN pd_handoff_revisions r ON r.scope_id = e.scope_id AND r.revision = e.artifact_revision"
    " ORDER BY e.scope_id, e.revision, e.ordinal"
)
# Bytes of memory for each stored byte that is kept both as it is and as what it says, and for a kept row by itself.
_READ: Final = 8
_ROW: Final = 800
_UNGROUPED: Final = "NOT EXISTS (SELECT 1 FROM pc_handoff_report_workstreams w WHERE w.scope_id = h.scope_id)"


def _head(row: Sequence[Any]) -> Head:
    return Head(row[0].decode(), row[1].decode(), row[2], row[3])


def _content(data: bytes) -> Mapping[str, Any]:
    content: Mapping[str, Any] = orjson.loads(data)
    return content


def _facts(rows: tuple[Sequence[Any], ...]) -> tuple[EvidenceFact, ...]:
    return tuple(map(_fact, rows))


def _fact(row: Sequence[Any]) -> EvidenceFact:
    kind, source_key, assurance, label, read_by, remote_refs, artifact_id = row
    if kind != _SOURCE:
        found = None if artifact_id is None else artifact_id.decode()
        return EvidenceFact(found is not None, found, None, None, None, None)
    if source_key is None:
        return EvidenceFact(False, None, None, None, None, None)
    return EvidenceFact(
        True,
        None,
        ASSURANCE_WORD[assurance],
        label.decode(),
        None if read_by is None else read_by.decode(),
        None if remote_refs is None else tuple(orjson.loads(remote_refs)),
    )


class StoreHandoffReader:
    """Reads handoffs from ``store``. Safe to share between threads. ``fragments`` keeps what rows say."""

    def __init__(self, store: Store, fragments: Fragments | None = None) -> None:
        self._store = store
        self._fragments = fragments or Fragments(entries=0)

    def scopes(self, after: Position | None, limit: int) -> Sequence[Head]:
        """See :meth:`passdown.report.port.HandoffReader.scopes`."""
        return self._store.read(lambda session: _heads(session, [], after, limit))

    def ungrouped(self, after: Position | None, limit: int | None) -> Sequence[Head]:
        """See :meth:`passdown.report.port.HandoffReader.ungrouped`."""
        return self._store.read(lambda session: _heads(session, [_UNGROUPED], after, limit))

    def latest_many(self, scope_ids: Sequence[str]) -> Mapping[str, Head]:
        """See :meth:`passdown.report.port.HandoffReader.latest_many`."""

        def work(session: Session) -> dict[str, Head]:
            found: dict[str, Head] = {}
            for chunk in chunks([scope_id.encode() for scope_id in scope_ids]):
                fragment, params = in_list("s", chunk)
                rows = session.all(f"SELECT {_HEAD} FROM pd_handoff_heads h WHERE h.scope_id IN {fragment}", **params)
                found.update((head.scope_id, head) for head in map(_head, rows))
            return found

        return self._store.read(work)

    def get_many(self, refs: Sequence[Exact]) -> Mapping[Exact, Revision]:
        """See :meth:`passdown.report.port.HandoffReader.get_many`."""

        def work(session: Session) -> dict[Exact, Revision]:
            found: dict[Exact, Revision] = {}
            for chunk in chunks(refs):
                pairs, params = in_pairs("scope_id", "revision", "p", _pairs(chunk))
                rows = session.all(f"SELECT {_REVISION} FROM pd_handoff_revisions WHERE {pairs}", **params)
                found.update((revision.exact, revision) for revision in map(self._revision, rows))
            return found

        found = self._store.read(work)
        return {ref: found[ref] for ref in refs if ref in found}

    def revisions(self, scope_id: str, before: int | None, limit: int) -> Sequence[Revision]:
        """See :meth:`passdown.report.port.HandoffReader.revisions`."""
        bound = "" if before is None else " AND revision < :before"
        params = {} if before is None else {"before": before}
        sql = (
            f"SELECT {_REVISION} FROM pd_handoff_revisions WHERE scope_id = :scope{bound}"
            " ORDER BY revision DESC LIMIT :number"
        )
        rows = self._store.read(lambda session: session.all(sql, scope=scope_id.encode(), number=limit, **params))
        return [self._revision(row) for row in rows]

    def check_evidence_many(self, refs: Sequence[Exact]) -> Mapping[Exact, tuple[EvidenceFact, ...]]:
        """See :meth:`passdown.report.port.HandoffReader.check_evidence_many`."""
        exact = {(ref.scope_id.encode(), ref.revision): ref for ref in refs}

        def work(session: Session) -> dict[Exact, list[Sequence[Any]]]:
            found: dict[Exact, list[Sequence[Any]]] = {}
            for chunk in chunks(refs):
                asked, params = table_of_pairs("scope_id", "revision", "p", _pairs(chunk))
                for row in session.all(_EVIDENCE.format(asked=asked), **params):
                    found.setdefault(exact[row[0], row[1]], []).append(row[2:])
            return found

        return {ref: self._facts(tuple(rows)) for ref, rows in self._store.read(work).items()}

    def _revision(self, row: Sequence[Any]) -> Revision:
        exact = Exact(row[0].decode(), row[1].decode(), row[2])
        data = row[3]
        content = self._fragments.of(_content, data, weigh=lambda _: _READ * len(data))
        return Revision(exact, content, f"sha256:{row[4].hex()}", row[5], data)

    def _facts(self, rows: tuple[Sequence[Any], ...]) -> tuple[EvidenceFact, ...]:
        return self._fragments.of(_facts, rows, weigh=lambda _: _weight(rows))


def _weight(rows: Sequence[Sequence[Any]]) -> int:
    return sum(_ROW + sum(_READ * len(value) for value in row if isinstance(value, bytes)) for row in rows)


def _pairs(refs: Sequence[Exact]) -> list[tuple[int | bytes, int | bytes]]:
    return [(ref.scope_id.encode(), ref.revision) for ref in refs]


def _heads(session: Session, conditions: list[str], after: Position | None, limit: int | None) -> list[Head]:
    """Scopes by head, newest first. Those of the position's own microsecond are counted off, not compared.

    A cursor has no room for a long ``scope_id``, a count of equals always fits.
    """
    params: dict[str, int] = {}
    where = list(conditions)
    if after is not None:
        where.append("h.updated_us <= :updated")
        params["updated"] = after.updated_us
    sql = f"SELECT {_HEAD} FROM pd_handoff_heads h"
    if where:
        sql += " WHERE " + " AND ".join(where)
    sql += " ORDER BY h.updated_us DESC, h.scope_id"
    if limit is not None:
        sql += " LIMIT :number OFFSET :given"
        params |= {"number": limit, "given": after.given if after else 0}
    return [_head(row) for row in session.all(sql, **params)]
