"""What a page shows of a report, computed once per page: names, states, evidence by number.

Everything is taken from the canonical report; nothing is inferred and no text is cut or translated. Users' text that
occurs in several places is escaped here once.

Public: :class:`Evidence`, :class:`Stream`, :class:`Page`, :func:`page_of`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from passdown.kernel.timestamps import format_local, parse_timestamp
from passdown.report.render.escaped import inline
from passdown.report.render.words import SEPARATOR, SYMBOLS, WARNING, Words, words_of

Json = Mapping[str, Any]
CitationKey = tuple[Any, ...]

UNGROUPED: Final = "prj_ungrouped"


def citation_key(citation: Json) -> CitationKey:
    """What makes two citations the same one."""
    if citation["kind"] == "source":
        ref = citation["source_ref"]
        return ("source", ref["source_type"], ref["source_id"])
    ref = citation["artifact_ref"]
    return ("artifact", ref["family"], ref["artifact_id"], ref["revision"])


@dataclass(frozen=True, slots=True)
class Evidence:
    """One item of a workstream's ``evidence[]``. ``basis``: read, said, referenced, handoff, unknown."""

    item: Json
    marker: str
    basis: str

    @property
    def readable(self) -> bool:
        """Whether the reference resolved; false also when nobody looked, which the workstream's checks tell."""
        return bool(self.item["readable"])


_BASIS: Final = {"host_read": "read", "caller_supplied": "said", "referenced": "referenced"}


def _basis(item: Json) -> str:
    if item["citation"]["kind"] == "artifact":
        return "handoff"
    return _BASIS.get(item["assurance"], "unknown")


@dataclass(frozen=True)
class Stream:
    """One workstream of the report with its handoff, as a reader meets it."""

    raw: Json
    words: Words

    @cached_property
    def name(self) -> str:
        """``<title> (<key>)``, escaped; without a key 16 hex digits of the scope's SHA-256 tell equal titles apart."""
        described = self.raw["workstream"]
        key = described["key"]
        if key is None:
            short = "scope:" + hashlib.sha256(described["scope_id"].encode()).hexdigest()[:16]
        else:
            short = inline(key)
        return f"{inline(described['title'])} ({short})"

    @cached_property
    def content(self) -> Json | None:
        """The handoff's content, None where no handoff is selected."""
        content: Json | None = self.raw["content"]
        return content

    @cached_property
    def status(self) -> str:
        """``blocked``, ``continuable``, ``no_handoff``, ``unknown`` or ``complete``."""
        if self.content is not None:
            return str(self.content["disposition"])
        return "unknown" if self.raw["reporting_status"] == "unknown" else "no_handoff"

    @cached_property
    def status_words(self) -> str:
        """Symbol and word, with "unproved" and "archived" beside it where they hold."""
        words = self.words
        said = words.say(f"status.{self.status}")
        if self.raw["unproved"]:
            said = words.say("status.unproved", status=said)
        if self.raw["workstream"]["catalog_state"] == "archived":
            said = words.say("status.archived", status=said)
        return f"{SYMBOLS[self.status]} {said}"

    @cached_property
    def checked(self) -> bool:
        """Whether the readability of the evidence was looked at."""
        return bool(self.raw["evidence_checks"] != "not_checked")

    @cached_property
    def evidence(self) -> Sequence[Evidence]:
        """The citations of the handoff, numbered in the report's own order."""
        return [
            Evidence(item, f"\\[{number}\\]", _basis(item)) for number, item in enumerate(self.raw["evidence"], start=1)
        ]

    @cached_property
    def _by_citation(self) -> Mapping[CitationKey, Evidence]:
        return {citation_key(entry.item["citation"]): entry for entry in self.evidence}

    @cached_property
    def _unreadable(self) -> Mapping[tuple[str, int | None], Sequence[Json]]:
        if not self.checked:
            return {}
        return {
            (check["claim"], check["state_index"]): check["unavailable_evidence"]
            for check in self.raw["evidence_checks"]
        }

    @property
    def unreadable(self) -> int:
        """How many references were looked up and did not resolve."""
        return sum(not entry.readable for entry in self.evidence) if self.checked else 0

    def markers(self, citations: Iterable[Json]) -> str:
        """Numbers of citations in the evidence list, in the caller's order."""
        found = self._by_citation
        return " ".join(found[citation_key(citation)].marker for citation in citations)

    def claim_note(self, claim: str, index: int | None, citations: Sequence[Json]) -> str:
        """What stands behind a statement: its numbers, whether nothing of it was read, what cannot be read."""
        found = self._by_citation
        entries = [found[citation_key(citation)] for citation in citations]
        parts = [" ".join([entry.marker for entry in entries])]
        missing = self._unreadable.get((claim, index), ())
        bases = {entry.basis for entry in entries}
        # Of what cannot be read at all nothing more is said.
        if "read" not in bases and len(missing) < len(citations):
            key = f"assurance.{min(bases)}" if len(bases) == 1 else "claim.nothing_read"
            parts.append(self.words.say(key))
        if missing:
            parts.append(f"{WARNING} " + self.words.say("claim.unreadable", markers=self.markers(missing)))
        if claim == "next_action":
            parts.append(self.words.say("claim.history"))
        return SEPARATOR.join(parts)


@dataclass(frozen=True)
class Page:
    """A whole report with the words and the time zone that it is shown in."""

    report: Json
    words: Words
    zone: str | None
    streams: Sequence[Stream]

    @property
    def ungrouped(self) -> bool:
        """Whether this is the reserved project of scopes that belong to none."""
        return bool(self.report["project"]["project_id"] == UNGROUPED)

    @cached_property
    def title(self) -> str:
        """The project's title, escaped; only the reserved project's own word is translated."""
        if self.ungrouped:
            return self.words.say("ungrouped.title")
        return inline(self.report["project"]["title"])

    def time(self, timestamp: str) -> str:
        """A canonical timestamp as ``YYYY-MM-DD HH:MM:SS ZONE`` in the page's zone."""
        return format_local(parse_timestamp(timestamp), self.zone)

    def nothing_selected(self) -> str:
        """Why there is no workstream to show."""
        left_out = self.report["coverage"]["total_included_workstreams"] > 0
        return self.words.say("empty.workstreams.filtered" if left_out else "empty.workstreams")


def page_of(report: Json) -> Page:
    """The page of a report: its period's zone, else its project's, else UTC; workstreams in the report's own order."""
    words = words_of(report["locale"])
    period = report["period"]
    zone = (period or {}).get("timezone") or report["project"]["timezone"]
    return Page(report, words, zone, [Stream(raw, words) for raw in report["workstreams"]])
