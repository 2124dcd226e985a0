"""Statements and child processes that the tests of the store share. Counters serve as the rows."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from passdown.kernel.errors import PassdownError

CHILDREN = Path(__file__).with_name("storage_children.py")
INSERT = "INSERT INTO pd_counters (name, value) VALUES (:name, :value)"
VALUE = "SELECT value FROM pd_counters WHERE name = :name"
COMPARE_AND_SET = "UPDATE pd_counters SET value = :seen + 1 WHERE name = :name AND value = :seen"


def put(name: bytes, value: int = 0) -> Any:
    """Work that inserts one counter; True if it was new."""
    return lambda session: session.insert_new(INSERT, name=name, value=value)


def value_of(store: Any, name: bytes) -> int | None:
    row = store.read(lambda session: session.one(VALUE, name=name))
    return None if row is None else row[0]


def refused(call: Any) -> PassdownError:
    """The refusal that ``call`` meets."""
    with pytest.raises(PassdownError) as caught:
        call()
    return caught.value


def told(error: PassdownError) -> tuple[str, Any]:
    return error.code, error.members.get("rule")


def child(role: str, *args: object) -> subprocess.Popen[str]:
    """A process that plays ``role`` of ``storage_children.py``, with pipes."""
    return subprocess.Popen(
        [sys.executable, str(CHILDREN), role, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str], *, say: str = "") -> Any:
    """Say the last word to a child and take the JSON that it prints."""
    out, _ = process.communicate(say, timeout=60)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


def raw(path: Path) -> sqlite3.Connection:
    """The file seen by SQLite itself, past the store."""
    return sqlite3.connect(path, isolation_level=None)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = raw(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def schema_of(path: Path) -> list[tuple[Any, ...]]:
    return rows(path, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}
