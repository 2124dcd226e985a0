"""Which database engines a run uses: ``--engines auto`` (SQLite and every server that can be started here, the
default), ``all`` (a missing one is an error) or ``sqlite``.

A test that asks for ``engine``, ``place`` or ``fresh_place`` runs once on each engine. A server is started when the
first test needs it and is gone, with its folder, when the run ends, however it ends.
"""

from __future__ import annotations

import atexit
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from passdown.storage import open_store
from support.places import FilePlace, Place, ServerPlace
from support.servers import KINDS, Server

ENGINES = ("sqlite", *(kind.name for kind in KINDS))


class Servers:
    """The servers of this run, by engine, each with one database that is emptied between tests."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}
        self._shared: dict[str, ServerPlace] = {}
        atexit.register(self.close)

    def server(self, engine: str) -> Server:
        if engine not in self._running:
            server = next(kind for kind in KINDS if kind.name == engine)()
            self._running[engine] = server
            server.start()
        return self._running[engine]

    def shared(self, engine: str) -> ServerPlace:
        """The migrated database of an engine, without rows."""
        if engine not in self._shared:
            server = self.server(engine)
            place = ServerPlace(server, server.new_database())
            place.open(create=True).close()
            self._shared[engine] = place
        else:
            self._shared[engine].wipe()
        return self._shared[engine]

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].close()


NONE = "none"
"""Stands for the engine of a test that is about engines which this run leaves out."""

SERVERS = pytest.StashKey[Servers]()
MISSING = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engines",
        choices=("auto", "all", "sqlite"),
        default="auto",
        help="database engines: all (a missing one is an error), auto (what can be started here), sqlite",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SERVERS] = Servers()
    missing = {kind.name: f"{why}; get it with: {kind.hint}" for kind in KINDS if (why := kind.missing())}
    config.stash[MISSING] = missing
    if config.getoption("engines") == "all" and missing:
        raise pytest.UsageError("".join(f"\n--engines all: no {name}: {why}" for name, why in missing.items()))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        wanted = metafunc.config.getoption("engines")
        missing = metafunc.config.stash[MISSING]
        names = [name for name in ENGINES if name == "sqlite" or (wanted != "sqlite" and name not in missing)]
        only = metafunc.definition.get_closest_marker("engines")
        if only is not None:
            names = [name for name in names if name in only.args]
        metafunc.parametrize("engine", names or [NONE], indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if getattr(getattr(item, "callspec", None), "params", {}).get("engine") == NONE]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[SERVERS].close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counted: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.getreports(outcome):
            for name, engine in getattr(report, "user_properties", ()):
                if name == "engine":
                    counted.setdefault(engine, Counter())[outcome] += 1
    for engine, outcomes in counted.items():
        told = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
        terminalreporter.write_line(f"engine {engine}: {told}")
    if config.getoption("engines") == "auto" and counted:
        for engine, why in config.stash[MISSING].items():
            terminalreporter.write_line(f"engine {engine}: left out, {why}")


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> str:
    """The engine under test."""
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def _note_engine(request: pytest.FixtureRequest) -> None:
    if "engine" in request.fixturenames:
        request.node.user_properties.append(("engine", request.getfixturevalue("engine")))


@pytest.fixture(scope="session")
def server_of(pytestconfig: pytest.Config) -> Callable[[str], Server]:
    """The running server of an engine."""
    return pytestconfig.stash[SERVERS].server


@pytest.fixture(scope="session")
def _empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "passdown.db"
    open_store(path, create=True).close()
    return path


@pytest.fixture
def make_place(pytestconfig: pytest.Config, _empty_file: Path, tmp_path: Path) -> Callable[[str], Place]:
    """Gives the place of an empty, up-to-date store on a named engine; on a server always the same one."""

    def make(engine: str) -> Place:
        if engine != "sqlite":
            return pytestconfig.stash[SERVERS].shared(engine)
        folder = tmp_path / "place"
        folder.mkdir(mode=0o700)
        path = folder / "passdown.db"
        shutil.copyfile(_empty_file, path)
        path.chmod(0o600)
        return FilePlace(path)

    return make


@pytest.fixture
def place(engine: str, make_place: Callable[[str], Place]) -> Place:
    """An empty, up-to-date store that nobody has open."""
    return make_place(engine)


@pytest.fixture
def fresh_place(engine: str, pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Place]:
    """Where no store is yet: a file that is not there, or a database without tables."""
    if engine == "sqlite":
        yield FilePlace(tmp_path / "fresh" / "passdown.db")
        return
    server = pytestconfig.stash[SERVERS].server(engine)
    name = server.new_database()
    yield ServerPlace(server, name)
    server.drop_database(name)
