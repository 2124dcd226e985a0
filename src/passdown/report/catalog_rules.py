"""What a change of the catalog is. Pure: no clock, no store, no ids of its own.

A descriptor is handled as its JSON value, which is what a catalog revision stores. A change compares the version that
its caller read with the present one, replaces the members that it names and raises the version by one; the store then
raises the catalog counter of the project in the same transaction and appends both as an immutable revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import dump
from passdown.report.models import (
    PROJECT_SCHEMA,
    UNGROUPED_ID,
    UNGROUPED_KEY,
    WORKSTREAM_SCHEMA,
)
from passdown.report.operations import (
    CreateProjectAsk,
    RegisterWorkstreamAsk,
    UpdateProjectAsk,
    UpdateWorkstreamAsk,
)

Descriptor = dict[str, Any]
"""The JSON value of a project or workstream descriptor: canonical, every member present."""


@dataclass(frozen=True, slots=True)
class ProjectState:
    """A project and its catalog counter."""

    descriptor: Descriptor
    project_revision: int


@dataclass(frozen=True, slots=True)
class WorkstreamState:
    """A workstream and the catalog counter of its project."""

    descriptor: Descriptor
    project_revision: int


def refuse_reserved_project(project_id: str) -> None:
    """The project of ungrouped scopes is read only: ``project_conflict`` with rule ``reserved``."""
    if project_id == UNGROUPED_ID:
        raise PassdownError("project_conflict", field="project_id", rule="reserved", current_version=0)


def refuse_reserved_key(key: str | None) -> None:
    """The key of the reserved project belongs to no other."""
    if key == UNGROUPED_KEY:
        raise PassdownError("project_conflict", field="key", rule="reserved")


def new_project(project_id: str, ask: CreateProjectAsk) -> Descriptor:
    """Version 1 of a project, included."""
    refuse_reserved_key(ask.key)
    return {
        "schema": PROJECT_SCHEMA,
        "project_id": project_id,
        "project_key": ask.key,
        "title": ask.title,
        "description": _none_if_blank(ask.description),
        "default_locale": ask.default_locale,
        "timezone": ask.timezone,
        "catalog_state": "included",
        "version": 1,
    }


def changed_project(current: Mapping[str, Any], ask: UpdateProjectAsk) -> Descriptor:
    """The next version of a project; ``project_conflict`` with ``current_version`` when it changed since."""
    refuse_reserved_key(ask.key)
    _compare("project_conflict", current, ask.expected_version)
    changed = _replaced(current, ask, {"key": "project_key"})
    changed["description"] = _none_if_blank(changed["description"])
    return changed


def new_workstream(scope_id: str, ask: RegisterWorkstreamAsk) -> Descriptor:
    """Version 1 of a workstream, included."""
    return {
        "schema": WORKSTREAM_SCHEMA,
        "scope_id": scope_id,
        "project_id": ask.project_id,
        "key": ask.key,
        "title": ask.title,
        "kind": ask.kind,
        "catalog_state": "included",
        "external_refs": [dump(ref) for ref in ask.external_refs],
        "labels": list(ask.labels),
        "version": 1,
    }


def changed_workstream(current: Mapping[str, Any], ask: UpdateWorkstreamAsk) -> Descriptor:
    """The next version of a workstream; ``workstream_conflict`` with ``current_version`` when it changed since."""
    _compare("workstream_conflict", current, ask.expected_version)
    return _replaced(current, ask, {})


def refuse_archived(project: Mapping[str, Any]) -> None:
    """Nothing is registered into an archived project, where it would be out of sight at once."""
    if project["catalog_state"] == "archived":
        raise PassdownError("project_conflict", field="project_id", rule="archived", current_version=project["version"])


def effective_us(now_us: int, latest_us: int | None) -> int:
    """When a change takes effect: now, but never before the change that the project had last.

    Boundaries of periods are looked up by this time, so it has to rise with the counter even if the clock goes back.
    """
    return now_us if latest_us is None else max(now_us, latest_us)


_NOT_MEMBERS = {"project_id", "scope_id", "expected_version", "clear"}


def _replaced(
    current: Mapping[str, Any], ask: UpdateProjectAsk | UpdateWorkstreamAsk, names: dict[str, str]
) -> Descriptor:
    changed = dict(current)
    for member, value in dump(ask).items():
        if member not in _NOT_MEMBERS and value is not None:
            changed[names.get(member, member)] = value
    for member in ask.clear:
        changed[member] = None
    changed["version"] = current["version"] + 1
    return changed


def _compare(code: str, current: Mapping[str, Any], expected: int) -> None:
    if current["version"] != expected:
        raise PassdownError(code, field="expected_version", rule="version", current_version=current["version"])


def _none_if_blank(value: str | None) -> str | None:
    return value if value and not value.isspace() else None
