"""Every operation has one worked example in the documentation, and every example says what really happens."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from example_runner import BY_NAME, FOLDER, load, run

from passdown.storage import open_store

NAMES = sorted(BY_NAME)


@pytest.fixture(scope="session")
def blank_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blank") / "passdown.db"
    open_store(path, create=True).close()
    return path


def test_every_operation_has_one_example_and_no_example_lacks_its_operation() -> None:
    """Catches an operation that is added, renamed or removed without its documentation."""
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_example_answers_to_the_letter_what_it_shows(name: str, blank_store: Path, tmp_path: Path) -> None:
    """Catches documentation that drifts: a member, a value or an order that changed."""
    shutil.copyfile(blank_store, tmp_path / "passdown.db")
    example = load(name)
    assert list(example) == ["about", "before", "ask", "answer"]
    assert example["about"].endswith(".")
    assert run(name, example, tmp_path) == example["answer"]


@pytest.mark.parametrize("name", NAMES)
def test_the_digests_in_an_example_are_those_of_an_independent_implementation(name: str) -> None:
    """Catches answers that were filled in by the product and believed: RFC 8785 and SHA-256 alone say the same."""
    for value in objects(load(name)):
        if "content_digest" in value and isinstance(value.get("content"), dict):
            assert value["content_digest"] == digest(value["content"])
        if "report_digest" in value:
            assert value["report_digest"] == digest({key: value[key] for key in value if key != "report_digest"})
        if "descriptor" in value and "sha256" in value:
            body = value["content"].encode() if value["descriptor"] is None else rfc8785.dumps(value["descriptor"])
            assert (value["sha256"], value["size"]) == (hashlib.sha256(body).hexdigest(), len(body))


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


def digest(value: Any) -> str:
    return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()
