"""A fresh store for each test, copied from one that was migrated once, and real repositories beside it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "git"))

from git_support import Repo
from handoff_support import Desk

from passdown.storage import open_store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated store without rows; copying it is quicker than migrating anew for every test."""
    path = tmp_path_factory.mktemp("empty-handoffs") / "passdown.db"
    open_store(path, create=True).close()
    return path


@pytest.fixture
def data(empty_store: Path, tmp_path: Path) -> Path:
    """A data directory with an empty store that nobody has open."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    shutil.copyfile(empty_store, folder / "passdown.db")
    return folder


@pytest.fixture
def desk(data: Path) -> Iterator[Desk]:
    with Desk(data) as opened:
        yield opened


@pytest.fixture
def make_repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Repo]:
    """Makes repositories; the user has no git configuration of their own."""
    for name in list(os.environ):
        if name.startswith("GIT_") or name == "XDG_CONFIG_HOME":
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    def make(name: str = "repo", **options: Any) -> Repo:
        return Repo(tmp_path / name, **options)

    return make
