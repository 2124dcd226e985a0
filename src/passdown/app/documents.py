"""A handoff that comes or goes as a document instead of through the store.

Four kinds are told apart by what is in them, and nothing is guessed:

==========  ====================================  ==================================================================
kind        recognised by                         meaning
==========  ====================================  ==================================================================
prepared    ``powercontext.prepared-handoff.v1``  finalised content on the base that its author saw; digest checked
request     ``passdown.handoff-request.v1``       a whole request, sealed where no store could be written
draft       member ``draft`` or ``origin``        an answer of ``prepare_handoff`` or ``recover_draft``, or its draft
script      anything else                         words for a handoff of this checkout, see :class:`Script`
==========  ====================================  ==================================================================

What a document says of commits, files and the worktree is somebody's word until this host has read the same here: facts
that its own reader finds equal count as read, all others as said. A document of another workstream is refused.

Limits: 12 MiB, and those of the operations. Errors: ``malformed_json``, ``body_too_large``, ``invalid_request``,
``prepared_digest_mismatch``, ``handoff_scope_mismatch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from passdown.app.citing import Said, Words
from passdown.handoff.host import Checkout
from passdown.handoff.models import (
    PREPARED_SCHEMA,
    ArtifactRef,
    Disposition,
    Draft,
    DraftCitation,
    DraftOmission,
    Objective,
    PreparedHandoff,
    StatementText,
)
from passdown.handoff.operations import HandOffNowAsk
from passdown.handoff.source_operations import MAX_EVIDENCE, InlineEvidence
from passdown.kernel import limits
from passdown.kernel.canonical import canonical_bytes, digest_bytes
from passdown.kernel.errors import PassdownError
from passdown.kernel.strict_json import parse_json
from passdown.kernel.wire import Digest, Identifier, Wire, dump, validate

REQUEST_SCHEMA: Final = "passdown.handoff-request.v1"
NAME_CHARS: Final = 4_096

CiteName = Annotated[str, Field(min_length=1, max_length=NAME_CHARS)]


class ScriptStatement(Wire):
    """A statement; ``cite`` names commits or files of the checkout, ``citations`` are complete ones."""

    text: StatementText
    cite: Annotated[tuple[CiteName, ...], Field(max_length=limits.CITATIONS)] = ()
    citations: Annotated[tuple[DraftCitation, ...], Field(max_length=limits.CITATIONS)] = ()


class Script(Wire):
    """Words for a handoff of the checkout where the command runs.

    A statement is a text, which rests on HEAD and on what is uncommitted, or a text with what it rests on. What is left
    out is as with the command's options: earlier words, disposition and next action go on until they are restated;
    ``next_action: null`` takes it back. What git shows is added unless ``only_words`` is true.
    """

    schema_: Literal["powercontext.handoff.v1"] | None = Field(default=None, alias="schema")
    objective: Objective | None = None
    state: Annotated[tuple[StatementText | ScriptStatement, ...], Field(max_length=limits.STATEMENTS)] = ()
    disposition: Disposition | None = None
    next_action: StatementText | ScriptStatement | None = None
    omissions: Annotated[tuple[StatementText | DraftOmission, ...], Field(max_length=limits.OMISSIONS)] = ()
    evidence: Annotated[tuple[InlineEvidence, ...], Field(max_length=MAX_EVIDENCE)] = ()
    cite: Annotated[tuple[CiteName, ...], Field(max_length=limits.CITATIONS)] = ()
    only_words: bool = False


class SealedRequest(Wire):
    """A request for ``hand_off_now`` that waits for a store; the digest covers its canonical form."""

    schema_: Literal["passdown.handoff-request.v1"] = Field(alias="schema")
    request: HandOffNowAsk
    request_digest: Digest


class _Around(Wire):
    """What an answer says beside its draft, as far as it matters here."""

    scope_id: Identifier | None = None
    base: ArtifactRef | None = None


@dataclass(frozen=True, slots=True)
class DraftDocument:
    """A draft with the workstream and the head that it was made for, None where that is not known.

    ``is_on_base`` is whether the head was told at all, also as "none": then a moved head is a conflict.
    """

    scope_id: str | None
    base: ArtifactRef | None
    is_on_base: bool
    draft: Draft


Document = PreparedHandoff | SealedRequest | DraftDocument | Script


def parse_document(data: bytes) -> Document:
    """The document in ``data``, checked against its own digest where it has one."""
    value = parse_json(data, max_bytes=limits.REQUEST_BODY_BYTES)
    if not isinstance(value, dict):
        raise PassdownError("invalid_request", errors=[{"field": "", "rule": "not_an_object"}], error_count=1)
    if value.get("schema") == PREPARED_SCHEMA:
        return validate(PreparedHandoff, value)
    if value.get("schema") == REQUEST_SCHEMA:
        return _unsealed(value)
    if "draft" in value or "origin" in value:
        return _draft(value)
    return validate(Script, value)


def _unsealed(value: dict[str, Any]) -> SealedRequest:
    sealed = validate(SealedRequest, value)
    actual = digest_bytes(canonical_bytes(value["request"]))
    if actual != sealed.request_digest:
        raise PassdownError("prepared_digest_mismatch", expected=sealed.request_digest, actual=actual)
    return sealed


def _draft(value: dict[str, Any]) -> DraftDocument:
    """Other members of the answer that it came in are not needed here."""
    if "draft" not in value:
        return DraftDocument(None, None, is_on_base=False, draft=validate(Draft, value))
    around = validate(_Around, {name: value[name] for name in _Around.model_fields if name in value})
    return DraftDocument(
        around.scope_id, around.base, is_on_base="base" in value, draft=validate(Draft, value["draft"])
    )


def seal(ask: HandOffNowAsk) -> dict[str, Any]:
    """The request as a document that carries its own digest."""
    request = dump(ask)
    return {"schema": REQUEST_SCHEMA, "request": request, "request_digest": digest_bytes(canonical_bytes(request))}


def require_scope(scope_id: str, named: str | None) -> None:
    """Refuse a document of another workstream."""
    if named is not None and named != scope_id:
        raise PassdownError("handoff_scope_mismatch", field="scope_id")


def words_of(script: Script, checkout: Checkout) -> Words:
    """The script as a person would have said it here."""
    given = script.model_fields_set
    return Words(
        objective=script.objective,
        state=[_said(item) for item in script.state],
        disposition=script.disposition,
        next_action=None if script.next_action is None else _said(script.next_action),
        no_next_action="next_action" in given and script.next_action is None,
        cite=script.cite,
        only_words=script.only_words,
        omissions=[
            {"text": item, "citation": None} if isinstance(item, str) else dump(item) for item in script.omissions
        ],
        evidence=[as_read_here(checkout, dump(item)) for item in script.evidence],
    )


def _said(item: str | ScriptStatement) -> str | Said:
    if isinstance(item, str):
        return item
    return Said(item.text, cite=item.cite, citations=[dump(citation) for citation in item.citations])


def opened(sealed: SealedRequest, checkout: Checkout) -> HandOffNowAsk:
    """The sealed request with its evidence as this host reads it."""
    request = dump(sealed.request)
    request["evidence"] = [as_read_here(checkout, item) for item in request["evidence"]]
    return validate(HandOffNowAsk, request)


def as_read_here(checkout: Checkout, item: Mapping[str, Any]) -> dict[str, Any]:
    """A piece of inline evidence: with this host's own reading where it is the same fact, else marked as said."""
    found = dict(item)
    if item["source_type"] not in ("git_commit", "file", "worktree", "test_report", "document"):
        return found
    own = _own_reading(checkout, str(item["source_type"]), item["descriptor"] or {})
    if own is None:
        return found | {"said": True}
    return found | {"descriptor": own, "said": False}


def _own_reading(checkout: Checkout, source_type: str, told: Mapping[str, Any]) -> dict[str, Any] | None:
    """What this host's reader says of the same thing, if it says the same."""
    try:
        if source_type == "git_commit":
            own = checkout.commit(str(told.get("oid", "")))
            # Where a commit is known by now may have changed since; that is no contradiction.
            return own if _agrees(told, own, ignoring=("remote_refs",)) else None
        if source_type == "file":
            own = checkout.file(str(told.get("path", "")))
            return own if _agrees(told, own, ignoring=("commit",)) else None
        if source_type == "worktree":
            own = checkout.worktree()
            return own if _agrees(told, own, ignoring=("workspace_instance_id",)) else None
    except PassdownError as error:
        if error.code not in ("git_object_not_found", "git_file_not_found", "invalid_request"):
            raise
    return None


def _agrees(told: Mapping[str, Any], own: Mapping[str, Any], *, ignoring: tuple[str, ...]) -> bool:
    return all(own.get(name) == value for name, value in told.items() if name not in ignoring and value is not None)
