"""Generated requests against the whole API: no fault of ours, and no answer that the API document does not describe.

Each operation gets requests that fit its schema and requests that do not, from a fixed seed, over a store that has a
project, a workstream and a handoff. Besides the status, media type, headers and schema of every answer are compared
with the document. The endless answer of ``/v1/events`` has tests of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest
import schemathesis
from fastapi import FastAPI
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from passdown.api.app import create_app
from passdown.app.application import Application
from passdown.app.operations import OPERATIONS
from passdown.identity.service import TokenService
from passdown.kernel.clock import FixedClock
from passdown.kernel.ids import SequentialIds
from passdown.kernel.operations import Principal
from passdown.kernel.wire import validate
from passdown.report.report_models import HandoffReport
from passdown.storage import open_store

NOW_US = 1_800_000_000_000_000
EXAMPLES = 25
HOST = "testserver"
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@dataclass
class Api:
    """The application, and the header of a token that may do everything."""

    app: FastAPI
    headers: dict[str, str]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    clock = FixedClock(NOW_US)
    path = tmp_path_factory.mktemp("schema") / "passdown.db"
    with closing(open_store(path, create=True)) as store:
        application = Application(store, clock, SequentialIds())
        by_name = {op.name: op for op in OPERATIONS}
        call = application.caller(Principal("ana", "asserted", "owner"))

        def ask(name: str, **members: Any) -> Any:
            return call(by_name[name], validate(by_name[name].ask, members))

        project = ask("create_handoff_report_project", key="p", title="P").project
        ask("register_handoff_report_workstream", project_id=project.project_id, scope_id="0", title="W")
        cited = [{"kind": "inline", "label": "n"}]
        ask(
            "hand_off_now",
            scope_id="0",
            objective="o",
            evidence=[{"label": "n", "source_type": "content", "content": "seen"}],
            state=[{"text": "t", "citations": cited}],
            disposition="continuable",
            commit=True,
        )
        tokens = TokenService(store, clock, SequentialIds())
        token, _ = tokens.create("all", "ana", "owner")
        app = create_app(
            application.handlers(),
            OPERATIONS,
            tokens,
            allowed_hosts=[HOST],
            document_model=HandoffReport,
            replays=application.replays(),
            places=application.places(),
            writes=store.writes,
        )
        yield Api(app, {"Authorization": f"Bearer {token}"})


@pytest.fixture(scope="module")
def schema(api: Api) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", api.app, headers=api.headers)


ADDRESSES = [("POST", op.path) for op in OPERATIONS] + [("GET", path) for path in ("/healthz", "/readyz", "/metrics")]


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_every_answer_is_one_that_the_document_describes(
    api: Api, schema: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """Fault caught: a 500, an undocumented status, a media type or a member that the document does not know."""
    operation = schema[path][method]
    asked = 0

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        case.call_and_validate(headers=api.headers, checks=CHECKS)

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        # An address without body and parameters has nothing that could be wrong.
        assert (method, mode) == ("GET", GenerationMode.NEGATIVE)
        return
    assert asked > 0


def test_the_addresses_are_those_of_the_document(api: Api) -> None:
    """Fault caught: an address that is documented and never asked."""
    document = api.app.openapi()
    documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert documented == {*ADDRESSES, ("GET", "/v1/events")}
