"""The rows of the one error table. A test looks for a raise and an assertion of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from passdown.kernel.error_rows import PLACE_ROWS, Row


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


def _rows(*rows: Row) -> Mapping[str, ErrorSpec]:
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
    (
        "test_report_refused",
        422,
        2,
        "The file is no test report in JUnit's XML that can be read safely.",
        "Give the XML that the test runner wrote, without a document type; `rule` says what was met.",
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
        "The repository uses a storage format that Passdown does not support.",
        "Clone it in the ordinary format, with refs as files, and work there; `feature` names the format.",
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
    *PLACE_ROWS,
)
