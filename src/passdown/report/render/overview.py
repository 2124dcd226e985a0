"""Sections that cover the whole project: overview with coverage and warnings, blockers, status table.

The overview answers in a few lines what a reader decides by: which project, as of when, how many workstreams in which
state, how much of that is known, and what is missing. What is unknown is said; it is never shown as nothing.

Public: :func:`overview`, :func:`blockers`, :func:`status_table`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from passdown.report.render.escaped import block, inline
from passdown.report.render.view import Page, Stream
from passdown.report.render.words import SEPARATOR, SYMBOLS, WARNING, Words, note

_SUMMARY: Final = {
    "blocked": "blocked_count",
    "continuable": "continuable_count",
    "no_handoff": "no_handoff_count",
    "complete": "complete_count",
}
_BASES: Final = ("read", "said", "referenced", "handoff", "unknown")
# Each filter in the order of the page, with the family of words for its values; None where they are users' text.
_FILTERS: Final[Mapping[str, str | None]] = {
    "kinds": "kind",
    "dispositions": "status",
    "labels": None,
    "external_refs": None,
    "activity_sources": "activity.source",
    "agent_labels": None,
    "time_bases": "basis",
}


def overview(page: Page) -> Iterator[str]:
    """Project, time, counts by state, filters in force, coverage, evidence, activity; then the warnings."""
    words, report = page.words, page.report
    project = report["project"]
    say = words.say
    yield f"- {words.label('project')}{page.title} ({inline(project['project_key'])})"
    if page.ungrouped:
        yield f"- {note(say('ungrouped.note'))}"
    yield f"- {words.label('generated')}{page.time(report['generated_at'])}"
    yield f"- {words.label('workstreams')}{_counts(page)}"
    for label, warning in _warnings(page):
        yield f"- {words.label(label, warning=True)}{warning}"
    yield f"- {words.label('filters')}{_filters(page)}"
    yield f"- {words.label('coverage')}{_coverage(page)}"
    yield f"- {words.label('evidence')}{_evidence(page)}"
    yield f"- {words.label('activity')}{_activity(page)}"
    summary = report["generated_summary"]
    if summary is not None:
        text = summary["text"]
        shown = note(say("summary.unavailable")) if text is None else block(text, indent=2)
        yield f"- {words.label('summary')}{shown}"
    if project["description"]:
        yield f"- {words.label('description')}{block(project['description'], indent=2)}"


def _counts(page: Page) -> str:
    words, summary = page.words, page.report["summary"]
    parts = [words.count("count.shown", len(page.streams))]
    unproved = sum(stream.raw["unproved"] for stream in page.streams)
    for status, member in _SUMMARY.items():
        counted = words.say("count.status", n=summary[member], status=words.say(f"status.{status}"))
        if status == "complete" and unproved:
            counted = words.say("count.unproved", counted=counted, n=unproved)
        parts.append(f"{SYMBOLS[status]} {counted}")
    return SEPARATOR.join(parts)


def _filters(page: Page) -> str:
    words = page.words
    filters = page.report["filters"]
    in_force = [
        words.say(f"filter.{name}", values=words.listed(_filter_value(words, family, value) for value in filters[name]))
        for name, family in _FILTERS.items()
        if filters[name]
    ]
    if filters["include_archived"]:
        in_force.append(words.say("filters.archived"))
    total = page.report["coverage"]["total_included_workstreams"]
    shown = words.count("filters.shown", total, shown=len(page.streams))
    return words.clauses([*(in_force or [words.say("filters.none")]), shown])


def _filter_value(words: Words, family: str | None, value: str | Mapping[str, Any]) -> str:
    if isinstance(value, Mapping):
        kind = value["kind"]
        parts = [words.say("filter.any.kind") if kind is None else words.term("reference", kind)]
        parts += [
            words.say(f"filter.any.{name}") if value[name] is None else words.quoted(value[name])
            for name in ("provider", "external_id")
        ]
        return " ".join(parts)
    return words.term(family, value, "unknown") if family else words.quoted(value)


def _coverage(page: Page) -> str:
    words, shown = page.words, len(page.streams)
    if not shown:
        return words.say("coverage.empty")
    have = sum(stream.content is not None for stream in page.streams)
    key = "coverage.all" if have == shown else "coverage.some"
    parts = [words.count(key, shown, have=have)]
    omitting = page.report["coverage"]["reported_with_omissions"]
    if have:
        empty = words.say("coverage.omissions.none")
        parts.append(words.count("coverage.omissions", omitting) if omitting else empty)
    return words.clauses(parts)


def _evidence(page: Page) -> str:
    words = page.words
    bases = Counter(entry.basis for stream in page.streams for entry in stream.evidence)
    total = sum(bases.values())
    if not total:
        return words.say("evidence.none")
    parts = [words.count("evidence.total", total), *_basis_counts(words, bases)]
    return words.clauses([SEPARATOR.join(parts), words.say("evidence.meaning")])


def _basis_counts(words: Words, bases: Mapping[str, int]) -> list[str]:
    return [words.say(f"count.{basis}", n=bases[basis]) for basis in _BASES if bases.get(basis)]


def _activity(page: Page) -> str:
    words, coverage = page.words, page.report["coverage"]
    enabled: Sequence[str] = coverage["enabled_activity_sources"]
    missing: Sequence[Mapping[str, str]] = coverage["unavailable_activity_sources"]
    if not enabled and all(entry["reason"] == "never_run" for entry in missing):
        return words.say("activity.no_source")
    parts = []
    if enabled:
        names = words.listed(words.term("activity.source", source) for source in enabled)
        parts.append(words.say("activity.enabled", sources=names))
    if missing:
        names = words.listed(
            f"{words.term('activity.source', entry['source'])} ({words.say('reason.' + entry['reason'])})"
            for entry in missing
        )
        parts.append(words.say("activity.missing", sources=names))
    return words.clauses(parts)


def _warnings(page: Page) -> Iterator[tuple[str, str]]:
    """Pairs of label and sentence, the gravest first; nothing where nothing is missing."""
    streams, coverage = page.streams, page.report["coverage"]
    found = (
        ("incomplete", "unreadable", sum(stream.unreadable for stream in streams)),
        ("incomplete", "unchecked", sum(not stream.checked for stream in streams)),
        ("incomplete", "no_handoff", sum(stream.content is None for stream in streams)),
        ("unproved", "unproved", sum(stream.raw["unproved"] for stream in streams)),
        ("incomplete", "unassigned", coverage["unassigned_activity_events"]),
        ("incomplete", "undated", coverage["unknown_time_events"]),
    )
    for label, warning, n in found:
        if n:
            yield label, page.words.count(f"warn.{warning}", n)


def blockers(page: Page) -> Iterator[str]:
    """Each blocked workstream with what blocks it, as its state says, and its next action."""
    words = page.words
    blocked = [stream for stream in page.streams if stream.content is not None and stream.status == "blocked"]
    for stream in blocked:
        content = stream.content or {}
        yield f"- **{SYMBOLS['blocked']} {stream.name}**"
        yield f"  - {words.label('blocked_by').rstrip()}"
        for index, statement in enumerate(content["state"]):
            behind = note(stream.claim_note("state", index, statement["citations"]))
            yield f"    - {block(statement['text'], indent=6)} {behind}"
        yield f"  - {words.label('next_action')}{next_action(stream, indent=4)}"
    if blocked:
        return
    if not page.streams:
        yield note(page.nothing_selected())
        return
    silent = sum(stream.content is None for stream in page.streams)
    sentences = [words.say("empty.blockers")]
    if silent:
        sentences.append(words.count("empty.blockers.unknown", silent))
    yield note(" ".join(sentences))


def next_action(stream: Stream, *, indent: int) -> str:
    """The whole next action with what stands behind it, or that none is proposed."""
    content = stream.content or {}
    action = content["next_action"]
    if action is None:
        return note(stream.words.say("empty.next_action"))
    behind = note(stream.claim_note("next_action", None, action["citations"]))
    return f"{block(action['text'], indent=indent)} {behind}"


def status_table(page: Page) -> Iterator[str]:
    """One row per workstream. Texts stand whole; what is not known is said in the cell."""
    words = page.words
    if not page.streams:
        yield note(page.nothing_selected())
        return
    columns = ("workstream", "status", "next_action", "evidence", "handoff")
    yield "| " + " | ".join(words.say(f"column.{column}") for column in columns) + " |"
    yield "| " + " | ".join("---" for _ in columns) + " |"
    for stream in page.streams:
        cells = (stream.name, stream.status_words, _action_cell(stream), _evidence_cell(stream), handoff(page, stream))
        yield "| " + " | ".join(cells) + " |"


def _action_cell(stream: Stream) -> str:
    if stream.content is None:
        return note(stream.words.say("cell.unknown"))
    action = stream.content["next_action"]
    return note(stream.words.say("cell.no_next_action")) if action is None else inline(action["text"])


def _evidence_cell(stream: Stream) -> str:
    words = stream.words
    if stream.content is None:
        return note(words.say("cell.unknown"))
    parts = _basis_counts(words, Counter(entry.basis for entry in stream.evidence))
    if stream.unreadable:
        parts.insert(0, f"{WARNING} " + words.say("count.unreadable", n=stream.unreadable))
    if not stream.checked:
        parts.append(words.say("count.unchecked"))
    return SEPARATOR.join(parts) or words.say("evidence.none")


def handoff(page: Page, stream: Stream) -> str:
    """Which revision, and when it was stored here, which is not the time of anything that it cites."""
    ref = stream.raw["handoff_ref"]
    if ref is None:
        return note(page.words.say("handoff.none"))
    if stream.raw["recorded_at"] is None:
        return page.words.say("handoff.revision", n=ref["revision"])
    return page.words.say("handoff.recorded", n=ref["revision"], time=page.time(stream.raw["recorded_at"]))
