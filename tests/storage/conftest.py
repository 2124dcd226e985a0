"""A fresh store for each test: ``store`` on every engine of the run, ``file_store`` and ``database`` on SQLite only."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from passdown.storage import Store, open_store
from support.places import Place


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "passdown.db"
    open_store(path, create=True).close()
    return path


@pytest.fixture
def database(migrated: Path, tmp_path: Path) -> Path:
    """The file of an empty, up-to-date store that nobody has open."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    path = folder / "passdown.db"
    shutil.copyfile(migrated, path)
    path.chmod(0o600)
    return path


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    opened = place.open()
    yield opened
    opened.close()


@pytest.fixture
def file_store(database: Path) -> Iterator[Store]:
    opened = open_store(database, create=False)
    yield opened
    opened.close()


@pytest.fixture
def public_folder(migrated: Path) -> Iterator[Path]:
    """A folder that every user can reach and list, with a store in it that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="passdown-test-"))
    folder.chmod(0o755)
    shutil.copyfile(migrated, folder / "passdown.db")
    (folder / "passdown.db").chmod(0o644)
    yield folder
    folder.chmod(0o755)
    for name in os.listdir(folder):
        (folder / name).chmod(0o644)
    shutil.rmtree(folder)
