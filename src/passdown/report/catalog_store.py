"""The tables of the report's catalog: every statement that touches them, and nothing that decides.

Each function runs inside a transaction that its caller opened. Writers of one project stand in line at its counter row:
:func:`raise_counter` comes first in every change, so the counter, the keys of its workstreams and the order of its
revisions cannot race on an engine that lets several writers in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from passdown.kernel.canonical import canonical_bytes_of_validated
from passdown.kernel.errors import PassdownError
from passdown.report.catalog_rules import Descriptor, ProjectState, WorkstreamState
from passdown.storage.session import Param, Session, chunks, in_list

STATE: Final = {"included": 1, "archived": 2}

_PROJECT: Final = "SELECT descriptor, catalog_revision FROM pc_handoff_report_projects"


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _descriptor(data: bytes) -> Descriptor:
    value: Descriptor = orjson.loads(data)
    return value


# --- reading ----------------------------------------------------------------------------------------------------------


def project(session: Session, project_id: str) -> ProjectState | None:
    """One project with its counter, or None."""
    row = session.one(f"{_PROJECT} WHERE project_id = :p", p=project_id.encode())
    return None if row is None else ProjectState(_descriptor(row[0]), row[1])


def project_by_key(session: Session, key: str) -> ProjectState | None:
    """The project that has this key, or None."""
    row = session.one(f"{_PROJECT} WHERE project_key = :k", k=key.encode())
    return None if row is None else ProjectState(_descriptor(row[0]), row[1])


def projects_after(session: Session, after: bytes, limit: int, *, include_archived: bool) -> list[Descriptor]:
    """At most ``limit`` projects behind the id ``after``, in order of their ids, which is that of creation."""
    rows = session.all(
        "SELECT descriptor FROM pc_handoff_report_projects"
        " WHERE project_id > :after AND catalog_state <= :state ORDER BY project_id LIMIT :number",
        after=after,
        state=_states(include_archived),
        number=limit,
    )
    return [_descriptor(row[0]) for row in rows]


def workstream(session: Session, scope_id: str) -> WorkstreamState | None:
    """One workstream with the counter of its project, or None."""
    row = session.one(
        "SELECT w.descriptor, p.catalog_revision FROM pc_handoff_report_workstreams w"
        " JOIN pc_handoff_report_projects p ON p.project_id = w.project_id WHERE w.scope_id = :s",
        s=scope_id.encode(),
    )
    return None if row is None else WorkstreamState(_descriptor(row[0]), row[1])


def members(session: Session, project_id: str, *, include_archived: bool) -> list[Descriptor]:
    """Every workstream of a project in the byte order of ``scope_id``."""
    rows = session.all(
        "SELECT descriptor FROM pc_handoff_report_workstreams"
        " WHERE project_id = :p AND catalog_state <= :state ORDER BY scope_id",
        p=project_id.encode(),
        state=_states(include_archived),
    )
    return [_descriptor(row[0]) for row in rows]


def workstreams_after(
    session: Session, project_id: str, after: int, limit: int, *, key: str | None, include_archived: bool
) -> list[tuple[int, Descriptor]]:
    """At most ``limit`` workstreams registered behind counter ``after``, each with the counter of its registration."""
    params: dict[str, Param] = {"p": project_id.encode(), "after": after, "number": limit}
    params["state"] = _states(include_archived)
    only = ""
    if key is not None:
        only = " AND w.workstream_key = :k"
        params["k"] = key.encode()
    rows = session.all(
        "SELECT r.catalog_revision, w.descriptor FROM pc_handoff_report_workstream_revisions r"
        " JOIN pc_handoff_report_workstreams w ON w.scope_id = r.scope_id"
        " WHERE r.project_id = :p AND r.catalog_revision > :after AND r.version = 1"
        f" AND w.catalog_state <= :state{only} ORDER BY r.catalog_revision LIMIT :number",
        **params,
    )
    return [(row[0], _descriptor(row[1])) for row in rows]


def projects_of(session: Session, scope_ids: Sequence[str]) -> dict[str, str]:
    """The project of each of these scopes that belongs to one."""
    found: dict[str, str] = {}
    for chunk in chunks([scope_id.encode() for scope_id in scope_ids]):
        fragment, params = in_list("s", chunk)
        sql = f"SELECT scope_id, project_id FROM pc_handoff_report_workstreams WHERE scope_id IN {fragment}"
        found.update((row[0].decode(), row[1].decode()) for row in session.all(sql, **params))
    return found


def key_holder(session: Session, project_id: str, key: str) -> str | None:
    """The scope whose workstream has this key in the project, or None."""
    row = session.one(
        "SELECT scope_id FROM pc_handoff_report_workstreams WHERE project_id = :p AND workstream_key = :k",
        p=project_id.encode(),
        k=key.encode(),
    )
    return None if row is None else row[0].decode()


def latest_effective(session: Session, project_id: str) -> int | None:
    """When the latest change of the project or of one of its workstreams took effect; None for a new project."""
    latest = None
    for table, order in (
        ("pc_handoff_report_project_revisions", "version"),
        ("pc_handoff_report_workstream_revisions", "catalog_revision"),
    ):
        row = session.one(
            f"SELECT effective_us FROM {table} WHERE project_id = :p ORDER BY {order} DESC LIMIT 1",
            p=project_id.encode(),
        )
        if row is not None:
            latest = row[0] if latest is None else max(latest, row[0])
    return latest


def _states(include_archived: bool) -> int:
    return STATE["archived"] if include_archived else STATE["included"]


# --- writing ----------------------------------------------------------------------------------------------------------


def raise_counter(session: Session, project_id: str) -> int | None:
    """Raise the catalog counter by one and return it; None when there is no such project."""
    changed = session.run(
        "UPDATE pc_handoff_report_projects SET catalog_revision = catalog_revision + 1 WHERE project_id = :p",
        p=project_id.encode(),
    )
    if changed != 1:
        return None
    row = session.one(
        "SELECT catalog_revision FROM pc_handoff_report_projects WHERE project_id = :p", p=project_id.encode()
    )
    return None if row is None else int(row[0])


def insert_project(session: Session, value: Descriptor, *, now_us: int) -> bool:
    """Insert a new project with counter 1 and its first revision; False when its key is taken."""
    data = canonical_bytes_of_validated(value)
    inserted = session.insert_new(
        "INSERT INTO pc_handoff_report_projects (project_id, project_key, version, catalog_revision, catalog_state,"
        " created_us, descriptor) VALUES (:p, :k, :v, 1, :state, :t, :d)",
        p=value["project_id"].encode(),
        k=value["project_key"].encode(),
        v=value["version"],
        state=STATE[value["catalog_state"]],
        t=now_us,
        d=data,
    )
    if inserted:
        _append_project(session, value, data, 1, now_us)
    return inserted


def replace_project(session: Session, value: Descriptor, *, counter: int, now_us: int) -> None:
    """Store the next version of a project, if its present one is the one before, and append it as a revision."""
    data = canonical_bytes_of_validated(value)
    changed = session.run(
        "UPDATE pc_handoff_report_projects SET project_key = :k, version = :v, catalog_state = :state, descriptor = :d"
        " WHERE project_id = :p AND version = :expected",
        k=value["project_key"].encode(),
        v=value["version"],
        state=STATE[value["catalog_state"]],
        d=data,
        p=value["project_id"].encode(),
        expected=value["version"] - 1,
    )
    _require_one(changed)
    _append_project(session, value, data, counter, now_us)


def insert_workstream(session: Session, value: Descriptor, *, counter: int, now_us: int) -> bool:
    """Insert a new workstream with its first revision; False when the scope or the key is there already."""
    data = canonical_bytes_of_validated(value)
    inserted = session.insert_new(
        "INSERT INTO pc_handoff_report_workstreams (scope_id, project_id, workstream_key, version, catalog_state,"
        " created_us, descriptor) VALUES (:s, :p, :k, :v, :state, :t, :d)",
        s=value["scope_id"].encode(),
        p=value["project_id"].encode(),
        k=_bytes(value["key"]),
        v=value["version"],
        state=STATE[value["catalog_state"]],
        t=now_us,
        d=data,
    )
    if inserted:
        _append_workstream(session, value, data, counter, now_us)
    return inserted


def replace_workstream(session: Session, value: Descriptor, *, counter: int, now_us: int) -> None:
    """Store the next version of a workstream, if its present one is the one before, and append it as a revision."""
    data = canonical_bytes_of_validated(value)
    changed = session.run(
        "UPDATE pc_handoff_report_workstreams SET workstream_key = :k, version = :v, catalog_state = :state,"
        " descriptor = :d WHERE scope_id = :s AND version = :expected",
        k=_bytes(value["key"]),
        v=value["version"],
        state=STATE[value["catalog_state"]],
        d=data,
        s=value["scope_id"].encode(),
        expected=value["version"] - 1,
    )
    _require_one(changed)
    _append_workstream(session, value, data, counter, now_us)


def _require_one(changed: int) -> None:
    # The caller compared the version behind the counter row of the same transaction: nobody can have moved it since.
    if changed != 1:
        raise PassdownError("internal_error", rule="version_moved")


def _append_project(session: Session, value: Descriptor, data: bytes, counter: int, now_us: int) -> None:
    session.run(
        "INSERT INTO pc_handoff_report_project_revisions (project_id, version, catalog_revision, effective_us,"
        " descriptor) VALUES (:p, :v, :c, :t, :d)",
        p=value["project_id"].encode(),
        v=value["version"],
        c=counter,
        t=now_us,
        d=data,
    )


def _append_workstream(session: Session, value: Descriptor, data: bytes, counter: int, now_us: int) -> None:
    params: dict[str, Any] = {
        "s": value["scope_id"].encode(),
        "v": value["version"],
        "p": value["project_id"].encode(),
        "c": counter,
        "t": now_us,
        "d": data,
    }
    session.run(
        "INSERT INTO pc_handoff_report_workstream_revisions (scope_id, version, project_id, catalog_revision,"
        " effective_us, descriptor) VALUES (:s, :v, :p, :c, :t, :d)",
        **params,
    )
