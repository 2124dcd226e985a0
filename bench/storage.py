"""How fast durable writes are: ``python -m bench.storage``.

Both sides of the ratio run in turns in one process, on one file system, each on a file of its own with the write-ahead
log and full synchronisation, one row a transaction.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, Table, create_engine, event
from sqlalchemy.engine import Engine

from passdown.storage import Session, Store, open_store

BLOCKS = 12
COMMITS = 60
THREADS = 64
WRITES = 12
INSERT = "INSERT INTO pd_counters (name, value) VALUES (:name, :value)"


def rows() -> list[dict[str, Any]]:
    """Measure; one dictionary for each line: ``name, value, unit, target, met, how``."""
    with tempfile.TemporaryDirectory(prefix="passdown-bench-") as folder:
        ours, bare = _rates(Path(folder))
        p99, p50, rate = _threads(Path(folder))
    ratio = round(ours / bare, 2)
    how = f"{BLOCKS} blocks of {COMMITS} commits in turns, medians"
    return [
        _row("durable single-row commits through the store", round(ours), "1/s", None, None, how),
        _row("durable single-row commits, bare SQLAlchemy Core", round(bare), "1/s", None, None, how),
        _row("store against bare SQLAlchemy Core", ratio, "ratio", ">= 0.4", ratio >= 0.4, "of the two lines above"),
        _row(f"{THREADS} writers, p99 of one write", p99, "ms", "< 1000", p99 < 1000, f"{WRITES} writes a thread"),
        _row(f"{THREADS} writers, p50 of one write", p50, "ms", None, None, "same run"),
        _row(f"{THREADS} writers, commits", rate, "1/s", None, None, "same run"),
    ]


def _row(name: str, value: float, unit: str, target: str | None, met: bool | None, how: str) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "how": how}


def _rates(folder: Path) -> tuple[float, float]:
    store = open_store(folder / "rates" / "passdown.db", create=True)
    engine, table = _bare(folder / "bare.db")
    ours: list[float] = []
    bare: list[float] = []

    def write_ours(number: int) -> None:
        store.write(lambda session: session.run(INSERT, name=b"%d" % number, value=number))

    def write_bare(number: int) -> None:
        with engine.begin() as connection:
            connection.execute(table.insert().values(name=b"%d" % number, value=number))

    for block in range(BLOCKS):
        ours.append(_rate(write_ours, block))
        bare.append(_rate(write_bare, block))
    store.close()
    engine.dispose()
    return statistics.median(ours), statistics.median(bare)


def _rate(write: Callable[[int], None], block: int) -> float:
    begin = time.perf_counter()
    for number in range(block * COMMITS, (block + 1) * COMMITS):
        write(number)
    return COMMITS / (time.perf_counter() - begin)


def _bare(path: Path) -> tuple[Engine, Table]:
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    metadata = MetaData()
    table = Table("t", metadata, Column("name", LargeBinary, primary_key=True), Column("value", BigInteger))
    metadata.create_all(engine)
    return engine, table


def _threads(folder: Path) -> tuple[float, float, int]:
    store = open_store(folder / "threads" / "passdown.db", create=True)
    barrier = threading.Barrier(THREADS + 1)
    taken: list[float] = []

    def contend(number: int) -> None:
        barrier.wait()
        for turn in range(WRITES):
            begin = time.perf_counter()
            _insert(store, b"%d-%d" % (number, turn))
            taken.append((time.perf_counter() - begin) * 1000)

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begin
    store.close()
    cuts = statistics.quantiles(taken, n=100)
    return round(cuts[98], 1), round(cuts[49], 1), round(len(taken) / seconds)


def _insert(store: Store, name: bytes) -> None:
    def work(session: Session) -> bool:
        return session.insert_new(INSERT, name=name, value=0)

    if not store.write(work):
        raise RuntimeError("two threads wrote the same row")


if __name__ == "__main__":
    for line in rows():
        print(json.dumps(line))
