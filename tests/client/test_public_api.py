"""What programs may rely on: the names, the methods, the types, and what importing costs."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import passdown
from passdown.app.operations import OPERATIONS
from passdown.client import models
from passdown.client.async_client import AsyncClient
from passdown.client.client import Client
from passdown.kernel.errors import PassdownError

LISTED = (Path(__file__).parents[2] / "docs" / "public-api.txt").read_text(encoding="utf-8").splitlines()
OTHER = {"close", "over"}


def test_the_public_names_are_the_listed_ones() -> None:
    """Fault caught: a name that appears or goes without a word; docs/public-api.txt is the word."""
    listed = {line.split(".")[1].partition("(")[0].partition(":")[0] for line in LISTED if line.startswith("passdown.")}
    assert listed - {"client"} == set(passdown.__all__)
    for name in passdown.__all__:
        assert getattr(passdown, name) is getattr(passdown, name)
    with pytest.raises(AttributeError):
        passdown.no_such_name  # noqa: B018


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_has_one_typed_method_for_each_operation(kind: type) -> None:
    """Fault caught: an operation that a program cannot call, or one that answers another model than it says."""
    methods = {name: member for name, member in vars(kind).items() if not name.startswith("_")}
    assert set(methods) - OTHER == {op.name for op in OPERATIONS}
    for op in OPERATIONS:
        method = methods[op.name]
        signature = inspect.signature(method)
        assert signature.return_annotation == op.answer.__name__
        assert signature.parameters["ask"].annotation == f"{op.ask.__name__} | None"
        assert inspect.iscoroutinefunction(method) is (kind is AsyncClient)
        assert method.__doc__ == op.summary


def test_every_model_of_an_operation_can_be_imported_from_one_place() -> None:
    """Fault caught: a model that a program has to look for in the inside of the package."""
    for op in OPERATIONS:
        for model in (op.ask, op.answer):
            assert getattr(models, model.__name__) is model
    assert sorted(models.__all__) == list(models.__all__)


def test_the_package_says_that_it_is_typed() -> None:
    """Fault caught: a marker that is not part of what is installed."""
    assert resources.files("passdown").joinpath("py.typed").is_file()


def _imported(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(shown.split())


def test_importing_the_package_loads_next_to_nothing() -> None:
    """Fault caught: 100 ms that every command would pay."""
    loaded = _imported("import passdown")
    assert not loaded & {"pydantic", "httpx", "http.client", "sqlite3", "passdown.client.client"}


def test_a_synchronous_client_needs_no_http_library_and_no_server() -> None:
    """Fault caught: an extra that becomes necessary, or a command line that starts with a web framework."""
    loaded = _imported("import passdown; passdown.Client('http://127.0.0.1:1', 'x').close()")
    assert not loaded & {"httpx", "fastapi", "uvicorn", "sqlalchemy", "alembic", "sqlite3", "prometheus_client"}


def test_a_caller_for_the_command_line_loads_no_operation_that_it_does_not_use() -> None:
    """Fault caught: a command that continues a handoff and pays for the report."""
    loaded = _imported("from passdown.client.remote import connect; connect('http://127.0.0.1:1', 'x').close()")
    assert not {name for name in loaded if name.startswith(("passdown.report", "passdown.handoff", "passdown.storage"))}


def test_a_directory_is_opened_embedded_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault caught: a store that is made without being asked for, or that is not the one that was named."""
    with pytest.raises(PassdownError) as refused:
        passdown.open(tmp_path / "data")
    assert (refused.value.code, refused.value.members["rule"]) == ("store_not_readable", "missing")
    assert list(tmp_path.iterdir()) == []
    with passdown.open(tmp_path / "data", create=True, principal="ana") as client:
        client.create_handoff_report_project(key="p", title="P")
        source = client.capture_source(scope_id="s", source_type="content", content="seen").source
        assert (source.recorded_by.principal_id, source.recorded_by.identity) == ("ana", "asserted")
    for name in ("PASSDOWN_URL", "PASSDOWN_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PASSDOWN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PASSDOWN_AGENT", "codex-2")
    with passdown.open() as client:
        assert [item.project_key for item in client.list_handoff_report_projects().projects] == ["p"]
        other = client.capture_source(scope_id="s", source_type="content", content="more").source
        assert other.recorded_by.principal_id == "codex-2"
    monkeypatch.setenv("PASSDOWN_DATABASE", f"sqlite:///{tmp_path / 'data' / 'passdown.db'}")
    for place in (None, os.environ["PASSDOWN_DATABASE"]):
        with passdown.open(place) as client:
            assert len(client.list_sources(scope_id="s").sources) == 2
    with pytest.raises(PassdownError) as refused:
        passdown.open(tmp_path / "data", principal="a\nb")
    assert refused.value.members == {"field": "principal", "rule": "control_character"}


def test_an_address_is_opened_as_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault caught: a folder named http:, or a token that is guessed."""
    monkeypatch.delenv("PASSDOWN_TOKEN", raising=False)
    monkeypatch.setenv("PASSDOWN_URL", "http://127.0.0.1:1")
    for place in (None, "https://passdown.example"):
        with pytest.raises(PassdownError) as refused:
            passdown.open(place)
        assert (refused.value.code, refused.value.members["rule"]) == ("unauthenticated", "missing")
    monkeypatch.setenv("PASSDOWN_TOKEN", "pdt_" + "A" * 43)
    passdown.open().close()
