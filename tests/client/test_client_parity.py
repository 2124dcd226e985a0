"""Embedded and remote are one thing: every operation answers the same JSON, and refuses with the same members."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from client_support import Server
from served import NOW_US

import passdown
from passdown.app.application import Application, open_application
from passdown.app.operations import OPERATIONS
from passdown.client.async_client import AsyncClient
from passdown.client.client import Client
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import SequentialIds
from passdown.kernel.operations import Principal
from passdown.kernel.wire import dump

WHO = Principal("codex-2", "authenticated", "owner", host="buildbox")
EFFECTS = {op.name: op.effect for op in OPERATIONS}
Told = tuple[Literal["answer", "refusal"], Any]


def told(answer: Any) -> Told:
    """An answer as what a program sees of it."""
    return ("answer", answer.model_dump_json() if hasattr(answer, "model_dump_json") else answer)


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests of every operation in an order that works, refusals among them. Ids count, so they are known before."""

    def id_of(prefix: str, number: int) -> str:
        return prefix + "0" * 25 + str(number)

    project, scope = id_of("prj_", 1), id_of("scp_", 1)
    yield "create_handoff_report_project", {"key": "zahlung", "title": "支付 <b>x</b>", "timezone": "Asia/Shanghai"}
    yield "create_handoff_report_project", {"key": "zahlung", "title": "again"}
    yield "get_handoff_report_project", {"key": "zahlung"}
    yield "get_handoff_report_project", {"project_id": "prj_missing"}
    yield "get_handoff_report_project", {}
    yield "update_handoff_report_project", {"project_id": project, "expected_version": 1, "title": "e\u0301\r\nx"}
    yield "update_handoff_report_project", {"project_id": project, "expected_version": 1, "title": "late"}
    yield "list_handoff_report_projects", {"limit": 1}
    yield "register_handoff_report_workstream", {"project_id": project, "title": "Queue", "labels": ["b", "a"]}
    yield "register_handoff_report_workstream", {"project_id": project, "scope_id": scope, "title": "twice"}
    yield "update_handoff_report_workstream", {"scope_id": scope, "expected_version": 1, "key": "queue"}
    yield "list_handoff_report_workstreams", {"project_id": project}
    yield "list_handoff_report_workstreams", {"scope_id": "none"}
    note = {"scope_id": scope, "source_type": "content", "source_id": "n1", "content": {"项": [1, None, True]}}
    yield "capture_source", note
    yield "capture_source", note
    yield "capture_source", {**note, "content": "other"}
    yield "capture_source", {**note, "source_id": "big", "content": "x" * 300_000}
    yield "get_source", {"scope_id": scope, "source_ref": {"source_type": "content", "source_id": "n1"}}
    yield "get_source", {"scope_id": scope, "source_ref": {"source_type": "content", "source_id": "n2"}}
    yield "list_sources", {"scope_id": scope}
    yield "list_sources", {"scope_id": scope, "cursor": "bad"}
    cited = [{"kind": "source", "source_ref": {"source_type": "content", "source_id": "n1"}}]
    inline = [{"kind": "inline", "label": "n"}]
    evidence = [{"label": "n", "source_type": "content", "content": "seen", "name": "Note"}]
    yield "prepare_handoff", {"scope_id": scope, "objective": "Wire it", "evidence": evidence}
    draft = {
        "objective": "Wire it",
        "state": [{"text": "done", "citations": cited}],
        "disposition": "continuable",
        "next_action": None,
        "omissions": [],
    }
    yield "finalize_handoff", {"scope_id": scope, "draft": draft}
    yield "finalize_handoff", {"scope_id": scope, "draft": {**draft, "state": [{"text": "x", "citations": inline}]}}
    yield (
        "hand_off_now",
        {
            "scope_id": scope,
            "objective": "Wire it",
            "evidence": evidence,
            "state": [{"text": "wired\u2028\U0001f600", "citations": inline}],
            "disposition": "blocked",
            "next_action": {"text": "go on", "citations": inline},
            "commit": True,
        },
    )
    yield "get_handoff", {"scope_id": scope}
    yield "get_handoff", {"scope_id": "empty"}
    yield "continue_handoff", {"scope_id": scope, "target": {"kind": "latest"}, "confirm_scope": scope}
    yield "continue_handoff", {"scope_id": scope, "target": {"kind": "latest"}}
    yield "list_handoff_revisions", {"scope_id": scope}
    found = [{"text": "left on disk", "citations": inline}]
    yield "recover_draft", {"scope_id": scope, "evidence": evidence, "state": found, "locale": "zh-CN"}
    yield "recover_draft", {"scope_id": "empty"}
    ref = {"family": "handoff", "artifact_id": id_of("hnd_", 1), "revision": 1}
    taken = {"scope_id": scope, "target": {"kind": "exact", "handoff_ref": ref}, "verdict": "accepted"}
    yield "acknowledge_handoff", taken
    yield "acknowledge_handoff", taken
    yield "acknowledge_handoff", {**taken, "verdict": "declined"}
    yield "diff_handoffs", {"scope_id": scope}
    yield "diff_handoffs", {"scope_id": scope, "after": {**ref, "revision": 9}}
    yield "export_handoff", {"scope_id": scope, "handoff_ref": ref, "include_bodies": True}
    yield "export_handoff", {"scope_id": "empty"}
    yield "list_handoff_report_known_scopes", {}
    yield "list_handoff_report_revisions", {"scope_id": scope}
    for form in ("json", "markdown"):
        yield "get_handoff_report", {"project_id": project, "format": form, "locale": "en"}
    yield "get_handoff_report", {"project_id": project, "format": "json", "download": True}
    yield "get_handoff_report", {"project_id": project, "format": "pdf"}
    yield "hand_off_now", {"scope_id": scope, "objective": "x" * 9_000, "state": [], "disposition": "continuable"}


def embedded(client: Client) -> list[Told]:
    """What every step answers, and at the end the commit of what was finalised."""
    found: list[Told] = []

    def run(name: str, members: dict[str, Any]) -> Any:
        try:
            answer = getattr(client, name)(**members)
        except PassdownError as error:
            found.append(("refusal", (error.code, error.members)))
            return None
        found.append(told(answer))
        return answer

    finalized = None
    for name, members in steps():
        answer = run(name, members)
        if name == "finalize_handoff" and answer is not None:
            finalized = answer
        if name == "hand_off_now" and answer is not None and finalized is not None:
            run("commit_handoff", dump(finalized))
    assert finalized is not None
    return found


async def awaited(client: AsyncClient) -> list[Told]:
    """The same through the client that awaits."""
    found: list[Told] = []

    async def run(name: str, members: dict[str, Any]) -> Any:
        try:
            answer = await getattr(client, name)(**members)
        except PassdownError as error:
            found.append(("refusal", (error.code, error.members)))
            return None
        found.append(told(answer))
        return answer

    finalized = None
    for name, members in steps():
        answer = await run(name, members)
        if name == "finalize_handoff" and answer is not None:
            finalized = answer
        if name == "hand_off_now" and answer is not None and finalized is not None:
            await run("commit_handoff", dump(finalized))
    return found


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Application]:
    with open_application(
        tmp_path / "local", create=True, clock=FixedClock(NOW_US), ids=SequentialIds()
    ) as application:
        yield application


def over(application: Application) -> Client:
    return Client.over(application.caller(WHO), application.close)


def test_the_steps_hold_every_operation_with_answers_and_refusals(local: Application) -> None:
    """Fault caught: a parity test that leaves an operation out, or in which everything is refused."""
    assert {name for name, _ in steps()} | {"commit_handoff"} == set(EFFECTS)
    kinds = [kind for kind, _ in embedded(over(local))]
    assert kinds.count("answer") >= len(EFFECTS)
    assert kinds.count("refusal") >= 10


def test_a_remote_client_tells_the_same_as_an_embedded_one(local: Application, serve: Callable[..., Server]) -> None:
    """Fault caught: a member, an order, a code or a type that is lost between a store and a client."""
    server = serve()
    with Client(server.url, server.token) as client:
        assert embedded(client) == embedded(over(local))


def test_an_awaited_client_tells_the_same_too(local: Application, serve: Callable[..., Server]) -> None:
    """Fault caught: two clients that drift apart."""
    server = serve()

    async def scene() -> list[Told]:
        async with AsyncClient(server.url, server.token) as client:
            return await awaited(client)

    assert asyncio.run(scene()) == embedded(over(local))


def test_reads_over_one_and_the_same_store_agree(serve: Callable[..., Server]) -> None:
    """Fault caught: a server that shows another state than the file it serves."""
    server = serve()
    clock = FixedClock(NOW_US)
    with Client(server.url, server.token) as remote:
        embedded(remote)
        with open_application(server.folder, create=False, clock=clock) as application:
            client = over(application)
            for name, members in steps():
                if EFFECTS[name] != "read":
                    continue
                both: list[Told] = []
                for each in (remote, client):
                    try:
                        both.append(told(getattr(each, name)(**members)))
                    except PassdownError as error:
                        both.append(("refusal", (error.code, error.members)))
                assert both[0] == both[1], name


def test_the_token_of_a_remote_caller_decides_whose_reading_it_is(serve: Callable[..., Server]) -> None:
    """Fault caught: a client that says of itself that it read a repository."""
    server = serve()
    facts = {"path": "src/queue.py", "sha256": "ab" * 32, "size": 7, "commit": "a" * 40}
    with passdown.open(server.url, token=server.token, principal="mallory") as client:
        source = client.capture_source(scope_id="s", source_type="file", descriptor=facts).source
    assert (source.assurance, source.read_by) == ("host_read", "buildbox")
    assert (source.recorded_by.principal_id, source.recorded_by.identity) == ("codex-2", "authenticated")
