"""How long the commands take that people and hooks run all day."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.table import row

ROUNDS = 9
_TARGETS: tuple[tuple[tuple[str, ...], float], ...] = (
    (("--help",), 150),
    ((), 300),
    (("continue",), 300),
    (("report",), 500),
)


def rows() -> list[dict[str, Any]]:
    """Medians of whole processes on a bound repository of twenty commits."""
    with tempfile.TemporaryDirectory(prefix="passdown-bench-") as folder:
        repository = Path(folder) / "repository"
        env = _environment(Path(folder))
        _run(["git", "init", "-q", str(repository)], Path(folder), env)
        for number in range(20):
            (repository / f"file{number}.txt").write_text(f"{number}\n", encoding="utf-8")
            _run(["git", "add", "."], repository, env)
            _run(["git", "commit", "-q", "-m", f"Change {number}"], repository, env)
        command = str(Path(sys.executable).parent / "passdown")
        _run([command, "init", "--yes"], repository, env)
        _run([command, "handoff", "--yes", "--next", "Go on"], repository, env)
        bare = _median([sys.executable, "-c", "pass"], repository, env)
        found = [row("bare Python start", bare, "ms", f"median of {ROUNDS}")]
        for arguments, target in _TARGETS:
            taken = _median([command, *arguments], repository, env)
            name = " ".join(("passdown", *arguments))
            found.append(row(name, taken, "ms", f"median of {ROUNDS}, whole process", at_most=target))
    return found


def _environment(folder: Path) -> dict[str, str]:
    who = {f"GIT_{role}_{what}": "bench" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "PASSDOWN_DATA": str(folder / "data")}


def _run(command: list[str], folder: Path, env: dict[str, str]) -> None:
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)


def _median(command: list[str], folder: Path, env: dict[str, str]) -> float:
    _run(command, folder, env)
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        _run(command, folder, env)
        times.append(time.perf_counter() - start)
    return round(statistics.median(times) * 1000)
