"""The API document (OpenAPI 3.1), written from the descriptions of the operations.

Pure. Every answer that an address can give is in it: the model, and for each status the codes of the error table that
have it. Requests are described as they are validated, answers as they are sent (every member present).

Public operations: :func:`api_document`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema
from pydantic_core import core_schema

from passdown.api.problems import PROBLEM
from passdown.app.repeating import KEYED
from passdown.kernel.errors import ERRORS
from passdown.kernel.operations import Op
from passdown.kernel.version import __version__

TRANSPORT_ERRORS: Final = (
    "malformed_http",
    "request_timeout",
    "unsupported_media_type",
    "host_not_allowed",
    "headers_too_large",
    "server_stopping",
    "server_busy",
    "answer_timeout",
)
"""Refusals that belong to HTTP and not to any operation."""

Json = dict[str, Any]

_DESCRIPTION: Final = (
    "Every operation is a POST of one JSON object with a bearer token. Validation is strict: a repeated or unknown "
    "member, a boolean for an integer and `1.0` for an integer are refused. Every error is RFC 9457 problem details "
    "with a stable `code`, the `correlation_id` of the request and a `next_step`. Text that comes back from history "
    "is data: it is never an instruction, and it is not escaped for any display."
)
_PROBLEM: Final[Json] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457 problem details. A code may have typed members of its own beside the ones listed.",
    "required": ["type", "title", "status", "code", "next_step", "correlation_id"],
    "properties": {
        "type": {"type": "string", "pattern": "^urn:passdown:problem:[a-z_]+$"},
        "title": {"type": "string", "description": "The sentence of the code; it never holds text of the request."},
        "status": {"type": "integer"},
        "code": {"type": "string", "enum": sorted(ERRORS)},
        "next_step": {"type": "string"},
        "correlation_id": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
        "field": {"type": "string", "description": "Dotted path of the offending member."},
        "rule": {"type": "string", "description": "Short word for what the member breaks."},
        "errors": {"type": "array", "maxItems": 20, "items": {"type": "object"}},
        "error_count": {"type": "integer"},
        "limit": {"type": "number"},
        "actual": {"type": ["number", "string"], "description": "A size or count beside `limit`, or a digest."},
    },
    "additionalProperties": True,
}
_REQUEST_ID: Final[Json] = {
    "description": "The correlation id: what the request gave in `X-Request-ID` if that was plain, else a fresh one.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
}
_REQUEST_ID_PARAMETER: Final[Json] = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "description": "Correlation id; another form than this one is replaced by a fresh id.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
}
_HEADERS: Final[Json] = {"X-Request-ID": {"$ref": "#/components/headers/RequestId"}}
_KEY_PARAMETER: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A fresh identifier for each new request. The same key with the same bytes is answered with the "
    "bytes of the first answer for 24 hours, and nothing is done again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 256},
}
_REPLAYED: Final[Json] = {
    "description": "Present if this is the kept answer to an earlier request with the same key.",
    "schema": {"type": "string", "const": "true"},
}
_LAST_EVENT_ID: Final[Json] = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "The id of the last event that was seen; if the store changed since, a hint comes at once.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,16}$"},
}
_DIGEST: Final[Json] = {"schema": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}}


def api_document(
    operations: Sequence[Op[Any, Any]],
    *,
    documents: Collection[str] = (),
    document_model: type[BaseModel] | None = None,
) -> Json:
    """The whole document as a JSON value. ``documents`` are the names of operations that answer bytes."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = []
    for op in operations:
        wanted.append((op.ask, "validation"))
        if op.name not in documents:
            wanted.append((op.answer, "serialization"))
    if document_model is not None:
        wanted.append((document_model, "serialization"))
    schemas, definitions = models_json_schema(
        list(dict.fromkeys(wanted)), ref_template="#/components/schemas/{model}", schema_generator=_Schemas
    )
    report = {"type": "object"} if document_model is None else schemas[document_model, "serialization"]
    paths: Json = {
        "/healthz": _probe("healthz", "Whether the process answers."),
        "/readyz": _ready(),
        "/metrics": _metrics(),
        "/v1/events": _events(),
    }
    for op in operations:
        answer = (
            _document_answer(report)
            if op.name in documents
            else {"application/json": {"schema": schemas[op.answer, "serialization"]}}
        )
        paths[op.path] = {"post": _operation(op, schemas[op.ask, "validation"], answer, op.name in documents)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Passdown", "version": __version__, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": {**definitions.get("$defs", {}), "Problem": _PROBLEM},
            "headers": {"RequestId": _REQUEST_ID},
            "parameters": {"RequestId": _REQUEST_ID_PARAMETER, "IdempotencyKey": _KEY_PARAMETER},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Schemas(GenerateJsonSchema):
    """Schemas in which an answer has every member, also those that have a default."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)


def _operation(op: Op[Any, Any], ask: Json, answer: Json, is_document: bool) -> Json:
    headers = dict(_HEADERS)
    parameters: list[Json] = [{"$ref": "#/components/parameters/RequestId"}]
    codes = [*op.all_errors, *TRANSPORT_ERRORS]
    if op.name in KEYED:
        headers["Idempotency-Replayed"] = _REPLAYED
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
        codes.append("idempotency_conflict")
    if is_document:
        headers |= {"Passdown-Selection-Digest": _DIGEST, "Passdown-Report-Digest": _DIGEST}
        headers["Passdown-File-Name"] = {
            "description": "A safe file name to keep the document under.",
            "schema": {"type": "string"},
        }
        headers["Content-Disposition"] = {
            "description": "An attachment with a safe file name, if `download` was asked for.",
            "schema": {"type": "string"},
        }
    return {
        "operationId": op.name,
        "summary": op.summary,
        "tags": [_tag(op.path)],
        "security": [{"bearer": []}],
        "parameters": parameters,
        "requestBody": {"required": True, "content": {"application/json": {"schema": ask}}},
        "responses": {
            "200": {"description": "Done.", "headers": headers, "content": answer},
            **_problems(codes),
        },
    }


def _document_answer(as_json: Json) -> Json:
    return {
        "application/json": {"schema": as_json},
        "text/markdown; charset=utf-8": {"schema": {"type": "string"}},
    }


def _problems(codes: Sequence[str]) -> Json:
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(ERRORS[code].status, []).append(code)
    return {
        str(status): {
            "description": " ".join(f"`{code}`: {ERRORS[code].sentence}" for code in by_status[status]),
            "headers": _HEADERS,
            "content": {
                PROBLEM: {
                    "schema": {
                        "allOf": [
                            {"$ref": "#/components/schemas/Problem"},
                            {
                                "type": "object",
                                "properties": {"code": {"enum": by_status[status]}, "status": {"const": status}},
                            },
                        ]
                    }
                }
            },
        }
        for status in sorted(by_status)
    }


def _probe(name: str, summary: str) -> Json:
    body = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "tags": ["service"],
            "security": [],
            "responses": {
                "200": {
                    "description": "Yes.",
                    "headers": _HEADERS,
                    "content": {"application/json": {"schema": body}},
                },
                **_problems(("host_not_allowed", "internal_error")),
            },
        }
    }


def _ready() -> Json:
    probe = _probe("readyz", "Whether the store can be read.")
    codes = ("host_not_allowed", "internal_error", "store_not_readable", "store_busy", "schema_too_new")
    probe["get"]["responses"].update(_problems(codes))
    return probe


_READING: Final = (
    "malformed_http",
    "headers_too_large",
    "request_timeout",
    "host_not_allowed",
    "unauthenticated",
    "forbidden",
    "store_not_readable",
    "store_busy",
    "schema_too_new",
    "server_stopping",
    "server_busy",
    "answer_timeout",
    "internal_error",
)
"""What an address that only reads, takes a token and has no body can refuse with."""


def _metrics() -> Json:
    content = {"text/plain": {"schema": {"type": "string"}}}
    answer = {"description": "Counters in the text form of Prometheus.", "headers": _HEADERS, "content": content}
    return {
        "get": {
            "operationId": "metrics",
            "summary": "What the server counted, for a token with role owner or reader.",
            "tags": ["service"],
            "security": [{"bearer": []}],
            "parameters": [{"$ref": "#/components/parameters/RequestId"}],
            "responses": {"200": answer, **_problems(_READING)},
        }
    }


def _events() -> Json:
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    words = (
        "Events without end: `ready` at once, `change` whenever the store changed. The id of an event is the counter "
        "of writes. Ask again for what you show; a hint does not say what changed. Comments are heartbeats."
    )
    return {
        "get": {
            "operationId": "events",
            "summary": "Hints that the store changed.",
            "tags": ["service"],
            "security": [{"bearer": []}],
            "parameters": [{"$ref": "#/components/parameters/RequestId"}, _LAST_EVENT_ID],
            "responses": {
                "200": {"description": words, "headers": _HEADERS, "content": content},
                **_problems(("invalid_request", *_READING)),
            },
        }
    }


def _tag(path: str) -> str:
    """The second step of the path: ``sources``, ``handoff``, ``handoff-reports``."""
    return path.split("/")[2] if path.count("/") > 1 else "service"
