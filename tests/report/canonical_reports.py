"""Builds canonical reports for the tests of renderers and verification, apart from the code that assembles them.

Digests are computed with ``rfc8785`` and ``hashlib``, an implementation of its own.
"""

from __future__ import annotations

import copy
import hashlib
import unicodedata
from typing import Any

import rfc8785

ENVELOPE_SCHEMA = "powercontext.handoff-report-selection.v1"
FILTERS: dict[str, Any] = {
    "kinds": [],
    "dispositions": [],
    "labels": [],
    "external_refs": [],
    "activity_sources": [],
    "agent_labels": [],
    "time_bases": [],
    "include_archived": False,
}
SOURCES = ("coding_session", "git_commit", "git_worktree", "handoff_observation")
OID = "4f1d2c3b4a59687786950413223140516f7e8d9c"
COMMIT = f"{OID}@0123456789ab"


def nfc(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [nfc(item) for item in value]
    if isinstance(value, dict):
        return {key: nfc(item) for key, item in value.items()}
    return value


def sha256(value: Any) -> str:
    return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def envelope(report: dict[str, Any]) -> dict[str, Any]:
    renamed = {"filters": "normalized_filters", "period": "normalized_period"}
    names = (
        *("project_revision", "filters", "period", "selection_consistency", "activity_cursor"),
        *("baseline_selection", "end_selection", "activity_selection"),
    )
    found = {renamed.get(name, name): report[name] for name in names}
    return {**found, "schema": ENVELOPE_SCHEMA, "project_id": report["project"]["project_id"]}


def sealed(report: dict[str, Any]) -> dict[str, Any]:
    """The report with both digests recomputed."""
    report = nfc(copy.deepcopy(report))
    report["selection_digest"] = sha256(envelope(report))
    report["report_digest"] = sha256({name: value for name, value in report.items() if name != "report_digest"})
    return report


def exported(report: dict[str, Any]) -> bytes:
    return rfc8785.dumps(report)


def source(source_type: str, source_id: str) -> dict[str, Any]:
    return {"kind": "source", "source_ref": {"source_type": source_type, "source_id": source_id}}


def artifact(artifact_id: str, revision: int) -> dict[str, Any]:
    return {"kind": "artifact", "artifact_ref": {"family": "handoff", "artifact_id": artifact_id, "revision": revision}}


def evidence(
    citation: dict[str, Any],
    label: str,
    assurance: str | None = "host_read",
    *,
    readable: bool = True,
    read_by: str | None = None,
    remote_refs: list[str] | None = None,
) -> dict[str, Any]:
    return {
        "citation": citation,
        "assurance": assurance,
        "label": label,
        "readable": readable,
        "read_by": read_by,
        "remote_refs": remote_refs,
    }


def statement(text: str, *citations: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "citations": list(citations)}


def content(
    disposition: str,
    objective: str,
    state: list[dict[str, Any]],
    next_action: dict[str, Any] | None = None,
    omissions: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    return {
        "schema": "powercontext.handoff.v1",
        "objective": objective,
        "state": state,
        "disposition": disposition,
        "next_action": next_action,
        "omissions": omissions or [],
    }


def workstream(
    scope_id: str,
    title: str,
    key: str | None = None,
    said: dict[str, Any] | None = None,
    cited: list[dict[str, Any]] | None = None,
    *,
    revision: int = 1,
    checked: bool = True,
    **descriptor: Any,
) -> dict[str, Any]:
    """A workstream report; the facts that follow from content and evidence are derived here, plainly."""
    items = cited or []
    unreadable = [item["citation"] for item in items if not item["readable"]]
    checks: Any = []
    reporting = "no_handoff"
    if said is not None:
        claims = [("state", index, claim) for index, claim in enumerate(said["state"])]
        if said["next_action"]:
            claims.append(("next_action", None, said["next_action"]))
        for name, index, claim in claims:
            missing = [citation for citation in claim["citations"] if citation in unreadable]
            status = "unavailable" if missing else "available"
            checks.append({"claim": name, "state_index": index, "status": status, "unavailable_evidence": missing})
        reporting = "reported_with_omissions" if said["omissions"] else "reported"
        if not checked:
            checks = "not_checked"
            items = [{**item, "readable": None} for item in items]
        elif unreadable:
            reporting = "evidence_unavailable"
    return {
        "workstream": {
            "schema": "powercontext.workstream.v1",
            "scope_id": scope_id,
            "project_id": "prj_01K4ZQ8M2T0000000000000001",
            "key": key,
            "title": title,
            "kind": "feature",
            "catalog_state": "included",
            "external_refs": [],
            "labels": [],
            "version": 1,
            **descriptor,
        },
        "handoff_ref": said and artifact(f"hnd_{revision:026d}", revision)["artifact_ref"],
        "content": said,
        "evidence_checks": checks,
        "evidence": items,
        "unproved": bool(
            said and said["disposition"] == "complete" and not any(item["assurance"] == "host_read" for item in items)
        ),
        "recorded_at": said and "2026-11-29T08:30:00.250000Z",
        "reporting_status": reporting,
        "activity_status": "unknown",
        "handoff_activity_relation": said and "unknown",
        "observed_activity_count": 0,
        "activities": [],
        "temporal_basis": {"baseline": None, "end": None},
        "baseline": None,
    }


def report(
    workstreams: list[dict[str, Any]], locale: str = "en", *, total: int | None = None, **members: Any
) -> dict[str, Any]:
    """A sealed canonical report over workstreams that stand in their order already."""
    project = {
        "schema": "powercontext.project.v1",
        "project_id": "prj_01K4ZQ8M2T0000000000000001",
        "project_key": "payments",
        "title": "Payments",
        "description": None,
        "default_locale": "zh-CN",
        "timezone": None,
        "catalog_state": "included",
        "version": 1,
        **members.pop("project", {}),
    }
    states = [item["content"]["disposition"] if item["content"] else "no_handoff" for item in workstreams]
    statuses = [item["reporting_status"] for item in workstreams]
    selection = [
        {
            "scope_id": item["workstream"]["scope_id"],
            "workstream_revision": item["workstream"]["version"],
            "status": "selected" if item["handoff_ref"] else "no_handoff",
            "handoff_ref": item["handoff_ref"],
        }
        for item in workstreams
    ]
    return sealed(
        {
            "schema": "powercontext.handoff-report.v1",
            "trust": "untrusted_history",
            "locale": locale,
            "format": "markdown",
            "report_kind": "handoff",
            "generated_at": "2026-11-30T20:05:11.000123Z",
            "renderer_version": f"markdown.{locale}.v1",
            "project": project,
            "project_revision": 9,
            "filters": {**FILTERS, **members.pop("filters", {})},
            "period": None,
            "selection_consistency": "optimistic_stable",
            "activity_cursor": 0,
            "baseline_selection": None,
            "end_selection": sorted(selection, key=lambda entry: entry["scope_id"].encode()),
            "activity_selection": [],
            "coverage": {
                "total_included_workstreams": len(workstreams) if total is None else total,
                "catalog_matched_workstreams": len(workstreams),
                "selected_workstreams": len(workstreams),
                "missing_handoff_workstreams": states.count("no_handoff"),
                "unknown_end_workstreams": 0,
                "reported_with_omissions": sum(
                    bool(item["content"] and item["content"]["omissions"]) for item in workstreams
                ),
                "unchecked_evidence_workstreams": sum(item["evidence_checks"] == "not_checked" for item in workstreams),
                "unavailable_evidence_workstreams": statuses.count("evidence_unavailable"),
                "activity_without_handoff_workstreams": 0,
                "activity_after_handoff_workstreams": 0,
                "unassigned_activity_events": 0,
                "unknown_time_events": 0,
                "enabled_activity_sources": [],
                "unavailable_activity_sources": [{"source": name, "reason": "never_run"} for name in SOURCES],
            },
            "summary": {
                f"{state}_count": states.count(state) for state in ("continuable", "blocked", "complete", "no_handoff")
            },
            "changes": None,
            "unassigned_activity": [],
            "generated_summary": None,
            "workstreams": workstreams,
            **members,
        }
    )


def all_states() -> list[dict[str, Any]]:
    """Five workstreams: blocked, continuable with evidence gone, without handoff, complete, complete but unproved."""
    commit, file, note, gone = (
        source("git_commit", COMMIT),
        source("file", "src/queue.py@" + "ab" * 32),
        source("content", "ops-note"),
        source("worktree", "wt-1"),
    )
    by_host = {"read_by": "build-host"}
    return [
        workstream(
            "scp_blocked",
            "Retry queue",
            "PAY-12",
            content(
                "blocked",
                "Retry failed captures without charging twice.\nStop after five attempts.",
                [
                    statement("The queue keeps its order across restarts.", commit, file),
                    statement("Ops has not handed out broker credentials for staging.", note),
                ],
                statement("Ask ops for the staging credentials, then run the restart test.", note, commit),
                [{"text": "Load behaviour over 1,000 messages was not measured.", "citation": None}],
            ),
            [
                evidence(commit, "4f1d2c3 Keep order across restarts", remote_refs=["origin/main"], **by_host),
                evidence(file, "src/queue.py", **by_host),
                evidence(note, "Chat with ops, 28 November", "caller_supplied"),
            ],
            revision=7,
            labels=["payments", "q4"],
            external_refs=[
                {"kind": "issue", "provider": "github", "external_id": "shop/pay#12", "url": "https://example.com/12"}
            ],
        ),
        workstream(
            "scp_go",
            "Parser error handling",
            None,
            content(
                "continuable",
                "Report every malformed line with its number.",
                [statement("Line numbers are exact for LF files.", commit), statement("CRLF half done.", gone)],
                statement("Finish CRLF in the tokenizer.", gone),
                [{"text": "The old parser's behaviour on NUL is unknown.", "citation": note}],
            ),
            [
                evidence(commit, "4f1d2c3 Count lines", remote_refs=[], **by_host),
                evidence(gone, "uncommitted files", None, readable=False),
                evidence(note, "Old parser manual", "referenced"),
            ],
            revision=2,
            kind="bug",
        ),
        workstream("scp_none", "Invoice export", "PAY-20"),
        workstream(
            "scp_done",
            "Audit log",
            "PAY-3",
            content("complete", "Log every refund.", [statement("Refunds are logged.", commit)]),
            [evidence(commit, "4f1d2c3 Log refunds", remote_refs=["origin/main", "origin/rel-1"], **by_host)],
            revision=3,
        ),
        workstream(
            "scp_said",
            "Currency rounding",
            "PAY-9",
            content("complete", "Round half to even.", [statement("All amounts round half to even.", note)]),
            [evidence(note, "Message from the last session", "caller_supplied")],
        ),
    ]
