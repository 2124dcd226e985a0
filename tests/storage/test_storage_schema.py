"""The schema on every engine: what it is, how it comes to be, who may not touch it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from storage_support import answer, child, files, put, refused, told, value_of

from passdown.storage import Store
from passdown.storage.version import SCHEMA_HEAD, SCHEMA_REVISIONS
from support.places import ADDED, TABLES, FilePlace, Place, ServerPlace

KEYS = {
    "pd_counters": ("name",),
    "pd_sources": ("scope_id", "source_key"),
    "pd_handoff_heads": ("scope_id",),
    "pd_handoff_revisions": ("scope_id", "revision"),
    "pd_handoff_evidence": ("scope_id", "revision", "ordinal"),
    "pd_tokens": ("token_id",),
    "pc_handoff_report_projects": ("project_id",),
    "pc_handoff_report_project_revisions": ("project_id", "version"),
    "pc_handoff_report_workstreams": ("scope_id",),
    "pc_handoff_report_workstream_revisions": ("scope_id", "version"),
    "pd_replays": ("request_key",),
    "pd_token_limits": ("token_id", "kind", "name"),
    "pd_acknowledgements": ("scope_id", "content_digest", "revision", "receipt_key"),
    "pd_test_runs": ("scope_id", "commit_oid", "source_key"),
}
UNIQUE = {
    ("pd_tokens", "unique", ("token_sha256",)),
    ("pd_handoff_heads", "unique", ("artifact_id",)),
    ("pc_handoff_report_projects", "unique", ("project_key",)),
    ("pc_handoff_report_workstreams", "unique", ("project_id", "workstream_key")),
}
INDEXES = {
    ("pd_sources", "plain", ("scope_id", "after_revision", "source_key")),
    ("pd_handoff_heads", "plain", ("updated_us",)),
    ("pc_handoff_report_workstreams", "plain", ("project_id", "scope_id")),
    ("pc_handoff_report_workstream_revisions", "plain", ("project_id", "catalog_revision")),
    ("pd_replays", "plain", ("recorded_us",)),
}
NULLABLE = {("pd_sources", name) for name in ("read_by", "name", "description", "remote_refs", "body")} | {
    ("pd_handoff_evidence", "source_key"),
    ("pd_handoff_evidence", "artifact_revision"),
    ("pd_tokens", "host"),
    ("pd_replays", "answer"),
    ("pd_tokens", "expires_us"),
    ("pd_tokens", "revoked_us"),
    ("pc_handoff_report_workstreams", "workstream_key"),
}
OBJECTS = {"sqlite": 34, "postgresql": 62, "mysql": 34, "oceanbase": 35}
"""How many things a migration creates: 15 tables with that of the tool, 5 indexes, two triggers for each of seven
tables. PostgreSQL has three, and replaces its one function before each; OceanBase has one more table."""

LONGEST = {
    "scope_id": 1024,
    "source_key": 32,
    "source_type": 256,
    "source_id": 2048,
    "media_type": 64,
    "sha256": 32,
    "recorded_by": 1024,
    "artifact_id": 512,
    "content_digest": 32,
    "token_id": 64,
    "principal": 1024,
    "role": 16,
    "token_sha256": 32,
    "host": 1024,
    "project_id": 64,
    "project_key": 256,
    "workstream_key": 256,
    "request_key": 32,
    "body_sha256": 32,
    "receipt_key": 32,
    "commit_oid": 32,
}
SERVERS = pytest.mark.engines("postgresql", "mysql", "oceanbase")
CONTENT_BYTES = 300_000


def whole(place: Place) -> None:
    """The schema of a place is complete."""
    primary = {(table, "primary", columns) for table, columns in KEYS.items()}
    own = {"pd_upgrades"} if place.engine == "oceanbase" else set()
    assert place.tables() == set(TABLES) | {"alembic_version"} | own
    primary |= {(table, "primary", ("id",)) for table in own}
    assert place.keys() == primary | UNIQUE | INDEXES
    assert place.nullable() == NULLABLE
    assert place.rows("SELECT version_num FROM alembic_version") == [(SCHEMA_HEAD,)]


def row(place: Place, table: str, key: bytes) -> tuple[str, dict[str, Any]]:
    """A statement and values that fill every column of a table."""
    columns = place.columns(table)
    values = {name: key if is_bytes else 1 for name, is_bytes in columns}
    places = ", ".join(f":{name}" for name in values)
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", values


def test_the_schema_has_these_tables_keys_and_indexes(place: Place) -> None:
    """Catches: a key in another order, a unique rule forgotten, a column that allows NULL, on any engine."""
    whole(place)


@pytest.mark.parametrize("table", [table for table, immutable in TABLES.items() if immutable])
def test_immutable_rows_are_kept_by_the_database_itself(store: Store, place: Place, table: str) -> None:
    """Catches: a statement of ours, or of any tool without our code, that changes history."""
    insert, values = row(place, table, b"k")
    assert store.write(lambda s: s.insert_new(insert, **values)) is True
    column = KEYS[table][0]
    changes = [(f"UPDATE {table} SET {column} = :v", {"v": b"k"}), (f"DELETE FROM {table}", {})]
    if store.engine == "postgresql":
        changes.append((f"TRUNCATE TABLE {table}", {}))
    else:
        changes.append((insert.replace("INSERT", "REPLACE"), values))
    for change, params in changes:
        error = refused(lambda change=change, params=params: store.write(lambda s: s.run(change, **params)))
        assert told(error) == ("internal_error", "immutable")
    with pytest.raises(Exception, match="immutable"):
        place.rows(f"DELETE FROM {table}")
    assert place.rows(f"SELECT COUNT(*) FROM {table}") == [(1,)]


def test_other_rows_can_change(store: Store, place: Place) -> None:
    """Catches: a trigger on a table whose rows move on."""
    for table, immutable in TABLES.items():
        if not immutable:
            insert, values = row(place, table, b"k")
            store.write(lambda s, insert=insert, values=values: s.run(insert, **values))
            sql = f"DELETE FROM {table} WHERE {KEYS[table][0]} = :v"
            assert store.write(lambda s, sql=sql: s.run(sql, v=b"k")) == 1


def test_every_column_takes_its_longest_value_and_gives_it_back(store: Store, place: Place) -> None:
    """Catches: a key wider than an index of some engine may be, bytes cut, padded or converted on their way.

    The bytes are random, since some engines compress what they index."""
    for table in TABLES:
        insert, values = row(place, table, b"")
        for name, value in values.items():
            if value == b"":
                length = LONGEST.get(name, CONTENT_BYTES)
                if name == "name":
                    length = {"pd_counters": 64, "pd_tokens": 1024, "pd_token_limits": 256}.get(table, CONTENT_BYTES)
                values[name] = os.urandom(length)
            else:
                values[name] = 2**15 - 1
        assert store.write(lambda s, insert=insert, values=values: s.insert_new(insert, **values)) is True
        keys = KEYS[table]
        where = " AND ".join(f"{key} = :{key}" for key in keys)
        sql = f"SELECT {', '.join(values)} FROM {table} WHERE {where}"
        chosen = {key: values[key] for key in keys}
        found = store.read(lambda s, sql=sql, chosen=chosen: s.one(sql, **chosen))
        assert found == tuple(values.values())
        assert {type(value) for value in found} <= {bytes, int}
        assert store.write(lambda s, insert=insert, values=values: s.insert_new(insert, **values)) is False


def test_the_tables_of_the_report_may_be_dropped_without_the_others_changing(fresh_place: Place) -> None:
    """Catches: a key from the core into the report, or triggers that stand in the way."""
    store = fresh_place.open(create=True)
    for table in TABLES:
        if table.startswith("pc_"):
            fresh_place.rows(f"DROP TABLE {table}")
    insert, values = row(fresh_place, "pd_handoff_revisions", b"k")
    assert store.write(lambda s: s.insert_new(insert, **values)) is True
    store.close()


def test_of_eight_processes_that_open_a_new_store_one_migrates_and_all_succeed(fresh_place: Place) -> None:
    """Catches: two migrations at once, or a busy error at the first start."""
    processes = [child("open_new", fresh_place.text) for _ in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [answer(process) for process in processes]
    assert sorted(told_by["migrated"] for told_by in answers) == [False] * 7 + [True]
    assert [told_by["writes"] for told_by in answers] == [0] * 8
    whole(fresh_place)


def test_a_newer_schema_is_refused_and_nothing_changes(fresh_place: Place) -> None:
    """Catches: older code that writes into, or migrates, what it does not know; and text from the store in an error."""
    fresh_place.open(create=True).close()
    for found, shown in (("0999", "0999"), ("f00d", "f00d"), ("<b>''; --", "unreadable")):
        fresh_place.rows(f"UPDATE alembic_version SET version_num = '{found}'")
        before = files(fresh_place.path.parent) if isinstance(fresh_place, FilePlace) else fresh_place.everything()
        for create in (True, False):
            error = refused(lambda create=create: fresh_place.open(create=create))
            assert (error.code, error.members) == ("schema_too_new", {"found": shown, "known": SCHEMA_HEAD})
        after = files(fresh_place.path.parent) if isinstance(fresh_place, FilePlace) else fresh_place.everything()
        assert after == before


def test_a_store_that_is_migrated_under_a_running_process_is_refused_from_then_on(fresh_place: Place) -> None:
    """Catches: an old server that goes on writing into a newer schema."""
    store = fresh_place.open(create=True)
    store.write(put(b"a"))
    fresh_place.rows("UPDATE alembic_version SET version_num = '0999'")
    assert refused(lambda: store.write(put(b"b"))).code == "schema_too_new"
    assert refused(store.writes).code == "schema_too_new"
    store.close()
    assert fresh_place.rows("SELECT COUNT(*) FROM pd_counters") == [(2,)]


@contextmanager
def halted_after_one_creation() -> Iterator[list[str]]:
    """While it lasts, SQLAlchemy halts behind the first statement that creates something."""

    def count(conn, cursor, statement, parameters, context, executemany):
        repeated = "FUNCTION" in statement or "pd_upgrades" in statement
        if statement.lstrip().upper().startswith("CREATE") and not repeated:
            created.append(statement)
            raise HaltError

    created: list[str] = []
    event.listen(Engine, "after_cursor_execute", count)
    try:
        yield created
    finally:
        event.remove(Engine, "after_cursor_execute", count)


class HaltError(Exception):
    pass


@pytest.mark.engines("mysql", "oceanbase")
def test_a_migration_whose_steps_commit_one_by_one_resumes_after_each_of_them(fresh_place: Place) -> None:
    """Catches: a step that cannot be repeated or is not done when its turn comes again. Each opening gets one step
    further, so every step is the last one once."""
    openings = 0
    with halted_after_one_creation() as created:
        while True:
            openings += 1
            try:
                fresh_place.open(create=True).close()
                break
            except HaltError:
                assert openings < 100
    assert len(created) == openings - 1 == OBJECTS["mysql"]
    assert len(set(created)) == len(created)
    whole(fresh_place)
    store = fresh_place.open()
    assert (store.writes(), value_of(store, b"writes")) == (0, 0)
    store.close()


@pytest.mark.engines("postgresql")
def test_a_migration_that_fails_on_a_transactional_engine_leaves_nothing(fresh_place: Place) -> None:
    """Catches: half a schema where the database can do better."""
    with halted_after_one_creation(), pytest.raises(HaltError):
        fresh_place.open(create=True)
    assert fresh_place.tables() == set()
    fresh_place.open(create=True).close()
    whole(fresh_place)


@SERVERS
@pytest.mark.parametrize("point", ["first", "middle", "last"])
def test_a_migration_killed_on_the_way_is_finished_by_the_next_opening(fresh_place: Place, point: str) -> None:
    """Catches: a lock that outlives its process, and a schema that can never be opened again."""
    total = OBJECTS[fresh_place.engine]
    process = child("migrate_and_die", fresh_place.text, {"first": 1, "middle": total // 2, "last": total}[point])
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    fresh_place.open(create=True).close()
    whole(fresh_place)


def test_the_number_of_created_objects_is_the_one_that_the_tests_cut_at(fresh_place: Place) -> None:
    """Catches: a migration that grew, after which "last" above is not the last step any more."""
    created: list[str] = []

    def count(conn, cursor, statement, parameters, context, executemany):
        if statement.lstrip().upper().startswith("CREATE"):
            created.append(statement)

    event.listen(Engine, "after_cursor_execute", count)
    try:
        fresh_place.open(create=True).close()
    finally:
        event.remove(Engine, "after_cursor_execute", count)
    assert len(created) == OBJECTS[fresh_place.engine]


@pytest.mark.parametrize("landed", SCHEMA_REVISIONS[:-1])
def test_every_landed_schema_is_brought_up_with_its_data(fresh_place: Place, landed: str) -> None:
    """Catches: a migration that works on empty stores only, or from the last version only."""
    fresh_place.open(create=True).close()
    for later in reversed(SCHEMA_REVISIONS[SCHEMA_REVISIONS.index(landed) + 1 :]):
        for table in ADDED[later]:
            fresh_place.rows(f"DROP TABLE {table}")
    fresh_place.rows(f"UPDATE alembic_version SET version_num = '{landed}'")
    _, values = row(fresh_place, "pd_handoff_revisions", b"kept")
    columns = ", ".join(values)
    literals = ", ".join(fresh_place.literal(value) for value in values.values())
    fresh_place.rows(f"INSERT INTO pd_handoff_revisions ({columns}) VALUES ({literals})")
    assert told(refused(lambda: fresh_place.open(migrate=False))) == ("store_not_readable", "schema_behind")
    store = fresh_place.open()
    assert store.read(lambda s: s.all("SELECT scope_id, revision FROM pd_handoff_revisions")) == [(b"kept", 1)]
    store.close()
    whole(fresh_place)


@SERVERS
def test_a_migration_keeps_the_data_that_is_there(fresh_place: Place) -> None:
    """Catches: steps that empty tables when the note of the revision was lost."""
    store = fresh_place.open(create=True)
    store.write(put(b"kept", 3))
    store.close()
    fresh_place.rows("DELETE FROM alembic_version")
    error = refused(lambda: fresh_place.open(create=True, migrate=False))
    assert told(error) == ("store_not_readable", "schema_behind")
    store = fresh_place.open(create=True)
    assert (value_of(store, b"kept"), store.writes()) == (3, 1)
    store.close()
    whole(fresh_place)


@SERVERS
def test_a_store_that_is_not_there_is_not_made_unless_asked(fresh_place: ServerPlace) -> None:
    """Catches: a read that leaves tables behind."""
    assert told(refused(fresh_place.open)) == ("store_not_readable", "missing")
    error = refused(lambda: fresh_place.open(create=True, migrate=False))
    assert told(error) == ("store_not_readable", "schema_behind")
    assert fresh_place.tables() == set()


@SERVERS
def test_a_database_of_another_program_is_not_adopted(fresh_place: ServerPlace) -> None:
    """Catches: our tables appearing among somebody else's, even of one that uses the same migration tool."""
    fresh_place.rows("CREATE TABLE guests (id INTEGER PRIMARY KEY)")
    for create in (True, False):
        error = refused(lambda create=create: fresh_place.open(create=create))
        assert told(error) == ("store_not_readable", "foreign")
    fresh_place.rows("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    fresh_place.rows("INSERT INTO alembic_version VALUES ('0001')")
    fresh_place.rows("DROP TABLE guests")
    assert told(refused(lambda: fresh_place.open(create=True))) == ("store_not_readable", "foreign")
    assert fresh_place.tables() == {"alembic_version"}


@SERVERS
def test_an_upgrade_that_waits_too_long_for_another_one_is_busy(fresh_place: ServerPlace) -> None:
    """Catches: two upgrades at once, or a wait without end."""
    from passdown.storage.address import locate
    from passdown.storage.server_engine import engine_named
    from passdown.storage.sql_opening import upgrade

    engine, address = engine_named(fresh_place.engine), locate(fresh_place.target)
    if fresh_place.engine == "postgresql":
        from passdown.storage.postgresql import UPGRADE_LOCK

        take = f"SELECT pg_advisory_lock({UPGRADE_LOCK})"
    else:
        from passdown.storage.mysql import upgrade_lock

        take = f"SELECT GET_LOCK('{upgrade_lock(fresh_place.database)}', 0)"
    if fresh_place.engine == "oceanbase":
        fresh_place.rows("CREATE TABLE pd_upgrades (id SMALLINT NOT NULL PRIMARY KEY)")
        fresh_place.rows("INSERT INTO pd_upgrades VALUES (1)")
        take = "UPDATE pd_upgrades SET id = 1"
    other = fresh_place.server.connect(fresh_place.database)
    cursor = other.cursor()
    cursor.execute("BEGIN")
    cursor.execute(take)
    assert refused(lambda: upgrade(engine, address, wait_seconds=0.2)).code == "store_busy"
    assert fresh_place.tables() <= {"pd_upgrades"}
    cursor.close()
    other.close()
    upgrade(engine, address)
    whole(fresh_place)
