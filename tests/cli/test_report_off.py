"""The command line where the report is switched off and its tables are dropped."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import httpx
import pytest
from cli_support import World, serving
from git_support import Repo

OFF = {"PASSDOWN_FEATURES_OFF": "report"}


@pytest.fixture
def repo(world: World) -> Repo:
    repo = world.bound(commits=2)
    with closing(sqlite3.connect(world.data / "passdown.db")) as connection:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'pc_handoff_report_%'"
        for (name,) in connection.execute(sql).fetchall():
            connection.execute(f"DROP TABLE {name}")
        connection.commit()
    return repo


def test_a_day_goes_on_without_it(world: World, repo: Repo) -> None:
    world.ok(repo.path, "handoff", "--state", "It stands", "--next", "Go on", "--objective", "Retry once", **OFF)
    assert "→ Go on [" in world.ok(repo.path, "continue", **OFF).out
    world.ok(repo.path, "handoff", "ack", "--accept", **OFF)
    assert "accepted by grace" in world.ok(repo.path, "handoff", "show", **OFF).out
    home = world.ok(repo.path, **OFF)
    assert "Retry once" in home.out
    assert "The report is switched off here" in home.err
    assert world.ok(repo.path, "--json", **OFF).json["workstreams"] == []
    assert world.ok(repo.path, "db", "check", **OFF).code == 0


@pytest.mark.parametrize("command", [["report"], ["report", "projects"], ["start", "Another"]])
def test_what_needs_it_says_that_it_is_off(world: World, repo: Repo, command: list[str]) -> None:
    world.refused("feature_off", 5, repo.path, *command, **OFF)


def test_a_name_that_no_feature_has_is_refused(world: World, repo: Repo) -> None:
    world.refused("invalid_request", 2, repo.path, "continue", PASSDOWN_FEATURES_OFF="repot")


def test_a_server_without_it_has_no_such_addresses_and_hands_off_all_the_same(world: World, repo: Repo) -> None:
    token = world.ok(repo.path, "token", "create", "t", "--principal", "p", "--role", "owner", "--json", **OFF).json[
        "token"
    ]
    headers = {"Authorization": f"Bearer {token}"}
    with (
        serving(world, repo.path, **OFF) as (url, _),
        httpx.Client(base_url=url, headers=headers, trust_env=False) as client,
    ):
        answer = client.post("/v1/handoff-reports/projects/list", json={})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        paths = client.get("/openapi.json").json()["paths"]
        assert "/v1/handoff/continue" in paths
        assert not any("handoff-reports" in path for path in paths)
        remote = {"PASSDOWN_URL": url, "PASSDOWN_TOKEN": token, "PASSDOWN_DATA": None}
        world.ok(repo.path, "handoff", "--next", "Go on", **remote)
        assert "→ Go on [" in world.ok(repo.path, "continue", **remote).out
