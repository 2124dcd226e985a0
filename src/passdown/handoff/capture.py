"""From what a caller gives to the immutable record of a source. Pure.

Who read it decides the assurance, never the body: facts of a commit, a file or a worktree count as ``host_read`` only
when the principal carries the name of the host whose own reader took them; from anybody else they are
``caller_supplied``. Content is always the caller's word.

A derived identity makes the same fact one source: ``<oid>@<12 hex of the body's sha256>`` for a commit,
``<path>@<sha256>`` for a file, ``<role>:<path>@<sha256>`` for a document, ``<head>@<12 hex>`` for a worktree, ``<sha256
of the file>@<12 hex>`` for a test report, the address for a URL, ``sha256:<hex>`` for text and ``sha256:<hex>@json``
for JSON. What a caller merely says of a commit, a file or a worktree gets the same with ``-said`` behind it. A chosen
identity may have the form of a derived one only if it is the one that this capture derives, so that nothing ever stands
where another reading will want to be. The identity of a commit always begins with its id, chosen or derived, so that a
reference alone tells which commit is meant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from passdown.handoff.facts import (
    FACTS_OF,
    DocumentFacts,
    FileFacts,
    GitCommitFacts,
    TestReportFacts,
    UrlFacts,
    WorktreeFacts,
)
from passdown.handoff.models import Assurance, Materialization, SourceType
from passdown.handoff.places import within
from passdown.kernel import limits
from passdown.kernel.canonical import canonical_bytes, canonical_bytes_of_validated
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.kernel.text import TextRefused, normalise_text
from passdown.kernel.wire import Wire, dump, validate

LABEL_CHARS = 100
LABEL_PATHS = 3
_DERIVED: Final[Mapping[str, re.Pattern[str]]] = {
    "content": re.compile(r"sha256:[0-9a-f]{64}(@json)?"),
    "git_commit": re.compile(r"[0-9a-f]+@[0-9a-f]{12}(-said)?"),
    "file": re.compile(r".+@[0-9a-f]{64}(-said)?"),
    "worktree": re.compile(r"(unborn|[0-9a-f]+)@[0-9a-f]{12}(-said)?"),
    "test_report": re.compile(r"[0-9a-f]{64}@[0-9a-f]{12}(-said)?"),
    "document": re.compile(r".+@[0-9a-f]{64}(-said)?"),
    "url": re.compile(r"https?://.+|sha256:[0-9a-f]{64}(@[0-9a-f]{64})?"),
}
"""The forms that derived identities have."""


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One source as it is stored. ``sha256`` covers ``body``; ``label`` is what a reader sees first."""

    scope_id: str
    source_type: SourceType
    source_id: str
    materialization: Materialization
    assurance: Assurance
    read_by: str | None
    media_type: str
    name: str | None
    description: str | None
    label: str
    remote_refs: tuple[str, ...] | None
    body: bytes
    sha256: bytes
    test_run: TestReportFacts | None = None
    """The counts of a test report that names its commit: they are found by that commit."""


def _invalid(field: str, rule: str) -> PassdownError:
    return PassdownError("invalid_request", errors=[{"field": field, "rule": rule}], error_count=1)


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= LABEL_CHARS else line[: LABEL_CHARS - 1] + "…"


def _content_body(content: Any) -> tuple[bytes, str, str]:
    """Body, media type and label of a ``content`` source."""
    if isinstance(content, str):
        try:
            text = normalise_text(content, max_chars=limits.SOURCE_BODY_BYTES, required=True)
        except TextRefused as refused:
            if refused.rule == "too_long":
                actual = len(content.encode("utf-8", "surrogatepass"))
                raise PassdownError("source_too_large", limit=limits.SOURCE_BODY_BYTES, actual=actual) from None
            raise _invalid("content", refused.rule) from None
        return text.encode(), "text/plain", _short(text)
    with within("content"):
        body = canonical_bytes(content)
    return body, "application/json", _short(body[: LABEL_CHARS * 8].decode(errors="ignore"))


def _facts_label(facts: Wire) -> str:
    if isinstance(facts, GitCommitFacts):
        return f"{facts.oid[:12]} {facts.subject or ''}".rstrip()
    if isinstance(facts, FileFacts):
        return f"{facts.path}@{facts.sha256[:12]}"
    if isinstance(facts, TestReportFacts):
        bad = facts.failures + facts.errors
        name = facts.path.rpartition("/")[2] if facts.path else facts.sha256[:12]
        return _short(f"{name}: {facts.tests} tests, {bad} failed, {facts.skipped} skipped")
    if isinstance(facts, DocumentFacts):
        return _short(f"{facts.role} {facts.path}@{facts.sha256[:12]}")
    if isinstance(facts, UrlFacts):
        return _short(facts.url)
    if not isinstance(facts, WorktreeFacts):
        raise TypeError(type(facts).__name__)
    named = [entry.path for entry in facts.entries[:LABEL_PATHS]]
    more = len(facts.entries) - len(named) + facts.omitted_paths
    place = facts.head[:12] if facts.head else "-"
    return f"{place}: {', '.join(named)}{f' +{more}' if more else ''}" if named or more else place


def _reader_id(facts: Wire, body_sha256: bytes) -> str:
    short = body_sha256.hex()[:12]
    if isinstance(facts, GitCommitFacts):
        return f"{facts.oid}@{short}"
    if isinstance(facts, FileFacts):
        return _path_id(facts.path, facts.sha256)
    if isinstance(facts, DocumentFacts):
        return _path_id(f"{facts.role}:{facts.path}", facts.sha256)
    if isinstance(facts, TestReportFacts):
        return f"{facts.sha256}@{short}"
    if isinstance(facts, UrlFacts):
        behind = f"@{facts.sha256}" if facts.sha256 else ""
        plain = f"{facts.url}{behind}"
        return plain if len(plain) <= limits.SOURCE_ID else f"sha256:{_hex(facts.url)}{behind}"
    if not isinstance(facts, WorktreeFacts):
        raise TypeError(type(facts).__name__)
    return f"{facts.head or 'unborn'}@{short}"


def _path_id(path: str, sha256: str) -> str:
    """A path too long for an identity, or with spaces at its edges, is represented by its own digest."""
    plain = f"{path}@{sha256}"
    if len(plain) <= limits.SOURCE_ID - len("-said") and path.strip() == path and _plain(path):
        return plain
    return f"sha256:{_hex(path)}@{sha256}"


def _hex(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def reading_id(source_type: SourceType, descriptor: Mapping[str, Any]) -> str:
    """The identity that a host's own reading with these facts has."""
    facts = validate(FACTS_OF[source_type], descriptor)
    return _reader_id(facts, hashlib.sha256(canonical_bytes_of_validated(dump(facts))).digest())


def _plain(path: str) -> bool:
    return path.isprintable()


def record(
    who: Principal,
    *,
    scope_id: str,
    source_type: SourceType,
    source_id: str | None,
    content: Any,
    descriptor: Mapping[str, Any] | None,
    name: str | None,
    description: str | None,
    said: bool = False,
) -> SourceRecord:
    """The record of a capture, or ``invalid_request``, ``not_canonical``, ``source_too_large`` (limit 256 KiB)."""
    remote_refs: tuple[str, ...] | None = None
    test_run: TestReportFacts | None = None
    read_by: str | None = None
    assurance: Assurance = "caller_supplied"
    if source_type == "content":
        if descriptor is not None:
            raise _invalid("descriptor", "not_for_this_source_type")
        if content is None:
            raise _invalid("content", "missing")
        body, media_type, label = _content_body(content)
        # The same bytes as text and as JSON are two facts: they differ in media type.
        derived = f"sha256:{hashlib.sha256(body).hexdigest()}{'' if media_type == 'text/plain' else '@json'}"
    else:
        if content is not None:
            raise _invalid("content", "not_for_this_source_type")
        if descriptor is None:
            raise _invalid("descriptor", "missing")
        with within("descriptor"):
            facts = validate(FACTS_OF[source_type], descriptor)
        media_type = "application/json"
        body = canonical_bytes_of_validated(dump(facts))
        label = _facts_label(facts)
        derived = _reader_id(facts, hashlib.sha256(body).digest())
        if isinstance(facts, GitCommitFacts):
            remote_refs = facts.remote_refs
            if source_id is not None and not source_id.startswith(f"{facts.oid}@"):
                raise _invalid("source_id", "must_begin_with_the_commit_id")
        if isinstance(facts, TestReportFacts) and facts.commit is not None:
            test_run = facts
        if isinstance(facts, UrlFacts):
            assurance = "referenced"
        elif who.host is not None and not said:
            assurance, read_by = "host_read", who.host
        else:
            derived += "-said"
    if source_id is not None and source_id != derived and _DERIVED[source_type].fullmatch(source_id):
        raise _invalid("source_id", "reserved_for_derived")
    if len(body) > limits.SOURCE_BODY_BYTES:
        raise PassdownError("source_too_large", limit=limits.SOURCE_BODY_BYTES, actual=len(body))
    return SourceRecord(
        scope_id=scope_id,
        source_type=source_type,
        source_id=source_id or derived,
        materialization="referenced" if assurance == "referenced" else "captured",
        assurance=assurance,
        read_by=read_by,
        media_type=media_type,
        name=name,
        description=description,
        label=name or label,
        remote_refs=remote_refs,
        body=body,
        sha256=hashlib.sha256(body).digest(),
        test_run=test_run,
    )


def body_value(media_type: str, body: bytes) -> Any:
    """The stored body as the JSON value that was captured."""
    return body.decode() if media_type == "text/plain" else orjson.loads(body)
