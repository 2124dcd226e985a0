"""The handlers of the catalog: they open the transaction, ask the rules, and store what the rules decide."""

from __future__ import annotations

from collections.abc import Sequence

from passdown.handoff.models import handoff_ref
from passdown.kernel.clock import Clock
from passdown.kernel.cursors import pack, unpack
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import IdSource
from passdown.kernel.operations import Handler, Principal
from passdown.kernel.timestamps import format_timestamp
from passdown.kernel.wire import validate
from passdown.report import catalog_rules as rules
from passdown.report import catalog_store as tables
from passdown.report.models import UNGROUPED_ID, UNGROUPED_KEY, ProjectDescriptor, WorkstreamDescriptor
from passdown.report.operations import (
    CreateProjectAsk,
    GetProjectAsk,
    KnownScope,
    ListKnownScopesAnswer,
    ListKnownScopesAsk,
    ListProjectsAnswer,
    ListProjectsAsk,
    ListWorkstreamsAnswer,
    ListWorkstreamsAsk,
    ProjectAnswer,
    RegisterWorkstreamAsk,
    UpdateProjectAsk,
    UpdateWorkstreamAsk,
    WorkstreamAnswer,
)
from passdown.report.port import HandoffReader, Head, Position
from passdown.report.ungrouped import ungrouped_project, ungrouped_workstream
from passdown.storage.session import Session, Store


class CatalogService:
    """One handler per catalog operation. Writes touch report tables only; handoffs are read through the port."""

    def __init__(self, store: Store, clock: Clock, ids: IdSource, reader: HandoffReader) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._reader = reader

    def handlers(self) -> dict[str, Handler]:
        """Operation name to handler."""
        return {
            "create_handoff_report_project": self.create_handoff_report_project,
            "get_handoff_report_project": self.get_handoff_report_project,
            "update_handoff_report_project": self.update_handoff_report_project,
            "list_handoff_report_projects": self.list_handoff_report_projects,
            "list_handoff_report_known_scopes": self.list_handoff_report_known_scopes,
            "register_handoff_report_workstream": self.register_handoff_report_workstream,
            "update_handoff_report_workstream": self.update_handoff_report_workstream,
            "list_handoff_report_workstreams": self.list_handoff_report_workstreams,
        }

    # --- projects -----------------------------------------------------------------------------------------------------

    def create_handoff_report_project(self, who: Principal, ask: CreateProjectAsk) -> ProjectAnswer:
        """Make a project; ``project_conflict`` when its key is taken or reserved."""
        value = rules.new_project(self._ids.new("prj_"), ask)

        def work(session: Session) -> None:
            if not tables.insert_project(session, value, now_us=self._clock.now_us()):
                raise _project_key_taken(tables.project_by_key(session, ask.key))

        self._store.write(work)
        return _project_answer(rules.ProjectState(value, 1))

    def get_handoff_report_project(self, who: Principal, ask: GetProjectAsk) -> ProjectAnswer:
        """Read one project. The reserved one is always there, even while no scope is ungrouped."""
        if ask.project_id == UNGROUPED_ID or ask.key == UNGROUPED_KEY:
            return _project_answer(rules.ProjectState(ungrouped_project(), 0))

        def work(session: Session) -> rules.ProjectState | None:
            if ask.project_id is not None:
                return tables.project(session, ask.project_id)
            return tables.project_by_key(session, ask.key or "")

        return _project_answer(_found(self._store.read(work)))

    def update_handoff_report_project(self, who: Principal, ask: UpdateProjectAsk) -> ProjectAnswer:
        """Change a project whose version the caller read; ``project_conflict`` carries ``current_version``."""
        rules.refuse_reserved_project(ask.project_id)

        def work(session: Session) -> rules.ProjectState:
            counter = _counter(session, ask.project_id)
            current = _found(tables.project(session, ask.project_id))
            value = rules.changed_project(current.descriptor, ask)
            holder = tables.project_by_key(session, value["project_key"])
            if holder is not None and holder.descriptor["project_id"] != ask.project_id:
                raise _project_key_taken(holder)
            tables.replace_project(session, value, counter=counter, now_us=self._effective_us(session, ask.project_id))
            return rules.ProjectState(value, counter)

        return _project_answer(self._store.write(work))

    def list_handoff_report_projects(self, who: Principal, ask: ListProjectsAsk) -> ListProjectsAnswer:
        """Projects in order of creation, then the reserved one while it has members."""
        position = unpack("projects", ask.cursor)
        after = b"" if position is None else position[1]
        found = self._store.read(
            lambda session: tables.projects_after(session, after, ask.limit + 1, include_archived=ask.include_archived)
        )
        page, more = found[: ask.limit], len(found) > ask.limit
        if not more and self._reader.ungrouped(None, 1):
            if len(page) < ask.limit:
                page.append(ungrouped_project())
            else:
                more = True
        last = page[-1]["project_id"].encode() if page else after
        return ListProjectsAnswer(
            projects=tuple(validate(ProjectDescriptor, value) for value in page),
            next_cursor=pack("projects", 0, last) if more else None,
        )

    # --- workstreams --------------------------------------------------------------------------------------------------

    def register_handoff_report_workstream(self, who: Principal, ask: RegisterWorkstreamAsk) -> WorkstreamAnswer:
        """Put a scope into a project; its handoffs are neither moved nor read."""
        rules.refuse_reserved_project(ask.project_id)
        value = rules.new_workstream(ask.scope_id or self._ids.new("scp_"), ask)

        def work(session: Session) -> rules.WorkstreamState:
            counter = _counter(session, ask.project_id)
            rules.refuse_archived(_found(tables.project(session, ask.project_id)).descriptor)
            effective = self._effective_us(session, ask.project_id)
            if not tables.insert_workstream(session, value, counter=counter, now_us=effective):
                there = tables.workstream(session, value["scope_id"])
                if there is not None:
                    raise PassdownError(
                        "scope_already_grouped", field="scope_id", project_id=there.descriptor["project_id"]
                    )
                raise _workstream_key_taken()
            return rules.WorkstreamState(value, counter)

        return _workstream_answer(self._store.write(work))

    def update_handoff_report_workstream(self, who: Principal, ask: UpdateWorkstreamAsk) -> WorkstreamAnswer:
        """Change a workstream whose version the caller read; ``workstream_conflict`` carries ``current_version``."""

        def work(session: Session) -> rules.WorkstreamState:
            seen = tables.workstream(session, ask.scope_id)
            if seen is None:
                raise PassdownError("workstream_not_found", field="scope_id")
            # A workstream never leaves its project, so this names the counter row to stand in line at.
            project_id: str = seen.descriptor["project_id"]
            counter = _counter(session, project_id)
            current = tables.workstream(session, ask.scope_id) or seen
            value = rules.changed_workstream(current.descriptor, ask)
            if value["key"] is not None:
                holder = tables.key_holder(session, project_id, value["key"])
                if holder is not None and holder != ask.scope_id:
                    raise _workstream_key_taken()
            tables.replace_workstream(session, value, counter=counter, now_us=self._effective_us(session, project_id))
            return rules.WorkstreamState(value, counter)

        return _workstream_answer(self._store.write(work))

    def list_handoff_report_workstreams(self, who: Principal, ask: ListWorkstreamsAsk) -> ListWorkstreamsAnswer:
        """Workstreams of a project in order of registration; of the reserved project newest handoff first."""
        if ask.scope_id is not None:
            return self._one_workstream(ask.scope_id, ask.project_id, ask.key)
        if ask.project_id == UNGROUPED_ID:
            return self._ungrouped_workstreams(ask)
        project_id = ask.project_id or ""
        position = unpack("workstreams", ask.cursor)

        def work(session: Session) -> list[tuple[int, rules.Descriptor]]:
            _found(tables.project(session, project_id))
            return tables.workstreams_after(
                session,
                project_id,
                position[0] if position else 0,
                ask.limit + 1,
                key=ask.key,
                include_archived=ask.include_archived or ask.key is not None,
            )

        found = self._store.read(work)
        page = found[: ask.limit]
        return ListWorkstreamsAnswer(
            workstreams=tuple(validate(WorkstreamDescriptor, value) for _, value in page),
            next_cursor=pack("workstreams", page[-1][0]) if len(found) > ask.limit else None,
        )

    def _one_workstream(self, scope_id: str, project_id: str | None, key: str | None) -> ListWorkstreamsAnswer:
        state = self._store.read(lambda session: tables.workstream(session, scope_id))
        if state is not None:
            value = state.descriptor
        elif scope_id in self._reader.latest_many([scope_id]):
            value = ungrouped_workstream(scope_id)
        else:
            return ListWorkstreamsAnswer(workstreams=(), next_cursor=None)
        fits = project_id in (None, value["project_id"]) and key in (None, value["key"])
        return ListWorkstreamsAnswer(
            workstreams=(validate(WorkstreamDescriptor, value),) if fits else (), next_cursor=None
        )

    def _ungrouped_workstreams(self, ask: ListWorkstreamsAsk) -> ListWorkstreamsAnswer:
        if ask.key is not None:
            return ListWorkstreamsAnswer(workstreams=(), next_cursor=None)
        after = _position("ungrouped", ask.cursor)
        found = self._reader.ungrouped(after, ask.limit + 1)
        page = found[: ask.limit]
        return ListWorkstreamsAnswer(
            workstreams=tuple(validate(WorkstreamDescriptor, ungrouped_workstream(head.scope_id)) for head in page),
            next_cursor=_behind("ungrouped", page, after) if len(found) > ask.limit else None,
        )

    # --- scopes -------------------------------------------------------------------------------------------------------

    def list_handoff_report_known_scopes(self, who: Principal, ask: ListKnownScopesAsk) -> ListKnownScopesAnswer:
        """Every scope with a committed handoff, newest first, with its project if it has one."""
        after = _position("scopes", ask.cursor)
        found = self._reader.scopes(after, ask.limit + 1)
        page = found[: ask.limit]
        projects = self._store.read(lambda session: tables.projects_of(session, [head.scope_id for head in page]))
        return ListKnownScopesAnswer(
            scopes=tuple(
                KnownScope(
                    scope_id=head.scope_id,
                    handoff_ref=handoff_ref(head.artifact_id, head.revision),
                    updated_at=format_timestamp(head.updated_us),
                    project_id=projects.get(head.scope_id),
                )
                for head in page
            ),
            next_cursor=_behind("scopes", page, after) if len(found) > ask.limit else None,
        )

    def _effective_us(self, session: Session, project_id: str) -> int:
        # Read behind the counter row, so that times rise in the order in which changes are made.
        return rules.effective_us(self._clock.now_us(), tables.latest_effective(session, project_id))


def _counter(session: Session, project_id: str) -> int:
    counter = tables.raise_counter(session, project_id)
    if counter is None:
        raise PassdownError("project_not_found", field="project_id")
    return counter


def _found(state: rules.ProjectState | None) -> rules.ProjectState:
    if state is None:
        raise PassdownError("project_not_found", field="project_id")
    return state


def _project_key_taken(holder: rules.ProjectState | None) -> PassdownError:
    members = {} if holder is None else {"project_id": holder.descriptor["project_id"]}
    return PassdownError("project_conflict", field="key", rule="key_taken", **members)


def _workstream_key_taken() -> PassdownError:
    return PassdownError("workstream_conflict", field="key", rule="key_taken")


def _project_answer(state: rules.ProjectState) -> ProjectAnswer:
    return ProjectAnswer(project=validate(ProjectDescriptor, state.descriptor), project_revision=state.project_revision)


def _workstream_answer(state: rules.WorkstreamState) -> WorkstreamAnswer:
    return WorkstreamAnswer(
        workstream=validate(WorkstreamDescriptor, state.descriptor), project_revision=state.project_revision
    )


def _position(kind: str, cursor: str | None) -> Position | None:
    found = unpack(kind, cursor)
    if found is None:
        return None
    number, rest = found
    if len(rest) != 8:
        raise PassdownError("invalid_cursor", field="cursor")
    given = int.from_bytes(rest, "big")
    if given >= 2**53:
        raise PassdownError("invalid_cursor", field="cursor")
    return Position(number, given)


def _behind(kind: str, page: Sequence[Head], after: Position | None) -> str:
    """The cursor behind the last head of a page: its time, and how many of that very time were given by now."""
    last = page[-1].updated_us
    given = sum(1 for head in page if head.updated_us == last)
    if after is not None and after.updated_us == last:
        given += after.given
    return pack(kind, last, given.to_bytes(8, "big"))
