"""Tokens over a real store: what is kept, who counts when, and how it ends."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from passdown.identity.rules import TokenRecord, fingerprint, spell
from passdown.identity.service import TokenService
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.ids import RandomIds
from passdown.kernel.operations import Principal
from passdown.storage import Store, open_store

NOW_US = 1_800_000_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "passdown.db", create=True)) as opened:
        yield opened


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW_US)


@pytest.fixture
def tokens(store: Store, clock: FixedClock) -> TokenService:
    return TokenService(store, clock, RandomIds(clock))


def refusal(service: TokenService, token: str) -> tuple[str, str]:
    with pytest.raises(PassdownError) as refused:
        service.authenticate(token)
    return refused.value.code, refused.value.members["rule"]


def test_a_token_is_a_marked_secret_of_256_bits(tokens: TokenService) -> None:
    """Fault caught: a short secret, a repeated one, or a form that secret scanners do not know."""
    made = {tokens.create("n", "ana", "agent")[0] for _ in range(20)}
    assert len(made) == 20
    for token in made:
        assert re.fullmatch(r"pdt_[A-Za-z0-9_-]{43}", token)
        assert len(base64.urlsafe_b64decode(token[4:] + "=")) == 32


def test_spelling_keeps_every_bit_of_the_secret() -> None:
    """Fault caught: bits that are lost in the text form."""
    assert spell(bytes(32)) == "pdt_" + "A" * 43
    assert spell(b"\xff" * 32) == "pdt_" + "_" * 42 + "8"
    assert spell(bytes(range(32))) == "pdt_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"


def test_the_store_holds_the_hash_and_not_the_secret(tokens: TokenService, store: Store, tmp_path: Path) -> None:
    """Fault caught: a secret that whoever reads the database can use."""
    token, record = tokens.create("laptop", "ana", "owner")
    row = store.read(lambda session: session.one("SELECT token_id, token_sha256 FROM pd_tokens"))
    assert row == (record.token_id.encode(), hashlib.sha256(token.encode()).digest())
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert token.encode() not in content
        assert token[4:].encode() not in content
        assert base64.urlsafe_b64decode(token[4:] + "=") not in content
    assert token not in repr(record)


def test_whoever_shows_a_token_is_its_principal(tokens: TokenService) -> None:
    """Fault caught: members that are swapped or lost between the table and the caller."""
    plain, _ = tokens.create("laptop", "ana", "owner")
    hosted, record = tokens.create("Bau-Rechner 二", "codex-2", "agent", host="buildbox", expires_us=NOW_US + 1)
    assert tokens.authenticate(plain) == Principal("ana", "authenticated", "owner", None)
    assert tokens.authenticate(hosted) == Principal("codex-2", "authenticated", "agent", "buildbox")
    assert record == TokenRecord(
        record.token_id, "Bau-Rechner 二", "codex-2", "agent", "buildbox", NOW_US, NOW_US + 1, None
    )
    assert tokens.list()[1] == record


def test_a_token_counts_until_its_expiry_and_not_at_it(tokens: TokenService, clock: FixedClock) -> None:
    """Fault caught: an expiry that is one microsecond late."""
    token, _ = tokens.create("short", "ana", "agent", expires_us=NOW_US + 5)
    clock.move(4)
    assert tokens.authenticate(token).principal_id == "ana"
    clock.move(1)
    assert refusal(tokens, token) == ("unauthenticated", "expired")


def test_a_revoked_token_never_counts_again(tokens: TokenService, clock: FixedClock) -> None:
    """Fault caught: a revocation that waits for a cache, or loses its time when repeated."""
    token, made = tokens.create("lost", "ana", "agent", expires_us=NOW_US + 100)
    other, _ = tokens.create("kept", "ana", "agent")
    assert tokens.authenticate(token).principal_id == "ana"
    clock.move(7)
    assert tokens.revoke(made.token_id).revoked_us == NOW_US + 7
    assert refusal(tokens, token) == ("unauthenticated", "revoked")
    clock.move(1)
    assert tokens.revoke(made.token_id).revoked_us == NOW_US + 7
    clock.move(1_000)
    assert refusal(tokens, token) == ("unauthenticated", "revoked")
    assert tokens.authenticate(other).principal_id == "ana"


def test_a_revocation_holds_in_another_process_over_the_same_store(
    tokens: TokenService, clock: FixedClock, tmp_path: Path
) -> None:
    """Fault caught: an authentication that another server keeps for itself."""
    token, made = tokens.create("shared", "ana", "agent")
    with closing(open_store(tmp_path / "passdown.db", create=False)) as second:
        elsewhere = TokenService(second, clock, RandomIds(clock))
        assert elsewhere.authenticate(token).principal_id == "ana"
        tokens.revoke(made.token_id)
        assert refusal(elsewhere, token) == ("unauthenticated", "revoked")


@pytest.mark.parametrize("token_id", ["tok_00000000000000000000000000", "", "令牌", "\ud800", "x" * 10_000])
def test_a_token_that_is_not_there_cannot_be_revoked(tokens: TokenService, store: Store, token_id: str) -> None:
    """Fault caught: a revocation that seems to have worked."""
    before = store.writes()
    with pytest.raises(PassdownError) as refused:
        tokens.revoke(token_id)
    assert refused.value.code == "token_not_found"
    assert store.writes() == before


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "pdt_",
        "pdt_" + "A" * 42,
        "pdt_" + "A" * 44,
        "PDT_" + "A" * 43,
        "pdt_" + "A" * 42 + "=",
        "pdt_" + "A" * 42 + "é",
    ],
)
def test_a_text_that_cannot_be_a_token_is_malformed(tokens: TokenService, shown: str) -> None:
    """Fault caught: a look-up, or a fault, for text of any length and kind."""
    assert fingerprint(shown) is None
    assert refusal(tokens, shown) == ("unauthenticated", "malformed")


def test_a_newline_behind_a_token_does_not_belong_to_it(tokens: TokenService) -> None:
    """Fault caught: a pattern that lets a final newline pass."""
    token, _ = tokens.create("n", "ana", "agent")
    assert refusal(tokens, token + "\n") == ("unauthenticated", "malformed")


def test_a_token_of_another_store_is_unknown(tokens: TokenService) -> None:
    """Fault caught: a token that counts by its form alone."""
    assert refusal(tokens, spell(bytes(32))) == ("unauthenticated", "unknown")


@pytest.mark.parametrize(
    ("members", "field", "rule"),
    [
        ({"name": ""}, "name", "empty"),
        ({"name": " a"}, "name", None),
        ({"name": "n" * 257}, "name", "too_long"),
        ({"principal": ""}, "principal", "empty"),
        ({"principal": "a\nb"}, "principal", None),
        ({"principal": "n" * 257}, "principal", "too_long"),
        ({"host": ""}, "host", "empty"),
        ({"host": "n" * 257}, "host", "too_long"),
        ({"role": "admin"}, "role", "role"),
        ({"role": "Owner"}, "role", "role"),
        ({"expires_us": NOW_US}, "expires_us", "in_the_past"),
        ({"expires_us": -1}, "expires_us", "in_the_past"),
        ({"expires_us": 2**53}, "expires_us", "integer_range"),
        ({"expires_us": True}, "expires_us", "int_type"),
    ],
)
def test_a_member_of_a_new_token_that_breaks_its_rule_is_named(
    tokens: TokenService, store: Store, members: dict[str, object], field: str, rule: str | None
) -> None:
    """Fault caught: a token that is written although nobody could use or read it."""
    before = store.writes()
    asked: dict[str, object] = {"name": "n", "principal": "ana", "role": "agent", **members}
    with pytest.raises(PassdownError) as refused:
        tokens.create(**asked)  # type: ignore[arg-type]
    assert refused.value.code == "invalid_request"
    (error,) = refused.value.members["errors"]
    assert error["field"] == field
    assert rule is None or error["rule"] == rule
    assert store.writes() == before


def test_names_at_their_limit_are_taken(tokens: TokenService) -> None:
    """Fault caught: a limit that is one too tight, or counts bytes."""
    token, record = tokens.create("语" * 256, "语" * 256, "agent", host="语" * 256, expires_us=2**53 - 1)
    assert tokens.authenticate(token) == Principal("语" * 256, "authenticated", "agent", "语" * 256)
    assert tokens.list() == [record]


def test_an_owner_counts_as_there_only_while_its_token_does(tokens: TokenService, clock: FixedClock) -> None:
    """Fault caught: a server that prints no token although nobody can act as owner."""
    assert not tokens.any_owner()
    tokens.create("agent", "ana", "agent")
    assert not tokens.any_owner()
    tokens.create("short", "ana", "owner", expires_us=NOW_US + 10)
    assert tokens.any_owner()
    _, lasting = tokens.create("lasting", "ana", "owner")
    clock.move(10)
    assert tokens.any_owner()
    tokens.revoke(lasting.token_id)
    assert not tokens.any_owner()


def test_the_list_is_in_order_of_making_and_keeps_what_ended(tokens: TokenService, clock: FixedClock) -> None:
    """Fault caught: a revoked token that disappears from the record."""
    made = []
    for number in range(5):
        made.append(tokens.create(f"n{number}", "ana", "agent")[1].token_id)
        clock.move(1)
    tokens.revoke(made[2])
    assert [record.token_id for record in tokens.list()] == made
    assert [record.revoked_us for record in tokens.list()] == [None, None, NOW_US + 5, None, None]


def test_tokens_made_at_the_same_time_are_all_kept(tokens: TokenService) -> None:
    """Fault caught: ids or rows that replace one another under threads."""
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: tokens.create(f"n{number}", f"p{number}", "agent"), range(40)))
    assert {record.token_id for _, record in made} == {record.token_id for record in tokens.list()}
    assert [tokens.authenticate(token).principal_id for token, _ in made] == [f"p{number}" for number in range(40)]


def test_a_request_is_authenticated_by_one_indexed_read(tokens: TokenService, store: Store) -> None:
    """Fault caught: a scan of all tokens for every request."""
    plan = store.read(
        lambda session: session.all(
            "EXPLAIN QUERY PLAN SELECT token_id FROM pd_tokens WHERE token_sha256 = :token_sha256",
            token_sha256=bytes(32),
        )
    )
    assert "USING" in str(plan)
    assert "SCAN" not in str(plan)
