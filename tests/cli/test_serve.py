"""``serve``: one line when ready, a token where none exists, and the same store as the command line."""

from __future__ import annotations

import signal

import httpx
import pytest
from cli_support import World, serving


def test_the_first_start_makes_the_store_and_shows_an_owner_token_once(bare_world: World) -> None:
    with serving(bare_world, bare_world.root) as (url, child):
        assert child.stderr is not None
        words = child.stderr.readline()
        token = words.rsplit(maxsplit=1)[-1]
        assert words.startswith("No owner token existed")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        answer = httpx.post(f"{url}/v1/handoff-reports/projects/list", json={}, headers=headers, trust_env=False)
        assert (answer.status_code, answer.json()["projects"]) == (200, [])
    with serving(bare_world, bare_world.root) as (url, child):
        answer = httpx.post(f"{url}/v1/handoff-reports/projects/list", json={}, headers=headers, trust_env=False)
        assert answer.status_code == 200
        child.send_signal(signal.SIGTERM)
        assert child.stderr is not None
        assert child.stderr.read() == ""


def test_the_server_and_the_command_line_share_one_store(world: World) -> None:
    repo = world.bound()
    token = world.ok(repo.path, "token", "create", "t", "--principal", "remote", "--json").json["token"]
    headers = {"Authorization": f"Bearer {token}"}
    with serving(world, repo.path) as (url, _):
        world.ok(repo.path, "handoff", "--next", "Go on")
        asked = {"project_id": world.ok(repo.path, "report", "projects", "--json").json[0]["project_id"]}
        answer = httpx.post(
            f"{url}/v1/handoff-reports/get", json={**asked, "format": "json"}, headers=headers, trust_env=False
        )
        assert answer.json()["workstreams"][0]["content"]["next_action"]["text"] == "Go on"
        token_id = world.ok(repo.path, "token", "list", "--json").json[0]["token_id"]
        world.ok(repo.path, "token", "revoke", token_id)
        gone = httpx.post(f"{url}/v1/handoff-reports/projects/list", json={}, headers=headers, trust_env=False)
        assert (gone.status_code, gone.json()["code"]) == (401, "unauthenticated")


def test_a_port_that_is_taken_is_refused(world: World) -> None:
    with serving(world, world.root) as (url, _):
        answer = world.spawn(world.root, "serve", "--port", url.rsplit(":", 1)[1])
    assert (answer.code, answer.out) == (5, "")
    assert "address_not_available: " in answer.err
    assert "rule in_use" in answer.err


@pytest.mark.parametrize(
    ("arguments", "rule"), [(["--host", "0.0.0.0"], "not_loopback"), (["--port", "65536"], "port")]
)
def test_an_address_that_may_not_be_served_is_refused(world: World, arguments: list[str], rule: str) -> None:
    answer = world.spawn(world.root, "serve", *arguments)
    assert (answer.code, answer.out) == (5, "")
    assert f"rule {rule}" in answer.err
