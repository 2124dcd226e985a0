"""Making and checking the document of one handoff. Pure: no store, no network, no clock.

Checked, from the outside in, the first that fails decides:

1. size and form (``body_too_large``, ``malformed_json``, ``unsupported_schema``, ``invalid_request``);
2. the bytes are the canonical form, a newline behind them allowed (``not_canonical``);
3. ``export_digest`` fits all else, ``content_digest`` fits the content (``digest_mismatch`` with ``digest``);
4. every citation of the content has exactly one entry, in order of first appearance, and there is no other
   (``digest_mismatch`` with digest ``evidence`` and the ``field``);
5. every body that is there fits its ``sha256`` and ``size``, and every identity that contains a digest contains that of
   its own source (``digest_mismatch`` with digest ``sha256`` and the ``field``).

A digest is not a signature: the document fits itself; who made it, what a host read and when, stays its maker's word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from passdown.handoff.export_operations import BODY_BYTES, EXPORT_SCHEMA, ExportedSource, HandoffExport
from passdown.handoff.rules import cited, identity
from passdown.kernel.canonical import canonical_bytes, digest_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.strict_json import parse_json
from passdown.kernel.wire import dump, validate

FILE_BYTES: Final = BODY_BYTES + 4 * 1024 * 1024
"""Longest document that is read: all bodies, and room for the handoff and the entries of its evidence."""

_BODY_IN_ID: Final[Mapping[str, re.Pattern[str]]] = {
    "content": re.compile(r"sha256:([0-9a-f]{64})(?:@json)?"),
    "git_commit": re.compile(r"[0-9a-f]+@([0-9a-f]{12})(?:-said)?"),
    "worktree": re.compile(r"(?:unborn|[0-9a-f]+)@([0-9a-f]{12})(?:-said)?"),
    "test_report": re.compile(r"[0-9a-f]{64}@([0-9a-f]{12})(?:-said)?"),
}
"""The forms of derived identities that have the digest of their own body; capture keeps them from chosen ones."""


def sealed(members: Mapping[str, Any]) -> HandoffExport:
    """The document of these members with its own digest."""
    whole = {"schema": EXPORT_SCHEMA, **members}
    return validate(HandoffExport, {**whole, "export_digest": digest_bytes(canonical_bytes(whole))})


@dataclass(frozen=True, slots=True)
class Verdict:
    """A document that fits itself: what it is, how many pieces of evidence it has, and how many bodies were checked.

    ``unreadable`` counts citations that could not be read when it was made.
    """

    export: HandoffExport
    evidence: int
    bodies: int
    unreadable: int


def verify_export(data: bytes) -> Verdict:
    """The verdict on an exported handoff of at most :data:`FILE_BYTES` bytes; see above for the refusals."""
    value = parse_json(data, max_bytes=FILE_BYTES)
    if not isinstance(value, dict) or value.get("schema") != EXPORT_SCHEMA:
        raise PassdownError("unsupported_schema", field="schema")
    export = validate(HandoffExport, value)
    if canonical_bytes(value) != data.removesuffix(b"\n"):
        raise PassdownError("not_canonical", rule="bytes")
    covered = {name: member for name, member in value.items() if name != "export_digest"}
    _require_fit("export_digest", export.export_digest, digest_bytes(canonical_bytes(covered)))
    content = dump(export.content)
    _require_fit("content_digest", export.content_digest, digest_bytes(canonical_bytes(content)))
    _require_complete(content, dump(export))
    bodies = 0
    for index, item in enumerate(export.evidence):
        if item.source is None:
            continue
        field = f"evidence.{index}.source"
        if item.citation.kind == "source":
            _require_identity(
                item.citation.source_ref.source_type, item.citation.source_ref.source_id, item.source, field
            )
        bodies += _has_fitting_body(item.source, field)
    unreadable = sum(item.source is None and item.content_digest is None for item in export.evidence)
    return Verdict(export, len(export.evidence), bodies, unreadable)


def _require_fit(name: str, carried: str, actual: str, **members: str) -> None:
    if carried != actual:
        raise PassdownError("digest_mismatch", digest=name, expected=carried, actual=actual, **members)


def _require_complete(content: Mapping[str, Any], export: Mapping[str, Any]) -> None:
    """Evidence is the union of the citations, each once."""
    named = [identity(citation) for citation in cited(content)]
    there = [identity(item["citation"]) for item in export["evidence"]]
    if named != there:
        place = next((at for at, pair in enumerate(zip(named, there, strict=False)) if pair[0] != pair[1]), None)
        index = min(len(named), len(there)) if place is None else place
        raise PassdownError("digest_mismatch", digest="evidence", field=f"evidence.{index}")
    for index, item in enumerate(export["evidence"]):
        wrong = "content_digest" if item["citation"]["kind"] == "source" else "source"
        if item[wrong] is not None:
            raise PassdownError("digest_mismatch", digest="evidence", field=f"evidence.{index}.{wrong}")


def _require_identity(source_type: str, source_id: str, source: ExportedSource, field: str) -> None:
    """A derived identity begins or ends with the digest of its own body; a chosen one has no such form."""
    form = _BODY_IN_ID.get(source_type)
    found = form.fullmatch(source_id) if form else None
    if found is not None and not source.sha256.startswith(found[1]):
        _require_fit("sha256", found[1], source.sha256, field=field)


def _has_fitting_body(source: ExportedSource, field: str) -> bool:
    if source.body is None:
        return False
    is_text = source.media_type == "text/plain"
    if is_text and not isinstance(source.body, str):
        raise PassdownError("digest_mismatch", digest="sha256", field=f"{field}.body")
    data = source.body.encode() if is_text else canonical_bytes(source.body)
    _require_fit("sha256", source.sha256, digest_bytes(data).removeprefix("sha256:"), field=f"{field}.body")
    if source.size != len(data):
        raise PassdownError("digest_mismatch", digest="sha256", field=f"{field}.size")
    return True
