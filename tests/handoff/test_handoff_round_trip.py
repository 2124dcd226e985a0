"""What finalize returned, commit stores and continue shows: one content, one digest, for any valid draft."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from handoff_support import SCOPE, Desk, cite, cite_revision, digest_of, draft, say, sha256, stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
SCOPES = count(1)
SOURCE_IDS = [f"n{number}" for number in range(6)]

# Several CR before one LF are looked at by themselves below.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60).filter(lambda text: "\r\r\n" not in text)
TEXT = st.builds(lambda one, other: f"{one}x{other}", ANY_TEXT, ANY_TEXT) | st.sampled_from(
    ["e\u0301", "\r\n.\r\n", "\u1100\u1161", "\U0001f468\u200d\U0001f469", "\u0344x", "\ufb01", "\0x", "\u2126"]
)
CITATION = st.sampled_from([*SOURCE_IDS, None])
CITATIONS = st.lists(CITATION, min_size=1, max_size=5)
STATEMENT = st.tuples(TEXT, CITATIONS)
DRAFT = st.fixed_dictionaries(
    {
        "objective": TEXT,
        "state": st.lists(STATEMENT, min_size=1, max_size=5),
        "disposition": st.sampled_from(["continuable", "blocked", "complete"]),
        "next_action": st.none() | STATEMENT,
        "omissions": st.lists(st.tuples(TEXT, st.none() | CITATION), max_size=4),
    }
)


@pytest.fixture(scope="module")
def shared(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One store for all examples; each has a scope of its own."""
    folder = tmp_path_factory.mktemp("round-trip")
    shutil.copyfile(empty_store, folder / "passdown.db")
    with Desk(folder) as desk:
        yield desk


def new_scope(desk: Desk) -> tuple[str, dict[str, Any]]:
    """A scope with sources and a first handoff, which may be cited too."""
    scope_id = f"scope {next(SCOPES)}"
    for source_id in SOURCE_IDS:
        desk.note(source_id, scope_id=scope_id, source_id=source_id)
    return scope_id, desk.commit(scope_id=scope_id)["handoff_ref"]


def as_draft(given_draft: dict[str, Any], head: dict[str, Any], change: Any) -> dict[str, Any]:
    """The wire form; ``change`` is applied to every text."""

    def citation(source_id: str | None) -> dict[str, Any]:
        if source_id is None:
            return cite_revision(head)
        return cite({"source_type": "content", "source_id": source_id})

    def statement(item: tuple[str, list[str | None]]) -> dict[str, Any]:
        return {"text": change(item[0]), "citations": [citation(source_id) for source_id in item[1]]}

    action = given_draft["next_action"]
    return {
        "objective": change(given_draft["objective"]),
        "state": [statement(item) for item in given_draft["state"]],
        "disposition": given_draft["disposition"],
        "next_action": None if action is None else statement(action),
        "omissions": [
            {"text": change(text), "citation": None if source_id is None else citation(source_id)}
            for text, source_id in given_draft["omissions"]
        ],
    }


@SETTINGS
@given(given_draft=DRAFT)
def test_any_valid_draft_keeps_its_content_and_its_digest_all_the_way(
    shared: Desk, given_draft: dict[str, Any]
) -> None:
    scope_id, head = new_scope(shared)
    sent = as_draft(given_draft, head, lambda text: text)
    expected = {"schema": "powercontext.handoff.v1"} | as_draft(given_draft, head, stored)
    found = shared.call("finalize_handoff", scope_id=scope_id, draft=sent)
    committed = shared.ask("commit_handoff", found)
    shown = shared.latest(scope_id)
    got = shared.call("get_handoff", scope_id=scope_id, handoff_ref=committed["handoff_ref"])["handoff"]
    assert found["content"] == shown["content"] == got["content"] == expected
    digests = {found["content_digest"], committed["content_digest"], shown["content_digest"], got["content_digest"]}
    assert digests == {digest_of(expected)}
    row = shared.rows("SELECT content FROM pd_handoff_revisions WHERE scope_id = ? AND revision = 2", scope_id.encode())
    assert "sha256:" + sha256(row[0][0]) == digest_of(expected)
    assert all(check["status"] == "available" for check in shown["evidence_checks"])


@SETTINGS
@given(given_draft=DRAFT, form=st.sampled_from(["NFC", "NFD"]), line_end=st.sampled_from(["\n", "\r\n"]))
def test_the_spelling_of_a_text_makes_no_other_handoff(
    shared: Desk, given_draft: dict[str, Any], form: Any, line_end: str
) -> None:
    """Two writers, one composing and one decomposing, one with CR LF: the second finds the first's revision."""
    scope_id, head = new_scope(shared)

    def spelled(text: str) -> str:
        return unicodedata.normalize(form, stored(text)).replace("\n", line_end)

    one = shared.call("finalize_handoff", scope_id=scope_id, draft=as_draft(given_draft, head, stored))
    other = shared.call("finalize_handoff", scope_id=scope_id, draft=as_draft(given_draft, head, spelled))
    assert one["content_digest"] == other["content_digest"]
    shared.ask("commit_handoff", one)
    assert shared.ask("commit_handoff", other)["replayed"] is True
    assert shared.numbers(scope_id) == [2, 1]


@pytest.mark.parametrize("returns", [3, 5])
def test_several_carriage_returns_before_a_line_feed_keep_one_digest(desk: Desk, returns: int) -> None:
    """Catches a normal form that is not reached in one step: the digest would change on each reading."""
    note = desk.note()
    text = "a" + "\r" * returns + "\nb"
    found = desk.call("finalize_handoff", scope_id=SCOPE, draft=draft([say(text, note)]))
    desk.ask("commit_handoff", found)
    shown = desk.latest()
    assert digest_of(shown["content"]) == shown["content_digest"] == found["content_digest"]


@SETTINGS
@given(value=st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=20,
))  # fmt: skip
def test_any_json_is_captured_with_the_digest_of_its_canonical_form(shared: Desk, value: Any) -> None:
    """Keys that meet under NFC have no canonical form; everything else comes back with composed texts."""

    def composed(item: Any) -> Any:
        if isinstance(item, str):
            return unicodedata.normalize("NFC", item)
        if isinstance(item, list):
            return [composed(inner) for inner in item]
        if isinstance(item, dict):
            return {composed(key): composed(inner) for key, inner in item.items()}
        return item

    body = ["wrapped", value]
    expected = composed(body)
    source_id = f"json {next(SCOPES)}"
    ask = {"scope_id": SCOPE, "source_type": "content", "source_id": source_id, "content": body}
    if _keys(expected) != _keys(body):
        return
    source = shared.ask("capture_source", ask)["source"]
    assert source["content"] == expected
    assert "sha256:" + source["sha256"] == digest_of(expected)
    assert shared.ask("capture_source", ask)["replayed"] is True


def _keys(item: Any) -> int:
    if isinstance(item, list):
        return sum(map(_keys, item))
    return len(item) + sum(map(_keys, item.values())) if isinstance(item, dict) else 0
