"""The worlds of the command-line tests, for what the product promises as a whole."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "git"))
sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
sys.path.insert(0, str(Path(__file__).parent.parent / "report"))

from cli_support import World

from passdown.storage import open_store


@pytest.fixture(scope="session")
def new_world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], World]:
    """Makes a world with an empty store that is migrated already."""
    empty = tmp_path_factory.mktemp("migrated") / "passdown.db"
    open_store(empty, create=True).close()

    def make(example: World | None = None) -> World:
        world = World(tmp_path_factory.mktemp("world"), example)
        world.data.mkdir(mode=0o700)
        shutil.copyfile(empty, world.data / "passdown.db")
        return world

    example = make()
    example.bound()
    return lambda: make(example)


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
    return new_world()
