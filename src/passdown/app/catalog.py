"""Finding projects and workstreams for a person: by key or exact id, one page at a time, never by a title."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import build
from passdown.report.models import ProjectDescriptor, WorkstreamDescriptor
from passdown.report.operations import (
    GET_PROJECT,
    LIST_PROJECTS,
    LIST_WORKSTREAMS,
    GetProjectAsk,
    ListProjectsAsk,
    ListWorkstreamsAsk,
)

if TYPE_CHECKING:
    from passdown.kernel.operations import Caller

PROJECT_PREFIX = "prj_"


def project(call: Caller, name: str) -> ProjectDescriptor:
    """The project with this id or key, or ``project_not_found``."""
    if name.startswith(PROJECT_PREFIX):
        try:
            return call(GET_PROJECT, build(GetProjectAsk, project_id=name)).project
        except PassdownError as error:
            if error.code != "project_not_found":
                raise
    return call(GET_PROJECT, build(GetProjectAsk, key=name)).project


def projects(call: Caller) -> Iterator[ProjectDescriptor]:
    """Every project that is not archived, the ungrouped scopes last."""
    cursor = None
    while True:
        page = call(LIST_PROJECTS, ListProjectsAsk(cursor=cursor, limit=100))
        yield from page.projects
        cursor = page.next_cursor
        if cursor is None:
            return


def workstreams(call: Caller, project_id: str) -> Iterator[WorkstreamDescriptor]:
    """Every workstream of a project that is not archived."""
    cursor = None
    while True:
        page = call(LIST_WORKSTREAMS, ListWorkstreamsAsk(project_id=project_id, cursor=cursor, limit=100))
        yield from page.workstreams
        cursor = page.next_cursor
        if cursor is None:
            return


def workstream_of(call: Caller, scope_id: str) -> WorkstreamDescriptor | None:
    """The catalog entry of a scope, None if it is in no project."""
    found = call(LIST_WORKSTREAMS, ListWorkstreamsAsk(scope_id=scope_id)).workstreams
    return found[0] if found else None


def workstream(call: Caller, name: str, project_id: str | None) -> WorkstreamDescriptor:
    """By ``KEY`` in the project, ``PROJECT/KEY``, or exact scope id; else ``workstream_not_found``."""
    owner, slash, key = name.partition("/")
    if slash:
        return _by_key(call, project(call, owner).project_id, key)
    if project_id is not None:
        found = call(LIST_WORKSTREAMS, build(ListWorkstreamsAsk, project_id=project_id, key=name)).workstreams
        if found:
            return found[0]
    exact = workstream_of(call, name)
    if exact is None:
        raise PassdownError("workstream_not_found")
    return exact


def _by_key(call: Caller, project_id: str, key: str) -> WorkstreamDescriptor:
    found = call(LIST_WORKSTREAMS, build(ListWorkstreamsAsk, project_id=project_id, key=key)).workstreams
    if not found:
        raise PassdownError("workstream_not_found")
    return found[0]


def name_of(item: WorkstreamDescriptor) -> str:
    """What a person types to choose it: its key, else its scope id."""
    return item.key or item.scope_id
