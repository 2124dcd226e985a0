"""Deterministic report-like JSON values for measurements: nested, many small objects, English and Chinese text."""

from __future__ import annotations

import random
from typing import Any

import orjson

_ENGLISH = ("the retry queue", "keeps its order", "after a crash", "and the worker", "reads it again", "while", "waits")
_CHINESE = (
    "重试队列",
    "在崩溃之后",
    "保持顺序",
    "，",
    "第二个读者",
    "等待锁",
    "被释放",
    "再开始",
    "。",
    "下一步",
    "：",
)
_DISPOSITIONS = ("continuable", "blocked", "complete")


def report_value(size: int, seed: int = 1) -> dict[str, Any]:
    """A value whose compact UTF-8 JSON is at least `size` bytes and at most one workstream (some 20 KiB) more.

    Statements have some 50 to 250 characters in English, 15 to 70 in Chinese, and one to four citations each.
    One half of the workstreams is written in English, the other in Chinese. Keys are ASCII, numbers are integers, every
    string is NFC. Equal arguments give equal values.
    """
    rng = random.Random(seed)  # noqa: S311 - measurement data, not a secret
    workstreams: list[dict[str, Any]] = []
    written = 0
    while written < size:
        workstreams.append(_workstream(rng, len(workstreams)))
        written += len(orjson.dumps(workstreams[-1])) + 1
    return {"schema": "example.report.v1", "trust": "untrusted_history", "workstreams": workstreams}


def _text(rng: random.Random, chinese: bool, words: int) -> str:
    if chinese:
        return "".join(rng.choices(_CHINESE, k=words))
    return " ".join(rng.choices(_ENGLISH, k=words))


def _citation(rng: random.Random) -> dict[str, Any]:
    return {"kind": "source", "source_type": "git_commit", "source_id": f"{rng.getrandbits(160):040x}", "revision": 1}


def _statement(rng: random.Random, chinese: bool) -> dict[str, Any]:
    return {
        "text": _text(rng, chinese, rng.randint(4, 20)),
        "citations": [_citation(rng) for _ in range(rng.randint(1, 4))],
        "assurance": "tool_read",
        "readable": True,
    }


def _workstream(rng: random.Random, number: int) -> dict[str, Any]:
    chinese = number % 2 == 1
    return {
        "scope_id": f"scope-{number:05d}",
        "title": _text(rng, chinese, 5),
        "handoff_ref": {"family": "handoff", "artifact_id": f"hnd_{number:05d}", "revision": rng.randint(1, 40)},
        "content": {
            "objective": _text(rng, chinese, 20),
            "disposition": rng.choice(_DISPOSITIONS),
            "state": [_statement(rng, chinese) for _ in range(rng.randint(8, 40))],
            "next_action": _statement(rng, chinese),
            "omissions": [],
        },
        "evidence_checks": [
            {
                "state_index": index,
                "citation_index": 0,
                "status": "readable",
                "checked_at": "2026-08-03T04:00:00.500000Z",
            }
            for index in range(rng.randint(8, 40))
        ],
        "baseline": None,
    }
