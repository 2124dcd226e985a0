"""What a token that is confined to projects may reach: every request is traced to the project that it touches.

It fails closed. An operation that names no single project, or that could reach beyond the one it names, is forbidden to
such a token, and so is a scope that belongs to no project. The refusal is the same whether the thing exists or not, so
that nothing is learnt about other projects. A scope never leaves its project, hence looking before the operation runs
is enough.

Public operations: :func:`require_within`, :class:`Places`, the table :data:`CONFINABLE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from passdown.kernel.errors import PassdownError
from passdown.storage.session import Session, Store

Named = Literal[
    "scope", "project", "project_keeping_key", "project_or_key", "project_or_scope", "project_and_fresh_scope"
]

CONFINABLE: Final[Mapping[str, Named]] = {
    "capture_source": "scope",
    "get_source": "scope",
    "list_sources": "scope",
    "prepare_handoff": "scope",
    "finalize_handoff": "scope",
    "commit_handoff": "scope",
    "hand_off_now": "scope",
    "continue_handoff": "scope",
    "get_handoff": "scope",
    "list_handoff_revisions": "scope",
    "acknowledge_handoff": "scope",
    "recover_draft": "scope",
    "diff_handoffs": "scope",
    "export_handoff": "scope",
    "list_handoff_report_revisions": "scope",
    "update_handoff_report_workstream": "scope",
    "get_handoff_report": "project",
    # A key that is taken names its project in the refusal, and so would tell of other projects.
    "update_handoff_report_project": "project_keeping_key",
    "get_handoff_report_project": "project_or_key",
    "list_handoff_report_workstreams": "project_or_scope",
    # Taking an existing scope into one's own project would open whatever was handed off in it.
    "register_handoff_report_workstream": "project_and_fresh_scope",
}
"""How a request of each operation names its project. An operation that is not here cannot be confined: the lists of
projects and of known scopes show all of them, and a new project lies in none."""


class Places:
    """Looks up the project of a scope or of a project key in the catalog of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_scope(self, scope_id: str) -> str | None:
        """The id of the project that has the scope, or None."""
        from passdown.report import catalog_store

        def work(session: Session) -> str | None:
            return catalog_store.projects_of(session, [scope_id]).get(scope_id)

        return self._store.read(work)

    def of_key(self, key: str) -> str | None:
        """The id of the project that has the key, or None."""
        from passdown.report import catalog_store

        found = self._store.read(lambda session: catalog_store.project_by_key(session, key))
        return None if found is None else str(found.descriptor["project_id"])


def require_within(places: Places | None, projects: frozenset[str], operation: str, ask: Any) -> None:
    """Refuse a request that reaches beyond ``projects`` as ``forbidden`` with rule ``project``; an empty set is all."""
    if projects and (places is None or not _is_within(places, projects, CONFINABLE.get(operation), ask)):
        raise PassdownError("forbidden", rule="project")


def _is_within(places: Places, projects: frozenset[str], named: Named | None, ask: Any) -> bool:
    if named == "scope":
        return places.of_scope(ask.scope_id) in projects
    if named == "project":
        return ask.project_id in projects
    if named == "project_keeping_key":
        return ask.project_id in projects and ask.key is None
    if named == "project_or_key":
        return (ask.project_id if ask.project_id is not None else places.of_key(ask.key)) in projects
    if named == "project_or_scope":
        of_project = ask.project_id is None or ask.project_id in projects
        return of_project and (ask.scope_id is None or places.of_scope(ask.scope_id) in projects)
    if named == "project_and_fresh_scope":
        return ask.project_id in projects and ask.scope_id is None
    return False
