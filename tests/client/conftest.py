"""Servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from client_support import Scripted, Server


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start a server over a fresh store; it is stopped with the test."""
    running: list[Server] = []

    def start(**options: Any) -> Server:
        running.append(Server(tmp_path / f"served{len(running)}", **options))
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def script() -> Iterator[Callable[..., Scripted]]:
    """Start a server that answers as told; all of its turns have to be used."""
    running: list[Scripted] = []

    def start(*turns: Any) -> Scripted:
        running.append(Scripted(turns))
        return running[-1]

    yield start
    for each in running:
        each.stop()
