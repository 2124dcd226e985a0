"""The tables of the handoff core: every statement that touches them, and nothing that decides.

Each function runs inside a transaction that its caller opened. Sets are read with one statement per chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from passdown.handoff.capture import SourceRecord
from passdown.handoff.codes import (
    ASSURANCE,
    ASSURANCE_WORD,
    CITATION_KIND,
    IDENTITY,
    IDENTITY_WORD,
    MATERIALIZATION,
    MATERIALIZATION_WORD,
    source_key,
)
from passdown.handoff.rules import Head, Reference
from passdown.kernel.operations import Principal
from passdown.storage.session import Param, Session, chunks, in_list


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One stored revision; ``content`` are its canonical bytes."""

    revision: int
    artifact_id: str
    base_revision: int
    content_digest: str
    content: bytes
    recorded_us: int
    recorded_by: str
    recorded_identity: str


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a view tells of a readable source, without its body."""

    assurance: str
    label: str
    read_by: str | None
    remote_refs: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A stored source; ``body`` is None in listings."""

    source_type: str
    source_id: str
    materialization: str
    assurance: str
    read_by: str | None
    media_type: str
    name: str | None
    description: str | None
    label: str
    remote_refs: tuple[str, ...] | None
    size: int
    sha256: bytes
    body: bytes | None
    after_revision: int
    key: bytes
    recorded_us: int
    recorded_by: str
    recorded_identity: str


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _refs(value: bytes | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(orjson.loads(value))


# --- heads and revisions ------------------------------------------------------------------------------------------


def head(session: Session, scope_id: str) -> Head | None:
    """The current revision of a scope, or None."""
    row = session.one("SELECT artifact_id, revision FROM pd_handoff_heads WHERE scope_id = :s", s=scope_id.encode())
    return None if row is None else Head(row[0].decode(), row[1])


def scope_of_artifact(session: Session, artifact_id: str) -> str | None:
    """The scope that an artifact belongs to, or None."""
    row = session.one("SELECT scope_id FROM pd_handoff_heads WHERE artifact_id = :a", a=artifact_id.encode())
    return None if row is None else row[0].decode()


def revision_digest(session: Session, scope_id: str, revision: int) -> str | None:
    """The content digest of one revision, or None."""
    row = session.one(
        "SELECT content_digest FROM pd_handoff_revisions WHERE scope_id = :s AND revision = :r",
        s=scope_id.encode(),
        r=revision,
    )
    return None if row is None else f"sha256:{row[0].hex()}"


_REVISION = (
    "SELECT revision, artifact_id, base_revision, content_digest, content, recorded_us, recorded_by, recorded_identity"
    " FROM pd_handoff_revisions WHERE scope_id = :s"
)


def _revision(row: Sequence[Any]) -> RevisionRow:
    return RevisionRow(
        row[0],
        row[1].decode(),
        row[2],
        f"sha256:{row[3].hex()}",
        row[4],
        row[5],
        row[6].decode(),
        IDENTITY_WORD[row[7]],
    )


def revision(session: Session, scope_id: str, number: int) -> RevisionRow | None:
    """One revision with its content, or None."""
    row = session.one(f"{_REVISION} AND revision = :r", s=scope_id.encode(), r=number)
    return None if row is None else _revision(row)


def revisions_before(session: Session, scope_id: str, before: int | None, limit: int) -> list[RevisionRow]:
    """At most ``limit`` revisions below ``before`` (None: from the head), newest first."""
    bound = "" if before is None else " AND revision < :b"
    params: dict[str, Param] = {"s": scope_id.encode(), "n": limit}
    if before is not None:
        params["b"] = before
    return [_revision(row) for row in session.all(f"{_REVISION}{bound} ORDER BY revision DESC LIMIT :n", **params)]


def append_revision(
    session: Session,
    scope_id: str,
    *,
    base: Head | None,
    new: Head,
    content: bytes,
    digest: str,
    references: Sequence[Reference],
    now_us: int,
    who: Principal,
) -> bool:
    """Append ``new`` behind ``base`` and move the head. False, with nothing written, when another writer did."""
    scope = scope_id.encode()
    if base is None:
        moved = session.insert_new(
            "INSERT INTO pd_handoff_heads (scope_id, artifact_id, revision, updated_us) VALUES (:s, :a, :r, :t)",
            s=scope,
            a=new.artifact_id.encode(),
            r=new.revision,
            t=now_us,
        )
    else:
        moved = (
            session.run(
                "UPDATE pd_handoff_heads SET revision = :r, updated_us = :t"
                " WHERE scope_id = :s AND artifact_id = :a AND revision = :b",
                r=new.revision,
                t=now_us,
                s=scope,
                a=new.artifact_id.encode(),
                b=base.revision,
            )
            == 1
        )
    if not moved:
        return False
    session.run(
        "INSERT INTO pd_handoff_revisions (scope_id, revision, artifact_id, base_revision, content_digest, content,"
        " recorded_us, recorded_by, recorded_identity) VALUES (:s, :r, :a, :b, :d, :c, :t, :w, :i)",
        s=scope,
        r=new.revision,
        a=new.artifact_id.encode(),
        b=base.revision if base else 0,
        d=bytes.fromhex(digest.removeprefix("sha256:")),
        c=content,
        t=now_us,
        w=who.principal_id.encode(),
        i=IDENTITY[who.identity],
    )
    for ordinal, ref in enumerate(references):
        session.run(
            "INSERT INTO pd_handoff_evidence (scope_id, revision, ordinal, kind, source_key, artifact_revision)"
            " VALUES (:s, :r, :o, :k, :h, :n)",
            s=scope,
            r=new.revision,
            o=ordinal,
            k=CITATION_KIND["source" if ref.key else "artifact"],
            h=ref.key,
            n=ref.revision,
        )
    return True


# --- sources ------------------------------------------------------------------------------------------------------

_FACTS = "source_key, assurance, label, read_by, remote_refs"


def source_facts(session: Session, scope_id: str, keys: Iterable[bytes]) -> dict[bytes, SourceFacts]:
    """What is known of each of these sources that exists in the scope."""
    found: dict[bytes, SourceFacts] = {}
    for chunk in chunks(sorted(set(keys))):
        fragment, params = in_list("k", chunk)
        sql = f"SELECT {_FACTS} FROM pd_sources WHERE scope_id = :s AND source_key IN {fragment}"
        for key, assurance, label, read_by, remote_refs in session.all(sql, s=scope_id.encode(), **params):
            found[key] = SourceFacts(ASSURANCE_WORD[assurance], label.decode(), _text(read_by), _refs(remote_refs))
    return found


_SOURCE = (
    "source_type, source_id, materialization, assurance, read_by, media_type, name, description, label, remote_refs,"
    " size, sha256, {body}, after_revision, source_key, recorded_us, recorded_by, recorded_identity"
)


def _source(row: Sequence[Any]) -> SourceRow:
    return SourceRow(
        row[0].decode(),
        row[1].decode(),
        MATERIALIZATION_WORD[row[2]],
        ASSURANCE_WORD[row[3]],
        _text(row[4]),
        row[5].decode(),
        _text(row[6]),
        _text(row[7]),
        row[8].decode(),
        _refs(row[9]),
        row[10],
        row[11],
        row[12],
        row[13],
        row[14],
        row[15],
        row[16].decode(),
        IDENTITY_WORD[row[17]],
    )


def source(session: Session, scope_id: str, key: bytes) -> SourceRow | None:
    """One source with its body, or None."""
    columns = _SOURCE.format(body="body")
    row = session.one(
        f"SELECT {columns} FROM pd_sources WHERE scope_id = :s AND source_key = :k", s=scope_id.encode(), k=key
    )
    return None if row is None else _source(row)


def sources_after(
    session: Session, scope_id: str, after: tuple[int, bytes], limit: int, *, exactly_revision: int | None = None
) -> list[SourceRow]:
    """Sources without body behind position ``after`` = (revision current at capture, key), in that order."""
    columns = _SOURCE.format(body="NULL")
    only = "" if exactly_revision is None else " AND after_revision = :x"
    params: dict[str, Param] = {"s": scope_id.encode(), "a": after[0], "a2": after[0], "k": after[1], "n": limit}
    if exactly_revision is not None:
        params["x"] = exactly_revision
    rows = session.all(
        f"SELECT {columns} FROM pd_sources WHERE scope_id = :s{only}"
        " AND (after_revision > :a OR (after_revision = :a2 AND source_key > :k))"
        " ORDER BY after_revision, source_key LIMIT :n",
        **params,
    )
    return [_source(row) for row in rows]


def insert_source(session: Session, item: SourceRecord, *, after_revision: int, now_us: int, who: Principal) -> bool:
    """Insert a new source; False when its identity is there already."""
    return session.insert_new(
        "INSERT INTO pd_sources (scope_id, source_key, source_type, source_id, materialization, assurance, read_by,"
        " media_type, name, description, label, remote_refs, size, sha256, body, after_revision, recorded_us,"
        " recorded_by, recorded_identity) VALUES (:scope, :key, :type, :id, :materialization, :assurance, :read_by,"
        " :media_type, :name, :description, :label, :remote_refs, :size, :sha256, :body, :after_revision, :now,"
        " :recorded_by, :identity)",
        scope=item.scope_id.encode(),
        key=source_key(item.source_type, item.source_id),
        type=item.source_type.encode(),
        id=item.source_id.encode(),
        materialization=MATERIALIZATION[item.materialization],
        assurance=ASSURANCE[item.assurance],
        read_by=None if item.read_by is None else item.read_by.encode(),
        media_type=item.media_type.encode(),
        name=None if item.name is None else item.name.encode(),
        description=None if item.description is None else item.description.encode(),
        label=item.label.encode(),
        remote_refs=None if item.remote_refs is None else orjson.dumps(item.remote_refs),
        size=len(item.body),
        sha256=item.sha256,
        body=item.body,
        after_revision=after_revision,
        now=now_us,
        recorded_by=who.principal_id.encode(),
        identity=IDENTITY[who.identity],
    )
