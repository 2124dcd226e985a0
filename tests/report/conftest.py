from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_support import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An empty store with the handoff core and the report room over it."""
    made = World(tmp_path / "passdown.db")
    yield made
    made.close()
