"""A server process over a store, with a clock that stands still and ids that count: ``served.py FOLDER HOST``.

Prints the token of an owner on a host with its own reader, then the ready line.
"""

from __future__ import annotations

import sys
from pathlib import Path

from passdown.api.app import create_app
from passdown.api.server import serve
from passdown.app.application import open_application
from passdown.app.operations import OPERATIONS
from passdown.identity.service import TokenService
from passdown.kernel.clock import FixedClock
from passdown.kernel.ids import RandomIds, SequentialIds

NOW_US = 1_800_000_000_000_000


def main(folder: Path, host: str) -> None:
    clock = FixedClock(NOW_US)
    with open_application(folder, create=True, clock=clock, ids=SequentialIds()) as application:
        tokens = TokenService(application.store, clock, RandomIds(clock))
        print(tokens.create("client", "codex-2", "owner", host="buildbox")[0], flush=True)
        app = create_app(
            application.handlers(),
            OPERATIONS,
            tokens,
            allowed_hosts=[host],
            replays=application.replays(),
            places=application.places(),
            writes=application.store.writes,
        )
        serve(app, host, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
