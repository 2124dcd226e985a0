"""Roles that child processes of the handoff tests play: ``python handoff_children.py ROLE DATA …``."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from passdown.app.application import Application, open_application
from passdown.app.paths import database_path
from passdown.handoff.models import PreparedHandoff
from passdown.handoff.operations import COMMIT_HANDOFF, FINALIZE_HANDOFF, FinalizeHandoffAsk
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.wire import dump, validate
from passdown.storage import open_store

HOST = Principal("child", "asserted", "owner", host="workbench")


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


def attempt(call, prepared):
    """What a commit answers, or its code and the current revision."""
    try:
        return dump(call(COMMIT_HANDOFF, prepared))
    except PassdownError as error:
        return {"code": error.code, "current": error.members.get("current")}


def commit_given(data: Path) -> None:
    """Commit each prepared handoff that a line of the input holds; print each answer."""
    with open_application(data, create=False) as application:
        call = application.caller(HOST)
        say("ready")
        for line in sys.stdin:
            say(attempt(call, validate(PreparedHandoff, json.loads(line))))


def commit_loop(data: Path, scope_id: str, citation: str, name: str) -> None:
    """Commit for ever: print each prepared handoff before it is sent and each answer after it came."""
    with open_application(data, create=False) as application:
        call = application.caller(HOST)
        number = 0
        while True:
            number += 1
            draft = {
                "objective": f"{name} {number}",
                "state": [{"text": "It stands.", "citations": [json.loads(citation)]}],
                "disposition": "continuable",
                "next_action": None,
                "omissions": [],
            }
            ask = validate(FinalizeHandoffAsk, {"scope_id": scope_id, "draft": draft})
            prepared = call(FINALIZE_HANDOFF, ask)
            say({"sent": dump(prepared)})
            say({"answer": attempt(call, prepared)})


class _Dying:
    """A session whose process is killed in front of statement number ``last``."""

    def __init__(self, session, last: int) -> None:
        self._session, self._last, self.count = session, last, 0

    def __getattr__(self, name: str):
        method = getattr(self._session, name)

        def call(*args, **params):
            if self.count == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1
            return method(*args, **params)

        return call


class _DyingStore:
    """A store that dies in front of one statement of a write, or behind the last one."""

    def __init__(self, store, last: int) -> None:
        self._store, self._last = store, last

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def write(self, work):
        def dying(session):
            wrapped = _Dying(session, self._last)
            result = work(wrapped)
            if wrapped.count == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return self._store.write(dying)


def die_everywhere(data: Path) -> None:
    """Commit what the input holds in a child that is killed before statement 0, 1, …; print how each ended.

    The last child lives: its number is one more than there are statements.
    """
    prepared = validate(PreparedHandoff, json.loads(sys.stdin.readline()))
    for last in range(100):
        process = os.fork()
        if process == 0:
            application = Application(_DyingStore(open_store(database_path(data), create=False), last))
            attempt(application.caller(HOST), prepared)
            application.close()
            os._exit(0)
        _, status = os.waitpid(process, 0)
        say({"killed": os.WIFSIGNALED(status), "exit": status if os.WIFEXITED(status) else None})
        if sys.stdin.readline().strip() != "next":
            return


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
