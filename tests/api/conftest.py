"""Servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_support import Site, start_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests that leave it as it was."""
    running = start_site(tmp_path_factory.mktemp("site"))
    yield running
    running.stop()


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Start a server with options; it is stopped with the test."""
    running: list[Site] = []

    def start(**options: Any) -> Site:
        running.append(start_site(tmp_path / str(len(running)), **options))
        return running[-1]

    yield start
    for each in running:
        each.stop()
