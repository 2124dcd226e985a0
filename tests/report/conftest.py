from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_support import MakeWorld, World

from passdown.storage import open_store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated store without rows; copying it is quicker than migrating anew for every test."""
    path = tmp_path_factory.mktemp("empty") / "passdown.db"
    open_store(path, create=True).close()
    return path


@pytest.fixture
def make_world(empty_store: Path, tmp_path: Path) -> Iterator[MakeWorld]:
    """Makes worlds with settings of their own, each over an empty store."""
    made: list[World] = []

    def make(**settings: Any) -> World:
        path = tmp_path / f"passdown-{len(made)}.db"
        shutil.copyfile(empty_store, path)
        made.append(World(path, **settings))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """An empty store with the handoff core and the report room over it."""
    return make_world()
