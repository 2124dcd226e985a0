"""``db``: check, upgrade, backup and restore as a person and a script see them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_support import PASSDOWN, World, on_a_terminal, serving, shown

from passdown.storage.version import SCHEMA_HEAD
from support.places import LATER


@pytest.fixture(scope="module")
def bound(new_world: Callable[[], World]) -> World:
    """A world with a handoff and a token; its tests change nothing in the store."""
    world = new_world()
    repo = world.bound()
    world.ok(repo.path, "handoff", "--next", "Go on")
    world.ok(repo.path, "token", "create", "ci", "--principal", "builder")
    return world


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(sql).fetchall()


def report(world: World, *arguments: str) -> dict[str, Any]:
    """The report without what the time of asking changes."""
    value: dict[str, Any] = world.ok(world.root / "shop", *arguments, "report", "--json").json
    for name in ("generated_at", "report_digest"):
        del value[name]
    return value


# --- check --------------------------------------------------------------------------------------------------------


def test_a_sound_store_is_told_line_by_line(bound: World) -> None:
    answer = bound.ok(bound.root / "shop", "db", "check")
    lines = answer.out.splitlines()
    assert all(line.startswith("  ✓ ") for line in lines)
    names = [line.split()[1] for line in lines]
    assert names[:4] == ["file", "schema", "values", "counters"]
    assert "revisions    1 revision" in answer.out
    assert answer.err == ""


def test_a_check_as_json_has_every_number(bound: World) -> None:
    value = bound.ok(bound.root, "db", "check", "--json").json
    assert (value["store"], value["engine"], value["schema_version"]) == (str(bound.data), "sqlite", SCHEMA_HEAD)
    assert (value["ok"], value["complete"]) == (True, True)
    by_name = {item["name"]: item for item in value["checks"]}
    assert by_name["revisions"] == {
        "name": "revisions",
        "examined": 1,
        "unit": "revisions",
        "ok": True,
        "problems": [],
    }
    assert bound.ok(bound.root, "--json", "db", "check").json == value


def test_damage_is_told_by_code_and_place_and_by_the_exit_code(world: World) -> None:
    """Catches: a check whose result a script cannot see, and one that mends."""
    repo = world.bound()
    world.ok(repo.path, "handoff", "--next", "Go on")
    scope_id = world.ok(repo.path, "switch", "--json").json["current_scope_id"]
    file = world.data / "passdown.db"
    rows(file, "UPDATE pd_handoff_heads SET revision = 5")
    before = rows(file, "SELECT * FROM pd_handoff_heads")
    answer = world.run(repo.path, "db", "check")
    assert answer.code == 5
    assert "  ! heads " in answer.out and "head_differs: 1" in answer.out
    assert f"table pd_handoff_heads, scope_id {scope_id}" in answer.out
    assert answer.err.startswith("store_damaged: ") and "problems 1" in answer.err
    answer = world.run(repo.path, "db", "check", "--json")
    assert (answer.code, answer.json["ok"], answer.json["complete"]) == (5, False, True)
    (heads,) = [item for item in answer.json["checks"] if not item["ok"]]
    place = {"table": "pd_handoff_heads", "scope_id": scope_id}
    assert heads["problems"] == [{"code": "head_differs", "count": 1, "first": [place]}]
    assert rows(file, "SELECT * FROM pd_handoff_heads") == before


def test_a_check_that_could_not_go_on_says_so(world: World) -> None:
    rows(world.data / "passdown.db", "DROP TABLE pd_tokens")
    answer = world.run(world.root, "db", "check")
    assert answer.code == 5
    assert "table_missing: 1" in answer.out and "left out" in answer.out
    assert world.run(world.root, "db", "check", "--json").json["complete"] is False


def test_hostile_text_of_a_damaged_store_reaches_no_terminal(world: World) -> None:
    """Catches: control characters out of a key."""
    rows(world.data / "passdown.db", "INSERT INTO pd_handoff_heads VALUES (x'1b5d303b78071b5b326a', x'00', 1, 1)")
    rows(world.data / "passdown.db", "INSERT INTO pd_handoff_heads VALUES (x'e280ae6162', x'01', 1, 1)")
    answer = world.run(world.root, "db", "check")
    assert answer.code == 5
    assert "\x1b" not in answer.out and "\u202e" not in answer.out
    assert "scope_id 1b5d303b78071b5b326a" in answer.out


@pytest.mark.parametrize("command", [["check"], ["backup", "copy.db"]], ids=" ".join)
def test_an_older_schema_is_left_for_the_upgrade(world: World, command: list[str]) -> None:
    """Catches: a check that upgrades. A backup of a file upgrades its copy only."""
    file = world.data / "passdown.db"
    for table in LATER:
        rows(file, f"DROP TABLE {table}")
    rows(file, "UPDATE alembic_version SET version_num = '0001'")
    if command[0] == "check":
        answer = world.refused("store_not_readable", 5, world.root, "db", *command)
        assert "rule schema_behind" in answer.err and "passdown db upgrade" in answer.err
    else:
        world.ok(world.root, "db", *command)
    assert rows(file, "SELECT version_num FROM alembic_version") == [("0001",)]
    assert world.ok(world.root, "db", "upgrade", "--json").json == {"from": "0001", "to": SCHEMA_HEAD, "changed": True}
    assert "nothing to do" in world.ok(world.root, "db", "upgrade").out
    world.ok(world.root, "db", "check")


def test_a_schema_that_is_newer_is_refused_by_all_of_them(world: World) -> None:
    file = world.data / "passdown.db"
    rows(file, "UPDATE alembic_version SET version_num = '0999'")
    for command in (["check"], ["upgrade"], ["backup", "copy.db"]):
        world.refused("schema_too_new", 5, world.root, "db", *command)
    assert not (world.root / "copy.db").exists()


# --- backup and restore -------------------------------------------------------------------------------------------


def test_a_backup_goes_to_another_place_and_gives_the_same_report(bound: World) -> None:
    """Catches: anything that a restored store says otherwise, in digests or in what a person reads."""
    shop = bound.root / "shop"
    told = bound.ok(shop, "db", "backup", str(bound.root / "week.db"), "--json").json
    assert told["digest"].startswith("sha256:") and len(told["digest"]) == 71
    assert told["total_rows"] == sum(told["rows"].values())
    assert (told["rows"]["pd_handoff_revisions"], told["rows"]["pd_tokens"]) == (1, 1)
    other = bound.root / "other"
    answer = bound.ok(shop, "db", "restore", "../week.db", "--digest", told["digest"], "--data", str(other))
    assert f"Restored {told['total_rows']} rows" in answer.out
    expected = report(bound)
    assert report(bound, "--data", str(other)) == expected
    assert report(bound, "--database", f"sqlite:///{bound.root}/week.db") == expected
    assert bound.ok(shop, "continue", "--data", str(other)).out == bound.ok(shop, "continue").out
    bound.ok(shop, "db", "check", "--data", str(other))
    assert sorted(path.name for path in other.iterdir() if path.suffix != ".lock") == ["passdown.db"]


def test_a_backup_is_readable_by_its_owner_only(bound: World) -> None:
    bound.ok(bound.root, "db", "backup", "private.db")
    assert (bound.root / "private.db").stat().st_mode & 0o777 == 0o600
    (token_sha256,) = rows(bound.root / "private.db", "SELECT token_sha256 FROM pd_tokens")[0]
    assert len(token_sha256) == len(hashlib.sha256().digest())


def test_a_token_is_part_of_a_backup(bound: World) -> None:
    """Catches: a restored server that nobody can log in to, or that lets in who was shut out."""
    token = bound.ok(bound.root, "token", "create", "x", "--principal", "p", "--role", "owner", "--json").json
    bound.ok(bound.root, "token", "revoke", token["token_id"])
    bound.ok(bound.root, "db", "backup", "tokens.db")
    bound.ok(bound.root, "db", "restore", "tokens.db", "--data", "tokens")
    listed = bound.ok(bound.root, "token", "list", "--json").json
    assert bound.ok(bound.root, "token", "list", "--json", "--data", "tokens").json == listed
    assert {item["state"] for item in listed} == {"live", "revoked"}


def test_what_is_there_is_never_replaced(bound: World) -> None:
    shop = bound.root / "shop"
    (bound.root / "kept.txt").write_text("mine")
    bound.refused("file_exists", 3, shop, "db", "backup", "../kept.txt")
    assert (bound.root / "kept.txt").read_text() == "mine"
    bound.ok(shop, "db", "backup", "../once.db")
    answer = bound.refused("store_not_empty", 3, shop, "db", "restore", "../once.db")
    assert "table pd_sources" in answer.err
    bound.refused("digest_mismatch", 4, shop, "db", "restore", "../once.db", "--digest", "sha256:x", "--data", "../no")
    assert not (bound.root / "no").exists()
    bound.refused("file_not_readable", 4, shop, "db", "restore", "../gone.db", "--data", "../no")
    bound.refused("store_not_readable", 5, shop, "db", "restore", "../kept.txt", "--data", "../no")
    bound.refused("file_not_writable", 5, shop, "db", "backup", "../nowhere/x.db")
    assert not (bound.root / "no").exists() and not (bound.root / "nowhere").exists()


@pytest.mark.parametrize("command", [["check"], ["upgrade"], ["backup", "copy.db"]], ids=" ".join)
def test_where_there_is_no_store_none_is_made(bare_world: World, command: list[str]) -> None:
    answer = bare_world.refused("store_not_readable", 5, bare_world.root, "db", *command)
    assert "rule missing" in answer.err and "passdown init" in answer.err
    assert not bare_world.data.exists() and not (bare_world.root / "copy.db").exists()


@pytest.mark.parametrize(
    "command", [["check"], ["upgrade"], ["backup", "copy.db"], ["restore", "copy.db"]], ids=" ".join
)
def test_none_of_them_works_through_a_server(world: World, command: list[str]) -> None:
    """Catches: a command that looks after the local store when a server was named."""
    answer = world.refused("store_not_readable", 5, world.root, "--url", "http://127.0.0.1:9", "db", *command)
    assert "rule on_a_server" in answer.err
    world.refused("store_not_readable", 5, world.root, "db", *command, PASSDOWN_DATA=None, PASSDOWN_URL="http://h")
    assert not (world.root / "copy.db").exists()


def test_a_backup_is_made_beside_a_running_server(world: World) -> None:
    """Catches: a backup that has to wait for the server to be stopped, or stops it."""
    repo = world.bound()
    with serving(world, repo.path):
        world.ok(repo.path, "handoff", "--next", "Go on")
        world.ok(repo.path, "db", "backup", "../beside.db")
        world.ok(repo.path, "handoff", "--next", "Go on further")
    assert rows(world.root / "beside.db", "SELECT COUNT(*) FROM pd_handoff_revisions") == [(1,)]


def test_an_interrupted_backup_leaves_nothing(world: World) -> None:
    """Catches: leftovers of Ctrl-C. The source is made large enough to be met on the way."""
    file = world.data / "passdown.db"
    with closing(sqlite3.connect(file)) as connection:
        numbers = ((b"n%08d" % number, number) for number in range(400_000))
        connection.executemany("INSERT INTO pd_counters VALUES (?, ?)", numbers)
        connection.commit()
    folder = world.root / "kept"
    folder.mkdir()
    with subprocess.Popen(
        [PASSDOWN, "db", "backup", "kept/copy.db"],
        cwd=world.root,
        env=world.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        while not any(folder.iterdir()):
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert os.listdir(folder) == []


def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(bound: World) -> None:
    session = on_a_terminal(bound, bound.root, ["db", "backup", "seen.db"])
    assert session.code == 0
    assert b"pd_sources: " in session.sent
    lines = shown(session.screen)
    assert lines[0].startswith("Backed up ") and "pd_sources" not in "\n".join(lines)


def test_the_words_of_a_backup_go_to_stdout_and_are_the_digest_of_the_json(bound: World) -> None:
    spoken = bound.ok(bound.root, "db", "backup", "a.db").out
    digest = bound.ok(bound.root, "db", "backup", "b.db", "--json").json["digest"]
    assert digest in spoken and "a.db" in spoken
    assert json.loads(bound.ok(bound.root, "--json", "db", "backup", "c.db").out)["digest"] == digest


def test_help_says_that_tokens_are_part_of_a_backup(bound: World) -> None:
    text = " ".join(bound.ok(bound.root, "db", "backup", "--help").out.split())
    assert "tokens" in text and "SHA-256" in text
