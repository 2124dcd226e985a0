"""What each command loads: a command that loads less starts sooner, and the largest libraries are not free."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import World

# Runs the command and then tells which modules were loaded, on a stream of its own.
DUMP = """
import os, sys
from passdown.cli.main import run
code = run(sys.argv[1:])
import json
sys.stdout.flush()
os.write(2, b"\\n" + json.dumps([code, sorted(sys.modules)]).encode())
"""
STORES = ("sqlalchemy", "alembic")
SERVERS = ("fastapi", "starlette", "uvicorn", "httpx", "anyio", "asyncio", "passdown.api", "passdown.identity")
RENDERERS = ("passdown.report.render",)


@pytest.fixture(scope="module")
def bound(new_world: Callable[[], World]) -> World:
    world = new_world()
    repo = world.bound()
    world.ok(repo.path, "handoff", "--next", "Go on")
    return world


def loaded(world: World, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", DUMP, *arguments],
        cwd=world.root / "shop",
        env=world.environment(),
        capture_output=True,
        check=True,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


def of(modules: set[str], *roots: str) -> list[str]:
    """Those of ``modules`` that are one of ``roots`` or lie below one."""
    return sorted(name for name in modules if any(name == root or name.startswith(f"{root}.") for root in roots))


@pytest.mark.parametrize("arguments", [["--help"], ["continue", "--help"], ["report", "--help"]], ids=" ".join)
def test_help_loads_no_database_and_no_room_but_the_command_line(bound: World, arguments: list[str]) -> None:
    modules = loaded(bound, *arguments)
    assert of(modules, *STORES, *SERVERS, "orjson", "sqlite3", "rich") == []
    rooms = ("app", "overview", "report", "handoff", "storage", "git")
    assert of(modules, *(f"passdown.{room}" for room in rooms)) == []
    names = ("error_rows", "error_table", "errors", "symbols", "version")
    small = {"passdown.kernel", *(f"passdown.kernel.{name}" for name in names)}
    assert set(of(modules, "passdown.kernel")) <= small


def test_the_first_help_loads_no_models_either(bound: World) -> None:
    assert of(loaded(bound, "--help"), "pydantic", "pydantic_core") == []


def test_home_loads_no_server_no_migrations_and_no_renderer(bound: World) -> None:
    modules = loaded(bound)
    assert of(modules, *STORES, *SERVERS, *RENDERERS, "rich") == []
    assert of(modules, "passdown.handoff.service", "passdown.git.reader") == []


def test_continue_loads_no_server_no_migrations_and_no_report(bound: World) -> None:
    modules = loaded(bound, "continue")
    assert of(modules, *STORES, *SERVERS, "passdown.report", "rich") == []


@pytest.mark.parametrize(
    "arguments", [["handoff", "--yes"], ["switch"], ["report"], ["report", "projects"]], ids=" ".join
)
def test_no_command_on_an_up_to_date_store_loads_a_server_or_migrations(bound: World, arguments: list[str]) -> None:
    assert of(loaded(bound, *arguments), *STORES, *SERVERS, "rich") == []


def test_verify_loads_no_store_and_no_git(bound: World, tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    page.write_text(bound.ok(bound.root / "shop", "report", "--json").out)
    modules = loaded(bound, "report", "verify", str(page))
    assert (
        of(modules, *STORES, *SERVERS, "sqlite3", "passdown.storage", "passdown.git", "passdown.handoff.service") == []
    )


def test_no_command_looks_for_plug_ins_in_every_installed_package(bound: World) -> None:
    """The model library would read the entry points of every distribution; the hook ends the process if it does."""
    hook = (
        "import sys\n"
        "def hook(event, arguments):\n"
        "    if event == 'open' and 'entry_points.txt' in str(arguments[0]):\n"
        "        raise SystemExit('looked into ' + str(arguments[0]))\n"
        "sys.addaudithook(hook)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hook + DUMP, "continue"],
        cwd=bound.root / "shop",
        env=bound.environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
