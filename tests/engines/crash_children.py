"""A process that makes processes which die: ``python crash_children.py URL``.

Each line of its input is one handoff to make, and where the process that makes it is killed: in front of or behind the
statement of a number, counted from 0 over everything that the operation sends to its database, the commit as well. A
line without a place is carried out to its end and answered with the statements that it took. The statements are
counted where the driver gets them, so none of the product's own seams decides what is a statement.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from typing import Any

import orjson
import sqlalchemy
from engine_support import BY_NAME, HOST
from sqlalchemy import event

from passdown.app.application import open_application
from passdown.kernel.wire import read_model


class Trap:
    """Counts statements once it is set, and kills this process at its place."""

    def __init__(self) -> None:
        self.statements: list[str] | None = None
        self.number: int | None = None
        self.when: str | None = None

    def set(self, number: int | None, when: str | None) -> None:
        self.statements, self.number, self.when = [], number, when

    def before(self, statement: str) -> None:
        if self.statements is not None:
            self.statements.append(statement)
            self._spring("before")

    def after(self) -> None:
        if self.statements is not None:
            self._spring("after")

    def _spring(self, when: str) -> None:
        if when == self.when and len(self.statements or ()) - 1 == self.number:
            os.kill(os.getpid(), signal.SIGKILL)


TRAP = Trap()


class TrappedConnection(sqlite3.Connection):
    """Every statement of the store passes here: it uses no cursor of its own."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        TRAP.before(sql)
        answer = super().execute(sql, *parameters)
        TRAP.after()
        return answer

    def cursor(self, *_: Any) -> sqlite3.Cursor:
        raise AssertionError("a statement that would not be counted")


def trap_sqlite() -> None:
    connect = sqlite3.connect

    def trapped(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **options, factory=TrappedConnection)

    sqlite3.connect = trapped


def trap_servers() -> None:
    """The drivers begin a transaction with its first statement, so there is no BEGIN to stand beside."""
    commit = sqlalchemy.Connection.commit

    def trapped(connection: sqlalchemy.Connection) -> None:
        TRAP.before("COMMIT")
        commit(connection)
        TRAP.after()

    sqlalchemy.Connection.commit = trapped
    event.listen(sqlalchemy.Engine, "before_cursor_execute", lambda *given: TRAP.before(given[2]))
    event.listen(sqlalchemy.Engine, "after_cursor_execute", lambda *_: TRAP.after())


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


def make(url: str, asked: dict[str, Any]) -> None:
    op = BY_NAME[asked["operation"]]
    ask = read_model(op.ask, orjson.dumps(asked["ask"]))
    with open_application(url, create=False) as application:
        # A first connection asks its server who it is; that belongs to no operation.
        application.store.write(lambda session: session.all("SELECT 1 FROM pd_counters"))
        TRAP.set(asked["number"], asked["when"])
        application.caller(HOST)(op, ask)
        say(TRAP.statements)


def main(url: str) -> None:
    if url.startswith("sqlite:"):
        trap_sqlite()
    else:
        trap_servers()
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            make(url, json.loads(line))
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(process, 0)
        say({"killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, "status": status})


if __name__ == "__main__":
    main(sys.argv[1])
