"""The catalogues of phrases: one key set, one set of values per phrase, no English left in Chinese."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from passdown.kernel.escape import visible
from passdown.report.render.words import LOCALES, SYMBOLS, words_of

ENGLISH, CHINESE = LOCALES["en"], LOCALES["zh-CN"]

# The closed vocabularies of the report RFC and of the handoff core.
VOCABULARIES = {
    "status": ("continuable", "blocked", "complete", "no_handoff", "unknown"),
    "kind": ("feature", "bug", "refactor", "operations", "research", "other"),
    "reference": ("issue", "task", "pull_request", "branch", "feature", "release", "program", "other"),
    "reporting": ("reported", "reported_with_omissions", "evidence_unavailable", "no_handoff", "unknown"),
    "activity": ("no_observed_activity", "observed_activity", "activity_without_handoff", "unknown"),
    "relation": ("activity_after_handoff", "no_observed_activity_after_handoff", "unknown"),
    "activity.source": ("handoff_observation", "git_commit", "git_worktree", "coding_session", "other"),
    "reason": ("unauthorized", "failed", "unsupported", "never_run"),
    "basis": ("source_reported", "host_observed", "first_seen", "current_only", "unknown"),
    "consistency": ("exact_input", "optimistic_stable"),
    "source": ("content", "git_commit", "file", "test_report", "document", "worktree", "url"),
}


def values_of(phrase: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(phrase) if name is not None}


def test_both_catalogues_have_the_same_keys() -> None:
    assert ENGLISH.keys() == CHINESE.keys()


@pytest.mark.parametrize("key", sorted(ENGLISH))
def test_a_phrase_takes_the_same_values_in_both_locales(key: str) -> None:
    assert values_of(ENGLISH[key]) == values_of(CHINESE[key])


def test_counted_phrases_come_in_pairs() -> None:
    stems = {key.removesuffix(".one") for key in ENGLISH if key.endswith(".one")}
    assert stems == {key.removesuffix(".many") for key in ENGLISH if key.endswith(".many")}
    assert stems


def test_chinese_has_latin_letters_only_in_the_headings_that_the_rfc_leaves_in_english() -> None:
    left = {key: phrase for key, phrase in CHINESE.items() if re.search("[A-Za-z]", re.sub(r"\{\w+\}", "", phrase))}
    assert left == {
        "heading.status": "Workstream 状态",
        "heading.details": "Workstream 详情",
        "heading.evidence": "Evidence",
    }


def test_english_has_no_chinese() -> None:
    assert [phrase for phrase in ENGLISH.values() if re.search("[\u3000-\u9fff]", phrase)] == []


@pytest.mark.parametrize("locale", sorted(LOCALES))
def test_phrases_hold_no_markup_and_no_hidden_characters(locale: str) -> None:
    for phrase in LOCALES[locale].values():
        assert not re.search(r"[*_`\\<>\[\]|#&\n]", phrase)
        assert visible(phrase) == phrase
        assert phrase == phrase.strip() or phrase in (", ", "; ")


@pytest.mark.parametrize("family", sorted(VOCABULARIES))
def test_every_wire_value_has_a_word_of_its_own_family_in_both_locales(family: str) -> None:
    for catalogue in (ENGLISH, CHINESE):
        words = [catalogue[f"{family}.{value}"] for value in VOCABULARIES[family]]
        assert len(set(words)) == len(words)


def test_a_value_without_a_word_gets_the_general_word_and_no_english() -> None:
    assert words_of("zh-CN").term("kind", "chore") == "其他"
    assert words_of("en").term("relation", "chore", "unknown") == "unknown after this handoff"


def test_states_differ_by_symbol_as_well_as_by_word() -> None:
    assert set(SYMBOLS) == set(VOCABULARIES["status"])
    assert len(set(SYMBOLS.values())) == len(SYMBOLS)
