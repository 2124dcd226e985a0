"""The user of these tests has no git configuration of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_support import Repo


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("GIT_") or name == "XDG_CONFIG_HOME":
            monkeypatch.delenv(name)
    home = tmp_path / "home of the user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[..., Repo]:
    def make(name: str = "repo", **options: str) -> Repo:
        return Repo(tmp_path / name, **options)

    return make


@pytest.fixture
def repo(make_repo: Callable[..., Repo]) -> Repo:
    return make_repo()
