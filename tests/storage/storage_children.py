"""Roles that child processes of the storage tests play: ``python storage_children.py ROLE TARGET …``.

The target is the path of a file or the URL of a store.

Each prints lines, the last of them JSON, and waits where it reads a line.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

from passdown.kernel.errors import PassdownError
from passdown.storage import open_store

INSERT = "INSERT INTO pd_counters (name, value) VALUES (:name, :value)"
VALUE = "SELECT value FROM pd_counters WHERE name = :name"


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


def drop_privileges() -> None:
    """Become nobody where we are root, whom file modes do not stop."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def attempt(call):
    try:
        return call()
    except PassdownError as error:
        return [error.code, error.members.get("rule")]


def contend(path: Path | str, rounds: str) -> None:
    """Win as many rounds of compare-and-set as possible; each round has a row that only its winner may insert."""
    won = 0
    with_round = 0
    store = open_store(path, create=False)
    sys.stdin.readline()
    while with_round < int(rounds):
        with_round = store.read(lambda s: s.one(VALUE, name=b"round"))[0]
        if with_round >= int(rounds):
            break

        def work(session, seen=with_round):
            sql = "UPDATE pd_counters SET value = :seen + 1 WHERE name = :name AND value = :seen"
            if session.run(sql, name=b"round", seen=seen) != 1:
                return 0
            session.run(INSERT, name=b"winner-%d" % seen, value=os.getpid())
            return 1

        won += store.write(work)
    store.close()
    say(won)


def commit_loop(path: Path | str, first: str) -> None:
    """Commit pairs of rows for ever; print each number once it is durable."""
    store = open_store(path, create=False)
    number = int(first)
    while True:

        def work(session, number=number):
            session.run(INSERT, name=b"left-%d" % number, value=number)
            session.run(INSERT, name=b"right-%d" % number, value=number)

        store.write(work)
        print(number, flush=True)
        number += 1


def hold_turn(path: Path | str) -> None:
    """Stay inside a write until told to go on."""
    store = open_store(path, create=False)

    def work(session):
        session.run(INSERT, name=b"held", value=1)
        print("inside", flush=True)
        sys.stdin.readline()

    store.write(work)
    store.close()
    say("committed")


def open_new(path: Path | str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    store = open_store(path, create=True)
    counted = store.writes()
    store.close()
    say({"migrated": "alembic" in sys.modules, "writes": counted})


def open_current(path: Path) -> None:
    store = open_store(path, create=False)
    store.write(lambda s: s.insert_new(INSERT, name=b"light", value=1))
    store.read(lambda s: s.one(VALUE, name=b"light"))
    store.close()
    heavy = ("sqlalchemy", "alembic", "pydantic", "fastapi", "typer", "orjson")
    say([name for name in heavy if name in sys.modules])


def unprivileged(path: Path, name: str) -> None:
    """Read a counter and try to write, as a user whom the modes of the files stop."""
    drop_privileges()

    def use():
        store = open_store(path, create=False)
        try:
            return [
                attempt(lambda: store.read(lambda s: s.one(VALUE, name=name.encode())[0])),
                attempt(lambda: store.write(lambda s: s.insert_new(INSERT, name=b"intruder", value=1))),
            ]
        finally:
            store.close()

    say(attempt(use))


def unprivileged_create(path: Path) -> None:
    drop_privileges()
    say(attempt(lambda: open_store(path, create=True)))


def unprivileged_read_beside_a_writer(path: Path) -> None:
    """Stop inside a read until the parent has committed; tell the value of every call."""
    drop_privileges()
    seen = []

    def work(session):
        seen.append(session.one(VALUE, name=b"changing")[0])
        if len(seen) == 1:
            print("inside", flush=True)
            sys.stdin.readline()
        return session.one(VALUE, name=b"changing")[0]

    store = open_store(path, create=False)
    result = store.read(work)
    store.close()
    say({"seen": seen, "result": result})


def fill(path: Path, room: str) -> None:
    """Write under a limit on the size of files until refused, then lift the limit and write again."""
    store = open_store(path, create=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if int(room):
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + int(room), hard))
    acknowledged, refusal = 0, None
    while refusal is None and acknowledged < 100_000:

        def work(session, number=acknowledged):
            for part in range(40):
                session.run(INSERT, name=b"fill-%d-%d-" % (number, part) + b"x" * 40, value=number)
            return True

        result = attempt(lambda work=work: store.write(work))
        if result is True:
            acknowledged += 1
        else:
            refusal = result
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    reading = attempt(lambda: store.read(lambda s: s.one("SELECT COUNT(*) FROM pd_counters"))[0])
    for name in path.parent.glob("ballast*"):
        name.unlink()
    after = attempt(lambda: store.write(lambda s: s.insert_new(INSERT, name=b"after", value=1)))
    store.close()
    say({"acknowledged": acknowledged, "refusal": refusal, "reading": reading, "after": after})


def fork_after_use(path: Path | str) -> None:
    """Fork with a used store; the child tells which files of the store it inherited, then both write."""
    store = open_store(path, create=False)
    store.write(lambda s: s.insert_new(INSERT, name=b"before", value=1))
    store.read(lambda s: s.one(VALUE, name=b"before"))
    process = os.fork()
    if process == 0:
        inherited = []
        for fd in os.listdir("/proc/self/fd"):
            try:
                inherited.append(os.readlink(f"/proc/self/fd/{fd}"))
            except FileNotFoundError:
                continue
        leaked = [name for name in inherited if name.startswith(str(path))]
        done = store.write(lambda s: s.insert_new(INSERT, name=b"child", value=len(leaked)))
        store.close()
        os._exit(0 if done else 1)
    _, status = os.waitpid(process, 0)
    store.write(lambda s: s.insert_new(INSERT, name=b"parent", value=1))
    found = store.read(
        lambda s: s.all("SELECT name, value FROM pd_counters WHERE name <> :w ORDER BY name", w=b"writes")
    )
    store.close()
    say({"status": status, "rows": [[name.decode(), value] for name, value in found]})


def fork_inside(path: Path | str, where: str) -> None:
    """Fork inside a transaction; the child must refuse to go on, the parent must not notice."""
    store = open_store(path, create=False)

    def work(session):
        if where == "write":
            session.run(INSERT, name=b"parent", value=1)
        process = os.fork()
        if process == 0:
            told = [
                attempt(lambda: session.one(VALUE, name=b"writes")),
                attempt(lambda: store.read(lambda s: s.one(VALUE, name=b"writes"))),
            ]
            expected = [["internal_error", "session_inherited"], ["internal_error", "forked_in_use"]]
            if told != expected:
                os._exit(2)
            raise SystemExit(0)
        return os.waitpid(process, 0)[1]

    status = (store.write if where == "write" else store.read)(work)
    again = store.write(lambda s: s.insert_new(INSERT, name=b"again", value=1))
    store.close()
    say({"status": status, "again": again})


def fork_inside_on_a_server(url: str, where: str) -> None:
    """Fork inside a transaction; the child may not touch it and works by its own, the parent must not notice."""
    store = open_store(url, create=False)

    def work(session):
        if where == "write":
            session.run(INSERT, name=b"parent", value=1)
        process = os.fork()
        if process == 0:
            told = attempt(lambda: session.one(VALUE, name=b"writes"))
            own = store.read(lambda s: s.one(VALUE, name=b"parent"))
            if (told, own) != (["internal_error", "session_inherited"], None):
                os._exit(2)
            raise SystemExit(0)
        return os.waitpid(process, 0)[1], session.one(VALUE, name=b"writes")

    status, counted = (store.write if where == "write" else store.read)(work)
    again = store.write(lambda s: s.insert_new(INSERT, name=b"again", value=1))
    store.close()
    say({"status": status, "counted": counted[0], "again": again})


def migrate_and_die(url: str, number: str) -> None:
    """Open a new store and be killed as soon as ``number`` objects of its schema were created."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    created = []

    def count(conn, cursor, statement, parameters, context, executemany):
        if statement.lstrip().upper().startswith("CREATE"):
            created.append(statement)
            if len(created) == int(number):
                os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "after_cursor_execute", count)
    open_store(url, create=True).close()
    say(len(created))


if __name__ == "__main__":
    place = sys.argv[2] if "://" in sys.argv[2] else Path(sys.argv[2])
    globals()[sys.argv[1]](place, *sys.argv[3:])
