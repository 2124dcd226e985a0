"""A world for each test, or one for a file whose tests only read. Its store is migrated already, which is quicker."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "git"))

from cli_support import World

from passdown.storage import open_store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty-store") / "passdown.db"
    open_store(path, create=True).close()
    return path


@pytest.fixture(scope="session")
def new_world(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Callable[[], World]:
    """Makes a world with an empty store."""

    def make() -> World:
        world = World(tmp_path_factory.mktemp("world"))
        world.data.mkdir(mode=0o700)
        shutil.copyfile(empty_store, world.data / "passdown.db")
        return world

    return make


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
    return new_world()


@pytest.fixture
def bare_world(tmp_path: Path) -> World:
    """A world where no command ever ran."""
    return World(tmp_path)
