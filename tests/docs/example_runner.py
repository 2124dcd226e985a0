"""Runs one worked example: the steps before it, then its request, over an empty store with a clock that stands still.

An example is ``docs/operations/NAME.json``: ``{about, before: [{op, ask}], ask, answer}``. It is asked by an owner on a
host with its own reader; the clock stands at 2026-05-28T20:26:40Z and ids count up, so that every answer is exact. The
answer of ``get_handoff_report`` is its body, which the example asks for as JSON.

``python tests/docs/example_runner.py`` writes the answer of every example anew; read what changed before it is kept.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson

from passdown.app.application import open_application
from passdown.app.operations import OPERATIONS
from passdown.kernel.clock import FixedClock
from passdown.kernel.ids import SequentialIds
from passdown.kernel.operations import Principal
from passdown.kernel.wire import read_model

FOLDER = Path(__file__).parents[2] / "docs" / "operations"
WHO = Principal("example-agent", "authenticated", "owner", host="example-host")
CLOCK_US = 1_780_000_000_000_000
BY_NAME = {op.name: op for op in OPERATIONS}


def load(name: str) -> dict[str, Any]:
    """The example of an operation."""
    value: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return value


def run(name: str, example: dict[str, Any], data: Path) -> Any:
    """What the operation answers behind the steps of its example, as a JSON value."""
    clock, ids = FixedClock(CLOCK_US), SequentialIds()
    with open_application(data, create=True, clock=clock, ids=ids) as application:
        call = application.caller(WHO)
        steps = [*example["before"], {"op": name, "ask": example["ask"]}]
        for step in steps:
            op = BY_NAME[step["op"]]
            answer = call(op, read_model(op.ask, orjson.dumps(step["ask"])))
    return orjson.loads(answer.body) if hasattr(answer, "body") else answer.model_dump(mode="json")


def main() -> None:
    """Write every answer anew."""
    for name in sys.argv[1:] or BY_NAME:
        example = load(name)
        data = Path(tempfile.mkdtemp(prefix="passdown-example-"))
        try:
            example["answer"] = run(name, example, data)
        finally:
            shutil.rmtree(data)
        text = json.dumps(example, ensure_ascii=False, indent=2) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
