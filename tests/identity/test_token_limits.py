"""What a token is confined to: kept, listed, bounded, and carried over from a store that knew no confinement."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from passdown.identity.rules import Access, fingerprint
from passdown.identity.service import TokenService
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import RandomIds
from passdown.kernel.operations import Principal
from passdown.storage import Store, open_store
from passdown.storage import migrate as migration
from passdown.storage.version import APPLICATION_ID

NOW_US = 1_800_000_000_000_000
TOKEN = "pdt_" + "A" * 43


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "passdown.db", create=True)) as opened:
        yield opened


@pytest.fixture
def tokens(store: Store) -> TokenService:
    clock = FixedClock(NOW_US)
    return TokenService(store, clock, RandomIds(clock))


def test_what_a_token_names_is_kept_with_it_and_with_no_other(tokens: TokenService) -> None:
    """Fault caught: limits that are lost, mixed up between tokens or between their two kinds."""
    one, first = tokens.create("a", "ana", "agent", projects=["p2", "p1", "p2"], operations=["get_handoff"])
    two, _ = tokens.create("b", "bob", "reader")
    three, _ = tokens.create("c", "cat", "agent", projects=["get_handoff"])
    assert (first.projects, first.operations) == (("p1", "p2"), ("get_handoff",))
    found = tokens.access(one)
    assert found == Access(
        Principal("ana", "authenticated", "agent"), frozenset({"p1", "p2"}), frozenset({"get_handoff"})
    )
    assert tokens.access(two) == Access(Principal("bob", "authenticated", "reader"))
    assert (tokens.access(three).projects, tokens.access(three).operations) == ({"get_handoff"}, frozenset())
    assert {record.name: (record.projects, record.operations) for record in tokens.list()} == {
        "a": (("p1", "p2"), ("get_handoff",)),
        "b": ((), ()),
        "c": (("get_handoff",), ()),
    }
    assert tokens.revoke(first.token_id).projects == ("p1", "p2")


@pytest.mark.parametrize(
    ("members", "field", "rule"),
    [
        ({"projects": [""]}, "projects", "empty"),
        ({"projects": ["p" * 65]}, "projects", "too_long"),
        ({"projects": [" p"]}, "projects", "edge_space"),
        ({"projects": [f"p{number}" for number in range(101)]}, "projects", "too_long"),
        ({"operations": ["Get"]}, "operations", "operation"),
        ({"operations": [""]}, "operations", "operation"),
        ({"operations": ["o" * 65]}, "operations", "operation"),
        ({"operations": ["o" + "x" * number for number in range(60)] + ["p" + "x" * n for n in range(41)]},
         "operations", "too_long"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_limit_is_refused_and_makes_no_token(
    tokens: TokenService, members: dict[str, Any], field: str, rule: str
) -> None:
    """Fault caught: a limit that is dropped because it is odd, so that the token may do everything."""
    with pytest.raises(PassdownError) as refused:
        tokens.create("n", "ana", "agent", **members)
    assert refused.value.code == "invalid_request"
    assert refused.value.members["errors"] == [{"field": field, "rule": rule}]
    assert tokens.list() == []


def test_a_hundred_of_each_are_kept(tokens: TokenService) -> None:
    """Fault caught: a limit that is off by one."""
    names = ["o" + chr(97 + number // 26) + chr(97 + number % 26) for number in range(100)]
    token, _ = tokens.create("n", "ana", "agent", projects=names, operations=names)
    access = tokens.access(token)
    assert access.projects == access.operations == set(names)


@pytest.mark.parametrize(
    ("access", "effect", "rule"),
    [
        (Access(Principal("a", "authenticated", "reader")), "append", "role"),
        (Access(Principal("a", "authenticated", "owner"), operations=frozenset({"other"})), "read", "operation"),
        (Access(Principal("a", "authenticated", "reader"), operations=frozenset({"op"})), "append", "role"),
    ],
)
def test_a_name_never_widens_a_role_and_a_role_never_widens_the_names(access: Access, effect: Any, rule: str) -> None:
    """Fault caught: either of the two being enough."""
    with pytest.raises(PassdownError) as refused:
        access.require("op", effect)
    assert (refused.value.code, refused.value.members["rule"]) == ("forbidden", rule)
    Access(Principal("a", "authenticated", "agent"), operations=frozenset({"op"})).require("op", "append")


def test_tokens_of_a_store_before_this_schema_stay_and_are_not_confined(tmp_path: Path) -> None:
    """Fault caught: a migration that loses tokens, or locks their holders out."""
    path = tmp_path / "passdown.db"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    with engine.connect() as connection:
        migration.upgrade_on(connection, "0001")
    engine.dispose()
    with closing(sqlite3.connect(path)) as tool:
        columns = "token_id, name, principal, role, token_sha256, host, created_us"
        row = (b"tok_1", b"old", b"ana", b"agent", fingerprint(TOKEN), b"buildbox", NOW_US)
        tool.execute(f"INSERT INTO pd_tokens ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        tool.commit()
        assert tool.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
    with closing(open_store(path, create=False)) as store:
        clock = FixedClock(NOW_US)
        access = TokenService(store, clock, RandomIds(clock)).access(TOKEN)
    assert access == Access(Principal("ana", "authenticated", "agent", "buildbox"))
