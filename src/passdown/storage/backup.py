"""Backup and restore: everything that a store holds, as one file that is a store itself.

Design: a backup is a SQLite file of this version's schema, whatever engine it was taken from; every command can read it
with ``--database sqlite:///FILE``. It is read from one snapshot while writers go on, written beside its final name into
a private folder, read back and compared, made durable, and only then given its name. A restore goes into an empty
store, in one transaction that also reads everything back and compares it before it commits.

States of a backup: in the making (a folder ``.passdown-backup-…`` beside the target, which a killed process leaves
behind and anybody may remove) -> whole. States of a restore: nothing -> everything; whoever is killed on the way leaves
an empty store, and the restore can be repeated.

Invariants: a file under the final name is whole; no file is ever replaced; the source is never changed, an older schema
is brought up in a copy; rows are only inserted, so the triggers that keep them stay in force. Tokens are part of a
backup, as the SHA-256 that the store has of them.

Public operations: :func:`backup`, :func:`restore`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from passdown.kernel.errors import PassdownError
from passdown.storage.address import locate
from passdown.storage.faults import os_refusal, refusal
from passdown.storage.integrity import check_foundation, is_readable
from passdown.storage.opening import open_store
from passdown.storage.rows import Progress, RowDigest, Summary, batches, summary
from passdown.storage.session import Param, Row, Session, Store
from passdown.storage.sqlite_connect import connect_reader, schema_state
from passdown.storage.tables import COUNTERS, TABLES, WRITES, Table
from passdown.storage.version import SchemaState

PART_PREFIX: Final = ".passdown-backup-"
_TOGETHER: Final = 16
"""Rows in one INSERT; a fixed number, so that few different texts reach the caches of prepared statements."""

_TOGETHER_BYTES: Final = 2 * 1024 * 1024
"""Rows that are larger together are inserted one by one: a statement has to stay under 16 MiB, escaped."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied: rows by table, their digest, and how many bytes the file of a backup has."""

    summary: Summary
    bytes: int


def backup(source: Path | str, file: Path, *, progress: Progress | None = None) -> Copied:
    """Write everything that the store ``source`` holds into the new file ``file`` (mode 0600).

    ``source`` is what :func:`passdown.storage.open_store` takes; a missing store, or one on a server whose schema is
    behind, is ``store_not_readable``. Refused as ``file_exists``, or ``file_not_writable`` with a ``rule`` of the
    store; ``store_damaged`` with rule ``read_back`` if the new file does not hold what was written. Writers of the
    source are not held up.
    """
    if os.path.lexists(file):
        raise PassdownError("file_exists", field="file")
    with _opened(source) as store, _part_beside(file) as part:
        if not is_readable(store):
            raise PassdownError("store_not_readable", rule="damaged")
        copied = store.read(lambda session: _write_part(session, part, progress))
        if _read_back(part) != copied:
            raise PassdownError("store_damaged", rule="read_back")
        return Copied(copied, _publish(part, file))


def restore(file: Path, target: Path | str, *, digest: str | None = None, progress: Progress | None = None) -> Copied:
    """Put everything that the backup ``file`` holds into the empty store ``target``, which is made if absent.

    ``digest``: what the backup said when it was made; another one is ``digest_mismatch`` with ``digest`` ``rows``.
    Refused as ``file_not_readable``, ``store_not_readable`` (``foreign``, ``damaged``), ``schema_too_new``,
    ``store_not_empty`` with the first ``table`` that has rows, ``store_damaged`` with rule ``read_back``; nothing is
    then stored.
    """
    try:
        size = file.stat().st_size
    except (OSError, ValueError) as error:
        raise PassdownError("file_not_readable", field="file") from error
    if not file.is_file():
        raise PassdownError("file_not_readable", field="file", rule="not_a_file")
    if _state(file) == "absent":
        raise PassdownError("store_not_readable", rule="foreign")
    with _opened(file) as source:
        if not check_foundation(source)[1]:
            raise PassdownError("store_not_readable", rule="damaged")
        expected = source.read(summary)
        if digest is not None and digest != expected.digest:
            raise PassdownError("digest_mismatch", digest="rows")
        with closing(open_store(target, create=True)) as store:
            store.write(lambda session: _fill_empty(session, source, expected, progress))
    return Copied(expected, size)


# --- reading from a store -----------------------------------------------------------------------------------------


@contextmanager
def _opened(source: Path | str) -> Iterator[Store]:
    """The store, or a private copy of it where its file has an older schema."""
    place = locate(source) if isinstance(source, str) else source
    if not isinstance(place, Path) or not place.is_file() or _state(place) != "behind":
        with closing(open_store(source, create=False, migrate=False)) as store:
            yield store
        return
    with tempfile.TemporaryDirectory(prefix="passdown-") as folder:
        copy = Path(folder) / "passdown.db"
        _copy_file(place, copy)
        with closing(open_store(copy, create=False)) as store:
            yield store


def _state(path: Path) -> SchemaState:
    path = Path(os.path.realpath(path))
    try:
        connection, _ = connect_reader(path)
    except sqlite3.Error as error:
        raise refusal(error, writing=False) from error
    with closing(connection):
        return schema_state(connection)


def _copy_file(path: Path, copy: Path) -> None:
    try:
        source, _ = connect_reader(Path(os.path.realpath(path)))
        with closing(source), closing(sqlite3.connect(copy)) as target:
            source.backup(target, pages=1_024)
    except sqlite3.Error as error:
        raise refusal(error, writing=False) from error


# --- writing the file of a backup ---------------------------------------------------------------------------------


@contextmanager
def _part_beside(file: Path) -> Iterator[Path]:
    """Where the file is made: in a private folder beside ``file``, on the same file system, gone afterwards."""
    try:
        folder = tempfile.mkdtemp(prefix=PART_PREFIX, dir=file.absolute().parent)
    except OSError as error:
        raise _unwritten(os_refusal(error, writing=True)) from error
    try:
        yield Path(folder) / "passdown.db"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_part(session: Session, part: Path, progress: Progress | None) -> Summary:
    """Begins anew whenever the read is repeated."""
    for left in part.parent.iterdir():
        left.unlink()
    try:
        with closing(open_store(part, create=True)) as copy:
            return copy.write(lambda writing: _fill_part(session, writing, progress))
    except PassdownError as error:
        if error.code == "store_not_writable":
            raise _unwritten(error) from error
        raise


def _fill_part(reading: Session, writing: Session, progress: Progress | None) -> Summary:
    copied, writes = _copy_rows(reading, writing, progress)
    _set_writes(writing, writes - 1)
    return copied


def _read_back(part: Path) -> Summary:
    with closing(open_store(part, create=False, migrate=False)) as copy:
        return copy.read(summary)


def _publish(part: Path, file: Path) -> int:
    """Make the part durable and give it its name, unless somebody else took the name meanwhile."""
    try:
        with part.open("rb") as written:
            os.fsync(written.fileno())
        size = part.stat().st_size
        try:
            os.link(part, file)
        except FileExistsError:
            raise PassdownError("file_exists", field="file") from None
        except OSError:
            # File systems without hard links: the name was free a moment ago, which is the best that they allow.
            if os.path.lexists(file):
                raise PassdownError("file_exists", field="file") from None
            part.rename(file)
        folder = os.open(file.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _unwritten(os_refusal(error, writing=True)) from error
    return size


def _unwritten(error: PassdownError) -> PassdownError:
    return PassdownError("file_not_writable", field="file", rule=error.members.get("rule"))


# --- filling a store ----------------------------------------------------------------------------------------------


def _fill_empty(session: Session, source: Store, expected: Summary, progress: Progress | None) -> None:
    """The one transaction of a restore.

    The row of the counter of writes comes first: every other writer touches it last, so from here on none of them
    commits before this transaction ends, and what was empty stays empty.
    """
    session.run(f"UPDATE {COUNTERS.name} SET value = value + 1 WHERE name = :name", name=WRITES)
    _require_empty(session)
    copied, writes = source.read(lambda reading: _copy_rows(reading, session, progress))
    if copied != expected:
        raise PassdownError("store_busy")  # the file is a store that somebody writes
    _set_writes(session, writes)
    if summary(session) != expected:
        raise PassdownError("store_damaged", rule="read_back")
    _set_writes(session, writes - 1)


def _require_empty(session: Session) -> None:
    for table in TABLES:
        where = "WHERE name <> :name" if table is COUNTERS else ""
        params: dict[str, Param] = {"name": WRITES} if table is COUNTERS else {}
        if session.all(f"SELECT {table.key[0]} FROM {table.name} {where} LIMIT 1", **params):
            raise PassdownError("store_not_empty", table=table.name)


def _copy_rows(reading: Session, writing: Session, progress: Progress | None) -> tuple[Summary, int]:
    """Insert every row but the counter of writes, whose value is answered instead."""
    digest = RowDigest()
    writes: int | None = None
    for table in TABLES:
        for batch in batches(reading, table):
            done = digest.add(table, batch)
            rows: Sequence[Row] = batch
            if table is COUNTERS:
                writes = next((value for name, value in batch if name == WRITES), writes)
                rows = [row for row in batch if row[0] != WRITES]
            _insert(writing, table, rows)
            if progress is not None:
                progress(table.name, done)
    if writes is None:
        raise PassdownError("store_not_readable", rule="damaged")
    return digest.summary(), writes


def _set_writes(session: Session, value: int) -> None:
    """The transaction itself counts as a write, after its work: it raises what stands here by one."""
    session.run(f"UPDATE {COUNTERS.name} SET value = :value WHERE name = :name", value=value, name=WRITES)


def _insert(session: Session, table: Table, rows: Sequence[Row]) -> None:
    whole = len(rows) - len(rows) % _TOGETHER
    for start in range(0, whole, _TOGETHER):
        together = rows[start : start + _TOGETHER]
        if sum(len(value) for row in together for value in row if isinstance(value, bytes)) <= _TOGETHER_BYTES:
            _run(session, table, together)
        else:
            for row in together:
                _run(session, table, [row])
    for row in rows[whole:]:
        _run(session, table, [row])


def _run(session: Session, table: Table, rows: Sequence[Row]) -> None:
    places = ", ".join(
        "(" + ", ".join(f":v{number}_{place}" for place in range(len(table.columns))) + ")"
        for number in range(len(rows))
    )
    params = {f"v{number}_{place}": value for number, row in enumerate(rows) for place, value in enumerate(row)}
    session.run(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES {places}", **params)
