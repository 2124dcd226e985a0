"""Writes the reference pages that are made from code: ``python -m tools.reference``; a test compares them.

``docs/public-api.txt`` from the package itself, ``docs/errors.md`` from the error table, ``docs/api.md`` from the
operation descriptions, ``docs/cli.md`` from the commands themselves, ``docs/openapi.json`` from the HTTP application.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import passdown
from passdown.api.openapi import api_document
from passdown.app.operations import DOCUMENT_OPERATIONS, OPERATIONS
from passdown.app.repeating import KEYED
from passdown.client import models
from passdown.kernel.errors import ERRORS
from passdown.kernel.operations import COMMON_ERRORS
from passdown.report.report_models import HandoffReport

DOCS = Path(__file__).resolve().parent.parent / "docs"

COMMANDS: tuple[tuple[str, ...], ...] = (
    (),
    ("init",),
    ("start",),
    ("switch",),
    ("handoff",),
    ("continue",),
    ("report",),
    ("report", "verify"),
    ("report", "selection"),
    ("report", "projects"),
    ("serve",),
    ("token",),
    ("token", "create"),
    ("token", "list"),
    ("token", "revoke"),
    ("db",),
    ("db", "check"),
    ("db", "upgrade"),
    ("db", "backup"),
    ("db", "restore"),
)


def errors_page() -> str:
    """Every code with its status, exit code, sentence and next step."""
    lines = [
        "# Errors",
        "",
        "Made from `kernel/error_table.py`. Every refusal, on every surface, is one of these: HTTP answers it as",
        "RFC 9457 problem details (`type` is `urn:passdown:problem:CODE`), the command line prints `code: sentence`",
        "and the next step on stderr. Extra members (`limit`, `actual`, `current`, `errors` …) are typed and never",
        "hold text that a caller sent.",
        "",
        "Exit codes: 2 input, 3 conflict, 4 not found or not resolvable, 5 unavailable or busy, 1 a fault of ours.",
        "",
        "| Code | HTTP | Exit | What it means | What to do next |",
        "| --- | --- | --- | --- | --- |",
    ]
    for spec in ERRORS.values():
        step = spec.next_step.replace("|", "\\|")
        lines.append(f"| `{spec.code}` | {spec.status} | {spec.exit_code} | {spec.sentence} | {step} |")
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """Every operation with its path, effect and own refusals."""
    lines = [
        "# HTTP operations",
        "",
        "Made from the operation descriptions. Each is `POST` with a JSON body and `Authorization: Bearer TOKEN`; the",
        "document at `/openapi.json` (also [openapi.json](openapi.json)) has every member. A worked example of",
        "each lies in [operations](operations/README.md).",
        "",
        "Models are strict: a boolean is no integer, `1.0` is no integer, an unknown or repeated member is refused.",
        "A reader token may call what reads, an agent token also what appends or changes. Repetition, hints of change,",
        "compression, metrics and the confinement of tokens are told in [server.md](server.md).",
        "",
    ]
    for op in OPERATIONS:
        own = ", ".join(f"`{code}`" for code in op.errors)
        lines += [
            f"## {op.name}",
            "",
            f"`POST {op.path}` · {op.effect} · {op.summary}",
            "",
            f"Refusals of its own: {own}." if own else "No refusals of its own.",
            "",
        ]
        if op.name in KEYED:
            lines += [f"Takes an `Idempotency-Key`: {KEYED[op.name]}.", ""]
    common = ", ".join(f"`{code}`" for code in COMMON_ERRORS)
    lines += ["## Refusals of every operation", "", f"{common}. All are in [errors](errors.md).", ""]
    return "\n".join(lines)


def cli_page() -> str:
    """The help of every command, as it prints."""
    lines = ["# Command line", "", "Made from `passdown COMMAND --help`.", ""]
    for command in COMMANDS:
        title = " ".join(("passdown", *command))
        shown = subprocess.run(
            [sys.executable, "-m", "passdown", *command, "--help"],
            env={"COLUMNS": "100", "PATH": "", "TERM": "dumb", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        body = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        lines += [f"## {title}", "", "```text", body, "```", ""]
    return "\n".join(lines)


def operations_page() -> str:
    """The worked examples, one line each."""
    lines = [
        "# Worked examples",
        "",
        "Made from the files beside it. Each file has `about`; `before`, requests that run first; `ask`, the body that",
        "is sent; and `answer`, what comes back, to the letter under a fixed clock. The tests execute all of them.",
        "",
        "| Operation | What the example shows |",
        "| --- | --- |",
    ]
    for op in OPERATIONS:
        example = json.loads((DOCS / "operations" / f"{op.name}.json").read_text(encoding="utf-8"))
        lines.append(f"| [{op.name}]({op.name}.json) | {example['about']} |")
    return "\n".join(lines) + "\n"


def public_api_page() -> str:
    """Every public name of the package with its signature, one line each."""
    lines = ["# What programs may rely on. Made from the package; a change here is a change for users."]
    for name in sorted(passdown.__all__):
        value = getattr(passdown, name)
        if not callable(value):
            lines.append(f"passdown.{name}: {type(value).__name__}")
            continue
        lines.append(f"passdown.{name}{_signature(value)}")
        if inspect.isclass(value):
            lines += [f"passdown.{name}.{member}" for member in _members(value)]
    lines += [f"passdown.client.models.{name}" for name in models.__all__]
    return "\n".join(lines) + "\n"


def _members(value: type) -> list[str]:
    found = []
    for name, member in sorted(vars(value).items()):
        if name.startswith("_"):
            continue
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        found.append(f"{name}{_signature(function)}" if inspect.isfunction(function) else name)
    return found


def _signature(value: Callable[..., Any]) -> str:
    """The signature; a default that is an object is shown without its address."""
    return re.sub(r"<.*? at 0x[0-9a-f]+>", "…", str(inspect.signature(value)))


def openapi_document() -> dict[str, Any]:
    """The API document as the server answers it."""
    return api_document(OPERATIONS, documents=DOCUMENT_OPERATIONS, document_model=HandoffReport)


def pages() -> dict[str, str]:
    """File name in ``docs`` to content."""
    return {
        "errors.md": errors_page(),
        "api.md": api_page(),
        "cli.md": cli_page(),
        "public-api.txt": public_api_page(),
        "operations/README.md": operations_page(),
        "openapi.json": json.dumps(openapi_document(), ensure_ascii=False, indent=1, sort_keys=True) + "\n",
    }


def main() -> None:
    """Write every page."""
    for name, content in pages().items():
        (DOCS / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
