"""Whether the catalog of the report is one: descriptors, their histories, the counters of the projects.

Design: chains and counters are asked in SQL, descriptors are read one by one in bounded memory. A change of a project
or of one of its workstreams raises the counter of the project by one and appends one revision with it, so both
histories of a project together hold each number once, from 1 to the counter. Nothing is repaired.

Codes of ``projects`` and ``workstreams``: ``version_gap``, ``version_differs`` (not the last revision),
``descriptor_differs`` (not that of its last revision, or its columns say otherwise), ``descriptor_invalid``,
``revision_without_descriptor``, ``project_missing``, ``project_differs``, ``catalog_counter_differs``,
``catalog_gap``.

Public operation: :func:`checks`.
"""

from __future__ import annotations

from typing import Any

from passdown.kernel.canonical import canonical_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.strict_json import parse_json
from passdown.kernel.wire import Wire, dump, validate
from passdown.report.catalog_store import STATE
from passdown.report.models import ProjectDescriptor, WorkstreamDescriptor
from passdown.storage.findings import Check, Findings
from passdown.storage.rows import Progress, batches
from passdown.storage.session import Session
from passdown.storage.tables import PROJECT_REVISIONS, PROJECTS, WORKSTREAM_REVISIONS, WORKSTREAMS, Table

_COUNTED = (
    "SELECT project_id, MIN(catalog_revision) AS lowest, MAX(catalog_revision) AS highest, COUNT(*) AS amount,"
    " COUNT(DISTINCT catalog_revision) AS different"
    f" FROM (SELECT project_id, catalog_revision FROM {PROJECT_REVISIONS.name}"
    f" UNION ALL SELECT project_id, catalog_revision FROM {WORKSTREAM_REVISIONS.name}) u GROUP BY project_id"
)


def checks(session: Session, progress: Progress | None = None) -> list[Check]:
    """The two checks of the catalog."""
    return [_projects(session, progress), _workstreams(session, progress)]


def _projects(session: Session, progress: Progress | None) -> Check:
    findings = Findings("projects", "descriptors")
    _chain(session, findings, PROJECTS, PROJECT_REVISIONS)
    project = ("project_id",)
    findings.query(
        session,
        "catalog_counter_differs",
        PROJECTS.name,
        project,
        f"SELECT p.project_id FROM {PROJECTS.name} p LEFT JOIN ({_COUNTED}) c ON c.project_id = p.project_id"
        " WHERE c.highest IS NULL OR c.highest <> p.catalog_revision",
    )
    findings.query(
        session,
        "catalog_gap",
        PROJECTS.name,
        project,
        f"SELECT c.project_id FROM ({_COUNTED}) c WHERE c.lowest <> 1 OR c.highest <> c.amount"
        " OR c.different <> c.amount",
    )
    columns = ("project_id", "version", "descriptor", "project_key", "catalog_state")
    _descriptors(session, findings, PROJECTS, columns, ProjectDescriptor, progress)
    _descriptors(session, findings, PROJECT_REVISIONS, columns[:3], ProjectDescriptor, progress)
    return findings.check()


def _workstreams(session: Session, progress: Progress | None) -> Check:
    findings = Findings("workstreams", "descriptors")
    _chain(session, findings, WORKSTREAMS, WORKSTREAM_REVISIONS)
    findings.query(
        session,
        "project_missing",
        WORKSTREAMS.name,
        WORKSTREAMS.key,
        f"SELECT w.scope_id FROM {WORKSTREAMS.name} w LEFT JOIN {PROJECTS.name} p ON p.project_id = w.project_id"
        " WHERE p.project_id IS NULL",
    )
    findings.query(
        session,
        "project_differs",
        WORKSTREAM_REVISIONS.name,
        WORKSTREAM_REVISIONS.key,
        f"SELECT r.scope_id, r.version FROM {WORKSTREAM_REVISIONS.name} r JOIN {WORKSTREAMS.name} w"
        " ON w.scope_id = r.scope_id WHERE w.project_id <> r.project_id",
    )
    columns = ("scope_id", "version", "descriptor", "project_id", "workstream_key", "catalog_state")
    _descriptors(session, findings, WORKSTREAMS, columns, WorkstreamDescriptor, progress)
    _descriptors(session, findings, WORKSTREAM_REVISIONS, columns[:4], WorkstreamDescriptor, progress)
    return findings.check()


def _chain(session: Session, findings: Findings, present: Table, history: Table) -> None:
    """Versions from 1 without gap, and the present descriptor is that of the last one."""
    (key,) = present.key
    last = (
        f"SELECT {key}, MIN(version) AS lowest, MAX(version) AS highest, COUNT(*) AS amount"
        f" FROM {history.name} GROUP BY {key}"
    )
    findings.query(
        session,
        "version_gap",
        history.name,
        (key,),
        f"SELECT r.{key} FROM ({last}) r WHERE r.lowest <> 1 OR r.highest <> r.amount",
    )
    findings.query(
        session,
        "version_differs",
        present.name,
        (key,),
        f"SELECT d.{key} FROM {present.name} d LEFT JOIN ({last}) r ON r.{key} = d.{key}"
        " WHERE r.highest IS NULL OR r.highest <> d.version",
    )
    findings.query(
        session,
        "revision_without_descriptor",
        history.name,
        (key,),
        f"SELECT r.{key} FROM ({last}) r LEFT JOIN {present.name} d ON d.{key} = r.{key} WHERE d.{key} IS NULL",
    )
    findings.query(
        session,
        "descriptor_differs",
        present.name,
        (key,),
        f"SELECT d.{key} FROM {present.name} d JOIN {history.name} r ON r.{key} = d.{key} AND r.version = d.version"
        " WHERE r.descriptor <> d.descriptor",
    )


def _descriptors(
    session: Session,
    findings: Findings,
    table: Table,
    columns: tuple[str, ...],
    model: type[Wire],
    progress: Progress | None,
) -> None:
    """Every descriptor is canonical, valid, and says what the columns beside it say."""
    done = 0
    for batch in batches(session, table, columns):
        for row in batch:
            beside = dict(zip(columns, row, strict=True))
            place = {name: beside[name] for name in table.key}
            data = beside.pop("descriptor")
            try:
                value: Any = parse_json(data, max_bytes=len(data))
                sound = canonical_bytes(value) == data and dump(validate(model, value)) == value
            except PassdownError:
                sound = False
            if not sound:
                findings.add("descriptor_invalid", table.name, **place)
            elif any(_said(value, name) != stored for name, stored in beside.items()):
                findings.add("descriptor_differs", table.name, **place)
        done += len(batch)
        if progress is not None:
            progress(table.name, done)
    findings.examined += done


def _said(descriptor: dict[str, Any], column: str) -> object:
    """What the descriptor says, as its column stores it."""
    if column == "catalog_state":
        return STATE[descriptor["catalog_state"]]
    value = descriptor["key" if column == "workstream_key" else column]
    return value.encode() if isinstance(value, str) else value
