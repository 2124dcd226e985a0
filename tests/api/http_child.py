"""A server process of its own: ``http_child.py FOLDER HOST PORT``; prints its agent token before the ready line."""

from __future__ import annotations

import sys
from pathlib import Path

from http_support import OPERATIONS, Notes

from passdown.api.app import create_app
from passdown.api.server import serve
from passdown.identity.service import TokenService
from passdown.kernel.clock import SystemClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import RandomIds
from passdown.storage import open_store


def main(folder: Path, host: str, port: int) -> int:
    store = open_store(folder / "passdown.db", create=True)
    tokens = TokenService(store, SystemClock(), RandomIds(SystemClock()))
    print(tokens.create("child", "codex-2", "agent")[0], flush=True)
    try:
        app = create_app(Notes(store).handlers(), OPERATIONS, tokens, document_operations={"print_notes"})
        serve(app, host, port)
    except PassdownError as refused:
        print(f"{refused.code} {refused.members['rule']}", flush=True)
        return refused.spec.exit_code
    finally:
        store.close()
    print("ended", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
