"""Tokens that are confined to projects or operations, on every address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from http_support import NOW_US, Site, check_problem
from http_support import OPERATIONS as NOTES

from passdown.app.operations import OPERATIONS, SERVICE_OPERATIONS, require_operations
from passdown.app.places import CONFINABLE
from passdown.kernel.errors import PassdownError

PATHS = {op.name: op.path for op in OPERATIONS}


@dataclass
class Two:
    """A site with two projects, a workstream with a handoff in each, and one scope in no project."""

    site: Site
    mine: str
    my_scope: str
    other: str
    other_scope: str
    loose_scope: str
    token: str

    def ask(self, name: str, body: dict[str, Any], token: str | None = None) -> Any:
        return self.site.post(PATHS[name], body, token or self.token)


def hand_off(scope_id: str) -> dict[str, Any]:
    cited = [{"kind": "inline", "label": "n"}]
    return {
        "scope_id": scope_id,
        "objective": "o",
        "evidence": [{"label": "n", "source_type": "content", "content": "seen"}],
        "state": [{"text": "t", "citations": cited}],
        "disposition": "continuable",
        "commit": True,
    }


@pytest.fixture
def two(own_site: Callable[..., Site]) -> Two:
    site = own_site(whole=True)
    found = []
    for key in ("mine", "other"):
        created = site.post(PATHS["create_handoff_report_project"], {"key": key, "title": key}).json()
        project_id = created["project"]["project_id"]
        body = {"project_id": project_id, "title": "w", "key": "w"}
        scope_id = site.post(PATHS["register_handoff_report_workstream"], body).json()["workstream"]["scope_id"]
        found += [project_id, scope_id]
    for scope_id in (found[1], found[3], "loose"):
        assert site.post(PATHS["hand_off_now"], hand_off(scope_id)).status_code == 200
    token = site.tokens.create("c", "ana", "owner", projects=[found[0]])[0]
    return Two(site, *found, "loose", token)


def source_of(two: Two, scope_id: str) -> dict[str, Any]:
    sources = two.ask("list_sources", {"scope_id": scope_id}, two.site.agent).json()["sources"]
    ref: dict[str, Any] = sources[0]["source_ref"]
    return ref


def by_scope(two: Two, scope_id: str) -> dict[str, dict[str, Any]]:
    """For each operation that names a scope a request that its own token would be answered."""
    draft = {"objective": "o", "state": [], "disposition": "continuable", "next_action": None, "omissions": []}
    committed = two.ask("get_handoff", {"scope_id": scope_id}, two.site.agent).json()["handoff"]
    prepared = {
        "schema": "powercontext.prepared-handoff.v1",
        "scope_id": scope_id,
        "base": None,
        "content": committed["content"],
        "content_digest": committed["content_digest"],
    }
    return {
        "capture_source": {"scope_id": scope_id, "source_type": "content", "content": "more"},
        "get_source": {"scope_id": scope_id, "source_ref": source_of(two, scope_id)},
        "list_sources": {"scope_id": scope_id},
        "prepare_handoff": {"scope_id": scope_id, "objective": "o"},
        "finalize_handoff": {"scope_id": scope_id, "draft": draft},
        "commit_handoff": prepared,
        "hand_off_now": hand_off(scope_id),
        "continue_handoff": {"scope_id": scope_id, "confirm_scope": scope_id, "target": {"kind": "latest"}},
        "get_handoff": {"scope_id": scope_id},
        "list_handoff_revisions": {"scope_id": scope_id},
        "acknowledge_handoff": {
            "scope_id": scope_id,
            "target": {"kind": "exact", "handoff_ref": committed["handoff_ref"]},
            "verdict": "accepted",
        },
        "recover_draft": {"scope_id": scope_id},
        "diff_handoffs": {"scope_id": scope_id},
        "export_handoff": {"scope_id": scope_id},
        "list_handoff_report_revisions": {"scope_id": scope_id},
        "update_handoff_report_workstream": {"scope_id": scope_id, "expected_version": 1, "title": "new"},
        "list_handoff_report_workstreams": {"scope_id": scope_id},
    }


def test_each_operation_by_scope_reaches_its_own_project_and_no_other(two: Two) -> None:
    """Fault caught: one route that forgot to ask where a scope belongs, or a refusal that tells what exists."""
    own, other = by_scope(two, two.my_scope), by_scope(two, two.other_scope)
    loose, missing = by_scope(two, two.loose_scope), "scp_missing"
    assert {name for name, kind in CONFINABLE.items() if kind == "scope"} <= set(own)
    before = two.site.store.writes()
    for name in own:
        bodies = [other[name], loose[name], {**own[name], "scope_id": missing}]
        problems = [check_problem(two.ask(name, body), "forbidden", rule="project") for body in bodies]
        assert len({tuple(sorted(set(problem) - {"correlation_id"})) for problem in problems}) == 1
    assert two.site.store.writes() == before
    for name, body in own.items():
        answer = two.ask(name, body)
        assert answer.status_code == 200 or answer.json()["code"] == "invalid_request", (name, answer.text)


def by_project(project_id: str, key: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("get_handoff_report_project", {"project_id": project_id}),
        ("get_handoff_report_project", {"key": key}),
        ("update_handoff_report_project", {"project_id": project_id, "expected_version": 1, "title": "new"}),
        ("list_handoff_report_workstreams", {"project_id": project_id}),
        ("list_handoff_report_workstreams", {"project_id": project_id, "key": "w"}),
        ("register_handoff_report_workstream", {"project_id": project_id, "title": "x"}),
        ("get_handoff_report", {"project_id": project_id, "format": "json"}),
    ]


def test_each_operation_by_project_reaches_its_own_and_no_other(two: Two) -> None:
    """Fault caught: a project that is reached by its key, or by one of the two ways to name it."""
    for name, body in by_project(two.mine, "mine"):
        assert two.ask(name, body).status_code == 200, name
    before = two.site.store.writes()
    for project_id, key in ((two.other, "other"), ("prj_missing", "missing"), ("prj_ungrouped", "ungrouped")):
        for name, body in by_project(project_id, key):
            check_problem(two.ask(name, body), "forbidden", rule="project")
    both = {"project_id": two.mine, "scope_id": two.other_scope}
    check_problem(two.ask("list_handoff_report_workstreams", both), "forbidden", rule="project")
    assert two.site.store.writes() == before


def test_a_confined_token_takes_no_scope_into_its_project_and_probes_no_key(two: Two) -> None:
    """Fault caught: a handoff of no project that is claimed and read, or a key that tells of another project."""
    claim = {"project_id": two.mine, "title": "x", "scope_id": two.loose_scope}
    check_problem(two.ask("register_handoff_report_workstream", claim), "forbidden", rule="project")
    probe = {"project_id": two.mine, "expected_version": 1, "key": "other"}
    check_problem(two.ask("update_handoff_report_project", probe), "forbidden", rule="project")


def test_what_cannot_be_confined_is_forbidden(two: Two) -> None:
    """Fault caught: a list that shows every project, or a new operation that nobody confined."""
    bodies: dict[str, dict[str, Any]] = {
        "create_handoff_report_project": {"key": "new", "title": "n"},
        "list_handoff_report_projects": {},
        "list_handoff_report_known_scopes": {},
    }
    assert set(bodies) == set(PATHS) - set(CONFINABLE)
    for name, body in bodies.items():
        check_problem(two.ask(name, body), "forbidden", rule="project")
        assert two.ask(name, body, two.site.owner).status_code == 200
    # An operation that this table has never heard of.
    check_problem(two.site.post("/v1/notes/count", {}, two.token), "forbidden", rule="project")


def test_several_projects_are_all_reached(two: Two) -> None:
    """Fault caught: only the first project of a token being kept."""
    token = two.site.tokens.create("b", "ana", "reader", projects=[two.other, two.mine])[0]
    for scope_id in (two.my_scope, two.other_scope):
        assert two.ask("get_handoff", {"scope_id": scope_id}, token).status_code == 200


def test_named_operations_are_allowed_and_no_other_address_is(two: Two) -> None:
    """Fault caught: an operation that passes because another one is named, or a role that is widened by a name."""
    named = ["get_handoff", "hand_off_now"]
    token = two.site.tokens.create("n", "ana", "agent", operations=named)[0]
    before = two.site.store.writes()
    for op in (*OPERATIONS, *NOTES):
        if op.name not in named:
            check_problem(
                two.site.post(op.path, {}, token), "forbidden", rule="operation" if op.effect != "destroy" else "role"
            )
    assert two.site.store.writes() == before
    assert two.ask("get_handoff", {"scope_id": two.other_scope}, token).status_code == 200
    assert two.ask("hand_off_now", hand_off("s"), token).status_code == 200
    reader = two.site.tokens.create("r", "ana", "reader", operations=named)[0]
    check_problem(two.ask("hand_off_now", hand_off("s"), reader), "forbidden", rule="role")


def test_the_api_document_is_for_any_token(two: Two) -> None:
    """Fault caught: a confined client that cannot learn the protocol."""
    answer = two.site.client.get(two.site.url + "/openapi.json", headers={"Authorization": f"Bearer {two.token}"})
    assert answer.status_code == 200


def test_expiry_stops_a_confined_token_on_every_address(two: Two) -> None:
    """Fault caught: an address that looks at the confinement but not at the clock."""
    token = two.site.tokens.create("e", "ana", "owner", expires_us=NOW_US + 5, projects=[two.mine])[0]
    assert two.ask("get_handoff", {"scope_id": two.my_scope}, token).status_code == 200
    two.site.clock.move(5)
    for op in OPERATIONS:
        check_problem(two.site.post(op.path, {}, token), "unauthenticated", rule="expired")
    for path in ("/openapi.json", "/metrics", "/v1/events"):
        answer = two.site.client.get(two.site.url + path, headers={"Authorization": f"Bearer {token}"})
        check_problem(answer, "unauthenticated", rule="expired")


def test_a_name_that_is_no_operation_is_refused_when_a_token_is_made() -> None:
    """Fault caught: a typing error that silently makes a token without rights."""
    require_operations([*PATHS, *SERVICE_OPERATIONS])
    with pytest.raises(PassdownError) as refused:
        require_operations(["get_handoff", "get_handof"])
    assert (refused.value.code, refused.value.members) == ("invalid_request", {"field": "operation", "rule": "unknown"})
