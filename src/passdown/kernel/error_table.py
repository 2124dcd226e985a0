"""The rows of the one error table. A test looks for a raise and an assertion of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """One row: ``code`` -> problem type, HTTP ``status``, ``exit_code``, ``sentence``, ``next_step``."""

    code: str
    status: int
    exit_code: int
    sentence: str
    next_step: str

    @property
    def type(self) -> str:
        """The problem type: a URN, stable for ever, that needs no server to exist."""
        return f"urn:passdown:problem:{self.code}"


def _rows(*rows: tuple[str, int, int, str, str]) -> Mapping[str, ErrorSpec]:
    return {row[0]: ErrorSpec(*row) for row in rows}


ERRORS: Final[Mapping[str, ErrorSpec]] = _rows(
    # --- the form of the input -------------------------------------------------------------------------------------
    (
        "malformed_json",
        400,
        2,
        "The input is not one well-formed JSON document in UTF-8.",
        "Send exactly one JSON document; the member `rule` says what broke and `offset` where.",
    ),
    (
        "invalid_request",
        422,
        2,
        "A member of the request has a wrong type, value or length, is missing, or is unknown.",
        "Correct the members listed under `errors` (each has `field` and `rule`) and send the request again.",
    ),
    (
        "not_canonical",
        422,
        2,
        "The value or the bytes have no canonical JSON form, or are not in it.",
        "Use integers up to 2^53-1 instead of floats, keys that stay different under NFC, and at most 64 levels; "
        "for a file, export it again instead of editing it.",
    ),
    (
        "body_too_large",
        413,
        2,
        "The request body is larger than this server accepts.",
        "Send less at once; `limit` and `actual` are in bytes.",
    ),
    # --- who asks --------------------------------------------------------------------------------------------------
    (
        "unauthenticated",
        401,
        2,
        "The request carries no valid bearer token.",
        "Send `Authorization: Bearer TOKEN`; create one with `passdown token create NAME --principal ID`.",
    ),
    (
        "forbidden",
        403,
        2,
        "This token does not allow the operation.",
        "Ask the owner for a token whose role allows it.",
    ),
    (
        "token_not_found",
        404,
        4,
        "There is no such token.",
        "List the tokens with `passdown token list`.",
    ),
    # --- evidence and handoffs -------------------------------------------------------------------------------------
    (
        "source_conflict",
        409,
        3,
        "This source identity is already captured with other content.",
        "Capture it under another source_id, or leave source_id out so that it is derived from the content.",
    ),
    (
        "source_too_large",
        413,
        2,
        "The body of the source is larger than a captured source may be.",
        "Capture an extract, or cite the file by path and digest; `limit` and `actual` are in bytes.",
    ),
    (
        "source_not_found",
        404,
        4,
        "There is no such source in this workstream.",
        "List what is there with `list_sources`, or capture it first.",
    ),
    (
        "citation_not_readable",
        422,
        2,
        "A citation does not resolve in this workstream.",
        "Capture the source first, or cite one that exists; `errors` names each citation that failed.",
    ),
    (
        "unsupported_citation_kind",
        422,
        2,
        "A citation is of a kind that this version cannot check.",
        "Cite a source or an artifact of the same workstream.",
    ),
    (
        "handoff_too_large",
        413,
        2,
        "The canonical content of the handoff is larger than allowed.",
        "Shorten statements or move detail into cited sources; `limit` and `actual` are in bytes.",
    ),
    (
        "handoff_conflict",
        409,
        3,
        "Another handoff was committed to this workstream after the one this was based on.",
        "Read `current`, integrate it and prepare again; or start another workstream if both can go on alone.",
    ),
    (
        "handoff_not_found",
        404,
        4,
        "There is no such handoff revision in this workstream.",
        "List the revisions with `list_handoff_revisions`.",
    ),
    (
        "handoff_scope_mismatch",
        409,
        3,
        "The handoff belongs to another workstream than the one asked for.",
        "Ask for it under its own scope_id.",
    ),
    (
        "prepared_digest_mismatch",
        422,
        2,
        "The prepared handoff does not have the digest that it carries.",
        "It was changed or damaged on the way; ask for it again from whoever prepared it.",
    ),
    (
        "scope_not_confirmed",
        409,
        3,
        "The latest handoff of a workstream is shown only to a caller who confirms that workstream as its own.",
        "Send `confirm_scope` with the scope_id, or name an exact revision; in a checkout use `passdown switch`.",
    ),
    (
        "workspace_diverged",
        409,
        3,
        "The checkout does not stand where the handoff's next action applies, and a usable next action was required.",
        "Read the handoff without `require_usable_next_action`, compare, and decide on a new next action.",
    ),
    # --- repositories ----------------------------------------------------------------------------------------------
    (
        "not_a_repository",
        404,
        4,
        "This folder is not inside a git worktree.",
        "Change into a repository, or name one.",
    ),
    (
        "git_object_not_found",
        404,
        4,
        "The repository has no such commit.",
        "Check the id with `git cat-file -t`; in a shallow clone fetch more history.",
    ),
    (
        "git_file_not_found",
        404,
        4,
        "The worktree has no such regular file inside it.",
        "Name a file by its path relative to the root of the worktree.",
    ),
    (
        "git_unsupported",
        422,
        2,
        "The repository uses a storage format that the git on this machine cannot read.",
        "Use a newer git, or a clone in the ordinary format; `feature` names it.",
    ),
    (
        "git_failed",
        503,
        5,
        "git could not read the repository.",
        "Run `git fsck`, and `git status` in the same folder; `operation` and `status` say what failed.",
    ),
    (
        "git_not_installed",
        503,
        5,
        "There is no git program on the search path.",
        "Install git 2.31 or newer.",
    ),
    (
        "no_current_workstream",
        404,
        4,
        "No workstream is chosen for this checkout.",
        "Choose one with `passdown switch KEY`, begin one with `passdown start TITLE`, or run `passdown init`.",
    ),
    # --- projects and reports --------------------------------------------------------------------------------------
    (
        "project_not_found",
        404,
        4,
        "There is no such project.",
        "List the projects with `passdown report projects`.",
    ),
    (
        "project_conflict",
        409,
        3,
        "The project key is taken, reserved, or the project changed since you read it.",
        "Read it again and repeat the change with its `current_version`, or choose another key.",
    ),
    (
        "workstream_conflict",
        409,
        3,
        "The workstream key is taken in this project, or the workstream changed since you read it.",
        "Read it again and repeat the change with its `current_version`, or choose another key.",
    ),
    (
        "workstream_not_found",
        404,
        4,
        "There is no such workstream in the catalog.",
        "List them with `passdown switch`, or with the operation `list_handoff_report_workstreams`.",
    ),
    (
        "scope_already_grouped",
        409,
        3,
        "This scope already belongs to a project.",
        "A scope belongs to one project; read its descriptor instead of registering it again.",
    ),
    (
        "too_many_workstreams",
        422,
        2,
        "More workstreams are selected than one report may hold.",
        "Filter by kind, label or disposition, or export in batches; `limit` and `actual` are counts.",
    ),
    (
        "handoff_report_too_large",
        413,
        2,
        "The report is larger than one output may be.",
        "Filter by kind, label or disposition, leave evidence checks out, or export by workstream.",
    ),
    (
        "handoff_report_busy",
        503,
        5,
        "Handoffs kept being committed while the report was selected.",
        "Ask again in a moment.",
    ),
    (
        "handoff_report_inconsistent",
        503,
        5,
        "A revision that was just selected cannot be read.",
        "Ask again; if it stays, run `passdown db check`.",
    ),
    (
        "selection_not_resolvable",
        422,
        4,
        "An exact selection names something that is foreign, removed or mismatched here.",
        "Ask the store that the selection came from; `entry` names the first entry that failed.",
    ),
    (
        "unsupported_report_locale",
        422,
        2,
        "Reports are written in zh-CN and en only.",
        "Ask for `zh-CN` or `en`.",
    ),
    (
        "unsupported_report_format",
        422,
        2,
        "Reports are written as markdown and json only.",
        "Ask for `markdown` or `json`.",
    ),
    (
        "invalid_cursor",
        422,
        2,
        "The cursor is not one that this list gave out.",
        "Begin the list again without a cursor.",
    ),
    (
        "digest_mismatch",
        422,
        4,
        "A digest that the file carries does not fit its content.",
        "The file was changed after it was made; `digest` names the one that broke. Ask for the export again.",
    ),
    (
        "unsupported_schema",
        422,
        2,
        "The document is not of a schema that this version reads.",
        "Use a version of Passdown that knows it.",
    ),
    # --- the store, the files, the network -------------------------------------------------------------------------
    (
        "store_not_writable",
        503,
        5,
        "The store cannot be written here.",
        "Name a writable folder with `--data` or PASSDOWN_DATA; a database server must be running and let you in.",
    ),
    (
        "store_not_readable",
        503,
        5,
        "The store is missing, damaged or cannot be read.",
        "Check the folder named by `--data` or PASSDOWN_DATA and its permissions; a database server must be running.",
    ),
    (
        "store_busy",
        503,
        5,
        "The store stayed locked by another writer for too long.",
        "Repeat the command; nothing was written.",
    ),
    (
        "store_outcome_unknown",
        503,
        5,
        "The store went away before it told whether the change was made.",
        "Read what is there, then send the same request again if the change is missing.",
    ),
    (
        "store_not_empty",
        409,
        3,
        "The store already holds something, and a backup is restored only into an empty one.",
        "Name another data directory with `--data`, or an empty database; `table` is the first one with rows.",
    ),
    (
        "store_damaged",
        503,
        5,
        "The store holds what no version of Passdown wrote there.",
        "Keep a copy of it, then restore the last backup whose `passdown db check` was sound into an empty store.",
    ),
    (
        "schema_too_new",
        503,
        5,
        "The store was written by a newer version of Passdown.",
        "Use that version or a newer one; this one changes nothing in it.",
    ),
    (
        "file_not_readable",
        404,
        4,
        "The file does not exist or cannot be read.",
        "Check its name and permissions.",
    ),
    (
        "file_exists",
        409,
        3,
        "There is a file of this name already, and it is not replaced.",
        "Name another file, or move that one away.",
    ),
    (
        "file_not_writable",
        503,
        5,
        "The file cannot be written.",
        "Check its folder and permissions; nothing was changed.",
    ),
    (
        "address_not_available",
        503,
        5,
        "The server cannot listen on this address.",
        "Choose another port with `--port`; without TLS and tokens only loopback addresses are served.",
    ),
    (
        "not_found",
        404,
        4,
        "There is nothing at this address.",
        "The operations are listed in the API document.",
    ),
    (
        "method_not_allowed",
        405,
        2,
        "This address does not answer that method.",
        "Use the method in the `Allow` header.",
    ),
    (
        "malformed_http",
        400,
        2,
        "The bytes received are not a well-formed HTTP request.",
        "Send HTTP/1.1 with one `Host` header and valid header fields.",
    ),
    (
        "headers_too_large",
        431,
        2,
        "The head of the request is larger than this server accepts.",
        "Send fewer or shorter header fields; `limit` is in bytes.",
    ),
    (
        "request_timeout",
        408,
        5,
        "The request did not arrive whole in time.",
        "Send it again over a faster connection; nothing was read from it. `limit` is in seconds.",
    ),
    (
        "unsupported_media_type",
        415,
        2,
        "The request body is not sent as plain JSON.",
        "Send `Content-Type: application/json` in UTF-8 and no `Content-Encoding`.",
    ),
    (
        "host_not_allowed",
        421,
        2,
        "The `Host` header names another server than this one.",
        "Use the address that the server printed, or name the public host when starting it.",
    ),
    (
        "server_stopping",
        503,
        5,
        "The server was stopped before it had answered.",
        "Send the same request again; what was committed already is answered as a replay.",
    ),
    (
        "server_busy",
        503,
        5,
        "The server has as much work of this kind as it takes at once.",
        "Ask again in a moment; nothing of the request was done. `rule` names the kind of work, `limit` is a count.",
    ),
    (
        "answer_timeout",
        503,
        5,
        "The answer was not ready in time; whether a change was made is not known yet.",
        "Send the same request again, with the same `Idempotency-Key` where one was sent; `limit` is in seconds.",
    ),
    (
        "idempotency_conflict",
        409,
        3,
        "This `Idempotency-Key` was already used for another request.",
        "Use a fresh key for a new request, and the old one only to repeat the very same bytes.",
    ),
    (
        "server_not_reachable",
        503,
        5,
        "No answer came from the server.",
        "Check the address and that the server runs; `rule` says how far the exchange came.",
    ),
    (
        "server_not_understood",
        503,
        5,
        "What answered does not speak the protocol of this version.",
        "Check the address, and that server and client are of the same version.",
    ),
    (
        "internal_error",
        500,
        1,
        "Passdown failed; this is a fault of ours.",
        "Report it with the `correlation_id`, or with what PASSDOWN_DEBUG=1 prints; nothing was half written.",
    ),
)
