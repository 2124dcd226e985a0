"""``passdown token create`` with what a token is confined to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import passdown


def run(folder: Path, *words: str) -> tuple[int, Any, str]:
    """Exit code, the JSON on stdout (None without any), stderr."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PASSDOWN_DATA": str(folder / "data")}
    command = [sys.executable, "-m", "passdown", "token", *words, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=60)
    return ended.returncode, json.loads(ended.stdout) if ended.stdout else None, ended.stderr


def test_a_token_is_confined_by_key_or_id_and_by_name(tmp_path: Path) -> None:
    """Fault caught: a key that is stored as an id and confines to nothing, or an option without effect."""
    with passdown.open(tmp_path / "data", create=True) as client:
        ids = [client.create_handoff_report_project(key=key, title=key).project.project_id for key in ("a", "b")]
    code, made, _ = run(
        tmp_path, "create", "ci", "--principal", "bot", "--project", "a", "--project", ids[1],
        "--operation", "get_handoff", "--operation", "events", "--days", "1",
    )  # fmt: skip
    assert code == 0
    assert (made["projects"], made["operations"]) == (sorted(ids), ["events", "get_handoff"])
    code, listed, _ = run(tmp_path, "list")
    assert code == 0
    assert [(item["projects"], item["operations"], item["state"]) for item in listed] == [
        (sorted(ids), ["events", "get_handoff"], "live")
    ]


def test_what_does_not_exist_makes_no_token(tmp_path: Path) -> None:
    """Fault caught: a typing error that makes a token which confines to nothing known."""
    with passdown.open(tmp_path / "data", create=True):
        pass
    for words, code, exit_code in (
        (["--project", "nowhere"], "project_not_found", 4),
        (["--project", "prj_nowhere"], "project_not_found", 4),
        (["--operation", "get_handof"], "invalid_request", 2),
    ):
        ended, _, said = run(tmp_path, "create", "ci", "--principal", "bot", *words)
        assert ended == exit_code
        assert code in said
    assert run(tmp_path, "list")[1] == []
