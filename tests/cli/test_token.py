"""``token``: made once, listed without its secret, revoked at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from cli_support import World


def test_a_new_token_is_the_only_thing_on_stdout(world: World) -> None:
    answer = world.ok(world.root, "token", "create", "ci", "--principal", "builder")
    assert len(answer.out.split()) == 1
    assert answer.err == "agent token of builder; it is not shown again.\n"


def test_the_json_of_a_new_token_has_what_a_script_needs(world: World) -> None:
    made = world.ok(
        world.root, "token", "create", "ci", "--principal", "builder", "--role", "reader", "--json"
    ).json  # fmt: skip
    assert made.keys() >= {"token", "token_id", "principal", "role"}
    assert (made["principal"], made["role"]) == ("builder", "reader")
    assert made["token_id"].startswith("tok_")


def test_the_store_keeps_no_token_in_clear(world: World) -> None:
    token = world.ok(world.root, "token", "create", "ci", "--principal", "builder", "--json").json["token"]
    with closing(sqlite3.connect(world.data / "passdown.db")) as connection:
        dump = "\n".join(connection.iterdump())
    assert token not in dump
    assert token.encode().hex() not in dump.lower()
    assert all(token.encode() not in path.read_bytes() for path in world.data.iterdir())


def test_tokens_are_listed_without_their_secret_and_revoked_by_id(world: World) -> None:
    made = world.ok(world.root, "token", "create", "ci", "--principal", "builder", "--days", "1", "--json").json
    listed = world.ok(world.root, "token", "list", "--json")
    assert made["token"] not in listed.out
    (record,) = listed.json
    assert (record["token_id"], record["name"], record["state"]) == (made["token_id"], "ci", "live")
    assert record["expires_at"] > record["created_at"]
    assert world.ok(world.root, "token", "revoke", made["token_id"], "--json").json["state"] == "revoked"
    assert world.ok(world.root, "token", "list", "--json").json[0]["state"] == "revoked"
    assert "revoked" in world.ok(world.root, "token", "list").out


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["create", "n", "--principal", "p", "--role", "king"], "invalid_request", 2),
        (["create", "n", "--principal", "p\x1b[31m"], "invalid_request", 2),
        (["create", "n" * 257, "--principal", "p"], "invalid_request", 2),
        (["create", "n", "--principal", "p" * 257], "invalid_request", 2),
        (["create", "n", "--principal", "p", "--host", "h\n"], "invalid_request", 2),
        (["revoke", "tok_absent"], "token_not_found", 4),
    ],
)
def test_a_refused_token_command_makes_none(world: World, arguments: list[str], code: str, exit_code: int) -> None:
    answer = world.refused(code, exit_code, world.root, "token", *arguments)
    assert "\x1b" not in answer.err
    assert world.ok(world.root, "token", "list", "--json").json == []


@pytest.mark.parametrize("days", ["0", "3651", "-1", "x"])
def test_days_outside_of_their_range_are_a_usage_error(world: World, days: str) -> None:
    answer = world.run(world.root, "token", "create", "n", "--principal", "p", f"--days={days}")
    assert (answer.code, answer.out) == (2, "")


def test_the_longest_life_and_names_are_taken(world: World) -> None:
    world.ok(world.root, "token", "create", "n" * 256, "--principal", "p" * 256, "--days", "3650")
    assert len(world.ok(world.root, "token", "list", "--json").json) == 1
