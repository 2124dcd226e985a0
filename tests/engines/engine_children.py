"""Roles that child processes play: ``python engine_children.py ROLE URL …``. Each prints lines of JSON."""

from __future__ import annotations

import json
import sys

from engine_support import HOST, SCOPE, outcome, prepared

from passdown.app.application import open_application
from passdown.handoff.models import PreparedHandoff
from passdown.handoff.operations import COMMIT_HANDOFF
from passdown.kernel.wire import validate


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


def commit_given(url: str) -> None:
    """Commit each prepared handoff that a line of the input holds; print each answer."""
    with open_application(url, create=False) as application:
        call = application.caller(HOST)
        say("ready")
        for line in sys.stdin:
            ask = validate(PreparedHandoff, json.loads(line))
            say(outcome(lambda ask=ask: call(COMMIT_HANDOFF, ask).model_dump(mode="json")))


def commit_loop(url: str, note: str, name: str, base: str) -> None:
    """Commit for ever, each revision on the one before; print each answer after it came."""
    with open_application(url, create=False) as application:
        call = application.caller(HOST)
        ref = json.loads(base)
        number = 0
        while True:
            number += 1
            value = prepared(json.loads(note), ref, objective=f"{name} {number}", scope_id=SCOPE)
            answer = call(COMMIT_HANDOFF, validate(PreparedHandoff, value)).model_dump(mode="json")
            ref = answer["handoff_ref"]
            say({"ref": ref, "digest": value["content_digest"]})


def serve(url: str) -> None:
    """A server over the store; prints its address and a new owner token, ends with its input."""
    import threading

    from passdown.api.app import create_app
    from passdown.api.server import bind_listener, make_server, url_of
    from passdown.app.operations import OPERATIONS
    from passdown.identity.service import TokenService

    with open_application(url, create=True) as application:
        tokens = TokenService(application.store, application.clock, application.ids)
        token, record = tokens.create("owner", "olga", "owner", host="workbench")
        app = create_app(
            application.handlers(),
            OPERATIONS,
            tokens,
            replays=application.replays(),
            places=application.places(),
            writes=application.store.writes,
        )
        listener = bind_listener("127.0.0.1", 0)
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        say({"url": url_of("127.0.0.1", listener), "token": token, "token_id": record.token_id})
        for line in sys.stdin:
            tokens.revoke(line.strip())
            say("revoked")
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
