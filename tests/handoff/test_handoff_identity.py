"""Identifiers: compared byte for byte in NFC; what would need trimming or folding is refused."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from handoff_support import SCOPE, Desk, places, say

PAIRS = [
    ("N1", "n1"),
    ("straße", "strasse"),
    ("resume", "résumé"),
    ("😀", "😁"),
    ("a b", "a  b"),
    ("1", "１"),
    ("ﬁ", "fi"),
    ("a", "а"),
    ("a", "a\u200b"),
    ("İ", "i"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_scopes_that_look_or_sort_alike_have_separate_histories(desk: Desk, one: str, other: str) -> None:
    """Catches a collation that folds case, accents, width or emoji."""
    desk.commit(scope_id=one, objective="One")
    desk.commit(scope_id=other, objective="Other")
    desk.commit(scope_id=other, objective="Other again")
    assert desk.latest(one)["content"]["objective"] == "One"
    assert (desk.numbers(one), desk.numbers(other)) == ([1], [2, 1])


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_sources_that_look_alike_are_two(desk: Desk, one: str, other: str) -> None:
    desk.note("One.", source_id=one)
    desk.note("Other.", source_id=other)
    for source_id, text in ((one, "One."), (other, "Other.")):
        ref = {"source_type": "content", "source_id": source_id}
        assert desk.call("get_source", scope_id=SCOPE, source_ref=ref)["source"]["content"] == text


@pytest.mark.parametrize("name", ["é", "Å", "각", "ṩ", "が"])
def test_a_decomposed_identifier_is_the_composed_one(desk: Desk, name: str) -> None:
    """Catches identifiers stored as they came: the same name typed on another system would be another workstream."""
    apart = unicodedata.normalize("NFD", name)
    assert apart != name
    citation = desk.note("One.", scope_id=apart, source_id=apart)
    assert citation["source_ref"]["source_id"] == name
    first = desk.commit(scope_id=apart, state=[say("It stands.", citation)])
    assert desk.latest(name)["selected_revision"] == first["handoff_ref"]
    again = desk.call("continue_handoff", scope_id=name, target={"kind": "latest"}, confirm_scope=apart)
    assert again["scope_id"] == name
    source = desk.call("get_source", scope_id=name, source_ref={"source_type": "content", "source_id": apart})
    assert source["source"]["content"] == "One."


REFUSED = [
    (" a", "edge_space"),
    ("a ", "edge_space"),
    ("\u00a0a", "edge_space"),
    ("a\u3000", "edge_space"),
    ("a\u2028b", "control_character"),
    ("a\nb", "control_character"),
    ("a\x00b", "control_character"),
    ("a\x7f", "control_character"),
    ("a\x85b", "control_character"),
    ("\t", "control_character"),
    ("", "empty"),
]


@pytest.mark.parametrize(("name", "rule"), REFUSED)
def test_identifiers_with_edge_spaces_or_control_characters_are_refused_wherever_they_stand(
    desk: Desk, name: str, rule: str
) -> None:
    capture: dict[str, Any] = {"scope_id": SCOPE, "source_type": "content", "content": "x"}
    ref = {"source_type": "content", "source_id": name}
    latest = {"scope_id": SCOPE, "target": {"kind": "latest"}}
    asks = [
        ("capture_source", capture | {"scope_id": name}, "scope_id"),
        ("capture_source", capture | {"source_id": name}, "source_id"),
        ("get_source", {"scope_id": SCOPE, "source_ref": ref}, "source_ref.source_id"),
        ("list_sources", {"scope_id": name}, "scope_id"),
        ("continue_handoff", latest | {"scope_id": name, "confirm_scope": SCOPE}, "scope_id"),
        ("continue_handoff", latest | {"confirm_scope": name}, "confirm_scope"),
        ("get_handoff", {"scope_id": name}, "scope_id"),
        (
            "get_handoff",
            {"scope_id": SCOPE, "handoff_ref": {"family": "handoff", "artifact_id": name, "revision": 1}},
            "handoff_ref.artifact_id",
        ),
        ("list_handoff_revisions", {"scope_id": name}, "scope_id"),
        ("prepare_handoff", {"scope_id": name, "objective": "x"}, "scope_id"),
    ]
    for op, members, field in asks:
        assert places(desk.refused("invalid_request", op, **members)) == [(field, rule)]


@pytest.mark.parametrize("value", [7, True, None, ["a"], {"a": 1}, 1.0])
def test_an_identifier_is_text_and_nothing_is_coerced_into_it(desk: Desk, value: Any) -> None:
    desk.refused("invalid_request", "list_sources", scope_id=value)


@pytest.mark.parametrize("revision", [0, -1, True, "1", 1.0, 2**53, None])
def test_a_revision_is_a_whole_number_from_one(desk: Desk, revision: Any) -> None:
    ref = {"family": "handoff", "artifact_id": "hnd_1", "revision": revision}
    error = desk.refused("invalid_request", "get_handoff", scope_id=SCOPE, handoff_ref=ref)
    assert places(error)[0][0] == "handoff_ref.revision"
