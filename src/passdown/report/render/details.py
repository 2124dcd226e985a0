"""The details of each workstream: facts, objective, progress, next action, omissions, evidence.

The five headings always stand, also where there is nothing under them: then the section says whether nothing is
recorded or nothing is known.

Public: :func:`details`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from passdown.report.render.escaped import block, inline
from passdown.report.render.overview import handoff, next_action
from passdown.report.render.view import Evidence, Json, Page, Stream
from passdown.report.render.words import SEPARATOR, WARNING, Words, note


def details(page: Page) -> Iterator[str]:
    """All workstreams in the order of the report, blocked ones first."""
    if not page.streams:
        yield note(page.nothing_selected())
    for number, stream in enumerate(page.streams):
        if number:
            yield ""
        yield f"### {stream.name}"
        yield ""
        yield from _facts(page, stream)
        for section, lines in (
            ("objective", _objective(stream)),
            ("progress", _progress(stream)),
            ("next_action", _next_action(stream)),
            ("omissions", _omissions(stream)),
            ("evidence", _evidence(stream)),
        ):
            yield ""
            yield f"#### {page.words.say('heading.' + section)}"
            yield ""
            yield from lines


def _facts(page: Page, stream: Stream) -> Iterator[str]:
    words, raw, described = page.words, stream.raw, stream.raw["workstream"]
    yield f"- {words.label('status')}{stream.status_words}"
    yield f"- {words.label('handoff')}{handoff(page, stream)}"
    yield f"- {words.label('reporting')}{words.term('reporting', raw['reporting_status'], 'unknown')}"
    yield f"- {words.label('activity')}{_activity(words, raw)}"
    about = [f"{words.label('kind')}{words.term('kind', described['kind'])}"]
    if described["labels"]:
        about.append(words.label("labels") + words.listed(map(words.quoted, described["labels"])))
    about.append(f"{words.label('scope')}{inline(described['scope_id'])}")
    yield "- " + SEPARATOR.join(about)
    if described["external_refs"]:
        yield f"- {words.label('external_refs').rstrip()}"
        for ref in described["external_refs"]:
            yield f"  - {_external(words, ref)}"


def _activity(words: Words, raw: Json) -> str:
    relation = raw["handoff_activity_relation"]
    if relation is None:
        said = words.term("activity", raw["activity_status"], "unknown")
    else:
        said = words.term("relation", relation, "unknown")
    events = raw["observed_activity_count"]
    return words.clauses([said, words.count("activity.events", events)]) if events else said


def _external(words: Words, ref: Mapping[str, Any]) -> str:
    parts = [words.term("reference", ref["kind"]), inline(ref["provider"]), words.quoted(ref["external_id"])]
    if ref["url"]:
        parts.append(inline(ref["url"]))
    return SEPARATOR.join(parts)


def _unknown(stream: Stream) -> Iterator[str]:
    yield note(stream.words.say("empty.unknown"))


def _objective(stream: Stream) -> Iterator[str]:
    if stream.content is None:
        yield note(stream.words.say("empty.handoff"))
        return
    yield block(stream.content["objective"])


def _progress(stream: Stream) -> Iterator[str]:
    if stream.content is None:
        yield from _unknown(stream)
        return
    for index, statement in enumerate(stream.content["state"]):
        behind = note(stream.claim_note("state", index, statement["citations"]))
        yield f"- {block(statement['text'], indent=2)} {behind}"


def _next_action(stream: Stream) -> Iterator[str]:
    if stream.content is None:
        yield from _unknown(stream)
        return
    proposed = next_action(stream, indent=2)
    yield f"- {proposed}" if stream.content["next_action"] else proposed


def _omissions(stream: Stream) -> Iterator[str]:
    if stream.content is None:
        yield from _unknown(stream)
        return
    omissions = stream.content["omissions"]
    if not omissions:
        yield note(stream.words.say("empty.omissions"))
    for omission in omissions:
        line = f"- {block(omission['text'], indent=2)}"
        if omission["citation"] is not None:
            line += f" {note(stream.markers([omission['citation']]))}"
        yield line


def _evidence(stream: Stream) -> Iterator[str]:
    if stream.content is None:
        yield from _unknown(stream)
        return
    if not stream.evidence:
        yield note(stream.words.say("empty.evidence"))
    for entry in stream.evidence:
        yield f"- {note(entry.marker)} {block(entry.item['label'], indent=2)}\\"
        yield f"  {note(_behind(stream, entry))}"


def _behind(stream: Stream, entry: Evidence) -> str:
    """What the reference is, exactly; who read it; where a commit was then; whether it resolves."""
    words, item = stream.words, entry.item
    parts = [_reference(words, item["citation"]), _assurance(words, entry)]
    remote = _remote(words, item)
    if remote is not None:
        parts.append(remote)
    if not stream.checked:
        parts.append(words.say("readable.unchecked"))
    elif entry.readable:
        parts.append(words.say("readable.yes"))
    else:
        parts.append(f"{WARNING} {words.say('readable.no')}")
    return SEPARATOR.join(parts)


def _reference(words: Words, citation: Json) -> str:
    if citation["kind"] == "artifact":
        ref = citation["artifact_ref"]
        # The family stands for itself: it is part of the identity, and only one of several that may come.
        exact = inline(f"{ref['family']} {ref['artifact_id']}")
        return f"{words.say('source.artifact')} {exact} {words.say('handoff.revision', n=ref['revision'])}"
    ref = citation["source_ref"]
    known = f"source.{ref['source_type']}" in words.phrases
    # A type that has no word here is part of the identity, so it is shown as it is beside the general word.
    exact = ref["source_id"] if known else f"{ref['source_type']} {ref['source_id']}"
    return f"{words.term('source', ref['source_type'])} {inline(exact)}"


def _assurance(words: Words, entry: Evidence) -> str:
    if entry.basis != "read":
        return words.say(f"assurance.{entry.basis}")
    host = entry.item["read_by"]
    if host is None:
        return words.say("assurance.read_by_some_host")
    return words.say("assurance.read", host=inline(host))


def _remote(words: Words, item: Json) -> str | None:
    citation = item["citation"]
    if citation["kind"] != "source" or citation["source_ref"]["source_type"] != "git_commit":
        return None
    refs = item["remote_refs"]
    if refs is None:
        return words.say("remote.unread")
    if not refs:
        return words.say("remote.none")
    return words.say("remote.on", refs=words.listed(map(inline, refs)))
