"""A world for each test, or one for a file whose tests only read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "git"))

from cli_support import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(scope="module")
def new_world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], World]:
    """Makes worlds that live as long as the tests of a file."""
    return lambda: World(tmp_path_factory.mktemp("world"))
