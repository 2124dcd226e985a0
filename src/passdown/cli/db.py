"""``db``: look after the store itself: check it, bring it up to this version, copy it, put a copy back.

These work on the store of this machine or on a database, never through a Passdown server. None of them needs a
repository or a workstream.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passdown.cli import screen
from passdown.cli.context import Data, Json, place, where_there_is_a_store
from passdown.kernel.errors import PassdownError

if TYPE_CHECKING:
    from passdown.cli.context import Place
    from passdown.storage.backup import Copied
    from passdown.storage.findings import Check
    from passdown.storage.rows import Progress

db_app = typer.Typer(help="Check, upgrade, back up or restore the store.", rich_markup_mode=None, no_args_is_help=True)


@db_app.command()
def check(data: Data = None, json: Json = False) -> None:
    """Read the whole store and tell what does not fit together.

    Every digest is computed anew; nothing is repaired and an older schema is left as it is. Exit code 5 if anything is
    wrong.
    """
    from passdown.app.integrity import check_store

    here = place(data)
    with _guided(), _progress(json=json) as progress:
        found = check_store(_target(here), progress)
    if json:
        screen.show_json(
            {
                "store": here.target.recorded,
                "engine": found.engine,
                "schema_version": found.schema_version,
                "ok": found.ok,
                "complete": found.complete,
                "checks": [_value(item) for item in found.checks],
            }
        )
    else:
        screen.show(_lines(found.checks))
        if not found.complete:
            screen.show(["  · further checks were left out: they need a store that can be read"])
    if not found.ok:
        sys.stdout.flush()
        problems = sum(problem.count for item in found.checks for problem in item.problems)
        raise PassdownError("store_damaged", problems=problems)


@db_app.command()
def upgrade(data: Data = None, json: Json = False) -> None:
    """Bring the schema of the store up to this version.

    Other commands do the same when they open an older store; `db check` and `db backup` do not.
    """
    from passdown.storage.upgrading import upgrade_store

    here = place(data)
    with where_there_is_a_store():
        done = upgrade_store(_target(here))
    if json:
        screen.show_json({"from": done.before, "to": done.after, "changed": done.changed})
    elif done.changed:
        screen.show([f"Upgraded from schema {done.before or 'none'} to {done.after}."])
    else:
        screen.show([f"Schema {done.after} is that of this version; nothing to do."])


@db_app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="New file; an existing one is never replaced.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Copy everything into one new file, while others go on writing.

    The file is a store itself, in SQLite whatever the engine, and readable only by you. It holds the tokens of the
    server too: their SHA-256, with which nobody can log in, so whoever restores it lets the same tokens in again.
    """
    from passdown.storage.backup import backup as write

    here = place(data)
    with _guided(), _progress(json=json) as progress:
        copied = write(_target(here), file, progress=progress)
    _tell(copied, file, "Backed up", json=json)


@db_app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="File that `passdown db backup` made.")],
    digest: Annotated[
        str | None, typer.Option(help="Digest that the backup told when it was made; another one is refused.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Put a backup into an empty store, all of it or nothing.

    The store is made where there is none. It then also takes the tokens that the backup holds.
    """
    from passdown.storage.backup import restore as read

    here = place(data)
    with _progress(json=json) as progress:
        copied = read(file, _target(here), digest=digest, progress=progress)
    _tell(copied, file, "Restored", json=json)


def _target(here: Place) -> Path | str:
    from passdown.app.paths import database_path

    store = here.require_own_store()
    return database_path(store) if isinstance(store, Path) else store


@contextmanager
def _guided() -> Iterator[None]:
    """What to do about a store that is missing, or whose schema these commands leave as it is."""
    with where_there_is_a_store():
        try:
            yield
        except PassdownError as error:
            if error.members.get("rule") != "schema_behind":
                raise
            guidance = "Bring it up to this version with `passdown db upgrade`."
            raise PassdownError(error.code, rule="schema_behind", guidance=guidance) from None


# --- what is shown ------------------------------------------------------------------------------------------------


def _value(item: Check) -> dict[str, Any]:
    return {
        "name": item.name,
        "examined": item.examined,
        "unit": item.unit,
        "ok": item.ok,
        "problems": [
            {"code": problem.code, "count": problem.count, "first": list(problem.first)} for problem in item.problems
        ],
    }


def _lines(checks: tuple[Check, ...]) -> list[str]:
    width = max(len(item.name) for item in checks)
    lines = []
    for item in checks:
        mark = "✓" if item.ok else "!"
        unit = item.unit.removesuffix("s") if item.examined == 1 else item.unit
        lines.append(f"  {mark} {item.name:<{width}}  {item.examined} {unit}")
        for problem in item.problems:
            lines.append(f"      {problem.code}: {problem.count}")
            for first in problem.first:
                told = ", ".join(f"{name} {value}" for name, value in first.items() if value != "")
                lines += screen.flowing(told, 8)
    return lines


def _tell(copied: Copied, file: Path, word: str, *, json: bool) -> None:
    from passdown.storage.version import SCHEMA_HEAD

    if json:
        screen.show_json(
            {
                "file": str(file),
                "bytes": copied.bytes,
                "schema_version": SCHEMA_HEAD,
                "rows": copied.summary.rows,
                "total_rows": copied.summary.total,
                "digest": copied.summary.digest,
            }
        )
        return
    screen.show(
        [
            f"{word} {copied.summary.total} rows; read back, they are the same.",
            *screen.fields([("file", str(file)), ("digest", copied.summary.digest)]),
        ]
    )


@contextmanager
def _progress(*, json: bool) -> Iterator[Progress | None]:
    """On a terminal, one line that tells how far it is; gone when it is done."""
    if json or not sys.stderr.isatty():
        yield None
        return

    def tell(table: str, done: int) -> None:
        sys.stderr.write(f"\r\x1b[K  {table}: {done}")
        sys.stderr.flush()

    try:
        yield tell
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
