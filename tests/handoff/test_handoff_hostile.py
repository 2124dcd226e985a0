"""Hostile text in every free-text field: refused by rule or kept to the letter, through the whole lifecycle."""

from __future__ import annotations

from typing import Any

import pytest
from handoff_support import HOST, SCOPE, Desk, cite, digest_of, draft, hostile_cases, inline, places, say, stored

OID = "1f" * 20
CASES = hostile_cases()
BLANK = {text for _, text in CASES if not text.strip()}


def test_the_cases_hold_what_these_tests_rely_on() -> None:
    """Catches a list of cases that lost its teeth: one blank text, NUL, CR LF and text that is not in NFC."""
    texts = [text for _, text in CASES]
    assert len(texts) >= 60
    assert BLANK
    assert any("\0" in text for text in texts)
    assert any("\r" in text for text in texts)
    assert any(stored(text) != text for text in texts)


@pytest.mark.parametrize(("name", "text"), CASES, ids=[name for name, _ in CASES])
def test_hostile_text_survives_capture_handoff_and_continue(desk: Desk, name: str, text: str) -> None:
    """Catches trimming, escaping, cutting and interpreting on the way in or out."""
    kept = stored(text)
    short = text if len(kept) <= 256 else text[:200]
    commit = {
        "oid": OID,
        "subject": text[:900],
        "author": {"name": text[:200], "time": 0, "offset_minutes": 0},
        "paths": [{"path": text, "added": 1, "deleted": None}],
        "paths_total": 1,
    }
    evidence: list[dict[str, Any]] = [
        {"label": "c", "source_type": "git_commit", "descriptor": commit},
        {"label": "j", "source_type": "content", "content": {"text": [text]}, "description": text[:2_000]},
    ]
    quoted = text
    if text in BLANK:
        ask = {"scope_id": SCOPE, "source_type": "content", "content": text}
        assert places(desk.refused("invalid_request", "capture_source", **ask)) == [("content", "empty")]
        ask |= {"content": "x", "name": text}
        assert places(desk.refused("invalid_request", "capture_source", **ask)) == [("name", "empty")]
        for field in ("objective", "text"):
            members = {"objective": text} if field == "objective" else {}
            body = draft([say(text if field == "text" else "x", inline("c"))], **members)
            desk.refused("invalid_request", "hand_off_now", scope_id=SCOPE, commit=True, evidence=evidence, **body)
        quoted, short = f"[{text}]", f"[{text}]"
    evidence.append({"label": "t", "source_type": "content", "content": quoted, "name": short})
    body = draft(
        [say(quoted, inline("c"), inline("j"), inline("t"))],
        objective=quoted,
        next_action=say(quoted, inline("t")),
        omissions=[{"text": quoted, "citation": inline("c")}],
    )
    answer = desk.call("hand_off_now", scope_id=SCOPE, commit=True, evidence=evidence, **body)
    found = desk.latest(current_objective=quoted)
    value = found["content"]
    kept_quoted = stored(quoted)
    assert value["objective"] == value["state"][0]["text"] == value["next_action"]["text"] == kept_quoted
    assert value["omissions"][0]["text"] == kept_quoted
    assert found["objective_relation"] == "same"
    assert found["content_digest"] == digest_of(value) == answer["committed"]["content_digest"]
    refs = answer["captured"]
    sources = [desk.call("get_source", scope_id=SCOPE, source_ref=ref)["source"] for ref in refs]
    facts = sources[0]["descriptor"]
    assert facts["subject"] == stored(text[:900])
    assert facts["author"]["name"] == stored(text[:200])
    # In a path CR LF is no line end, and in JSON nothing is free text: both are only brought to NFC.
    assert facts["paths"][0]["path"].replace("\r\n", "\n") == kept
    assert sources[1]["content"]["text"][0].replace("\r\n", "\n") == kept
    assert sources[1]["description"] == stored(text[:2_000])
    assert (sources[2]["content"], sources[2]["name"]) == (kept_quoted, stored(short))
    labels = [item["label"] for item in found["evidence"]]
    assert labels[2] == stored(short)
    assert f"{OID[:12]} {stored(text[:900])}".rstrip() == labels[0]
    prepared = desk.call("prepare_handoff", scope_id=SCOPE, objective=quoted, evidence=[cite(refs[2])])
    assert prepared["draft"]["objective"] == kept_quoted
    assert desk.call("list_handoff_revisions", scope_id=SCOPE)["revisions"][0]["objective"] == kept_quoted


@pytest.mark.parametrize(("name", "text"), CASES, ids=[name for name, _ in CASES])
def test_hostile_text_as_an_identifier_is_one_identity_or_refused(desk: Desk, name: str, text: str) -> None:
    kept = stored(text)
    ask = {"scope_id": SCOPE, "source_type": "content", "content": "x", "source_id": text}
    hidden = any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029" for char in text)
    if hidden or text.strip() != text or not 1 <= len(kept) <= 512:
        rule = places(desk.refused("invalid_request", "capture_source", **ask))[0]
        assert rule[0] == "source_id"
        return
    ref = desk.ask("capture_source", ask, HOST)["source"]["source_ref"]
    assert ref == {"source_type": "content", "source_id": kept}
    assert desk.call("get_source", scope_id=SCOPE, source_ref=ref)["source"]["content"] == "x"
    desk.commit(state=[say("x", cite(ref))])
    assert desk.latest()["evidence"][0]["readable"]


@pytest.mark.parametrize("suffix", ["", " 1", "'; DROP TABLE pd_sources; --", "%", "_", "\\", "\u202e"])
def test_scopes_never_run_into_each_other(desk: Desk, suffix: str) -> None:
    """Catches a scope that is matched as a pattern or spliced into a statement."""
    desk.commit(scope_id=f"a{suffix}", objective="One")
    desk.commit(scope_id="ab", objective="Other")
    assert desk.latest(f"a{suffix}")["content"]["objective"] == "One"
    assert len(desk.call("list_sources", scope_id=f"a{suffix}")["sources"]) == 1
    assert desk.rows("SELECT COUNT(*) FROM pd_handoff_heads") == [(2,)]
