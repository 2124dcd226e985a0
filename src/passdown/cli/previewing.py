"""A handoff before and after it is committed, as lines of a screen: what it says, takes back, and became."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from passdown.cli import screen

if TYPE_CHECKING:
    from passdown.app.resuming import Previous
    from passdown.handoff.models import Draft, HandoffContent
    from passdown.handoff.operations import CommitAnswer, HandOffNowAnswer, HandOffNowAsk


_KINDS = {"git_commit": "commit", "worktree": "the worktree at", "content": "note", "test_report": "test report"}


def preview(said: HandOffNowAsk | HandoffContent | Draft) -> list[str]:
    """The handoff as it will be committed, with what each statement cites."""
    labels = {item.label: item for item in getattr(said, "evidence", ())}
    lines = screen.fields(
        [
            ("Objective", said.objective),
            ("Disposition", screen.status(said.disposition)),
            ("Next action", said.next_action.text if said.next_action else "none proposed"),
        ],
        indent=0,
    )
    lines.append("State")
    for statement in said.state:
        wrapped = screen.wrapped(statement.text, 4)
        lines.append("  • " + wrapped[0])
        lines += ["    " + line for line in wrapped[1:]]
        lines += screen.flowing("cites " + ", ".join(_cited(citation, labels) for citation in statement.citations), 6)
    if said.omissions:
        lines.append("Omissions")
        lines += [line for omission in said.omissions for line in screen.flowing(f"• {omission.text}", 2)]
    return lines


def dropped(last: Previous | None, said: HandOffNowAsk | HandoffContent) -> list[str]:
    """What the handoff before this one said and this one takes back, so that nothing is unblocked by silence."""
    if last is None:
        return []
    before, lines = last.content, []
    if before.disposition != said.disposition:
        lines.append(f"! Was {screen.status(before.disposition)}, is now {screen.status(said.disposition)}")
    if before.next_action is not None and said.next_action is None:
        lines += screen.flowing(f"! No longer proposed: {before.next_action.text}", 0)
    return lines


def _cited(citation: Any, labels: Mapping[str, Any]) -> str:
    label = str(getattr(citation, "label", ""))
    item = labels.get(label) if label else None
    if item is None and citation.kind == "source":
        kind = citation.source_ref.source_type
        return screen.plain(f"{_KINDS.get(kind, kind)} {citation.source_ref.source_id[:12]}")
    if item is None:
        return "the handoff before"
    facts = item.descriptor or {}
    said = ", said, not read" if item.said else ""
    if item.source_type == "git_commit":
        return f"{screen.plain(str(facts.get('oid', label)))[:12]} ({held(facts.get('remote_refs'))}{said})"
    if item.source_type == "worktree":
        return "the worktree as somebody described it" if said else "the worktree as read now"
    return screen.plain(str(facts.get("path") or facts.get("url") or label)) + said


def held(remote_refs: Any) -> str:
    """Which remote-tracking refs held a commit when it was read, in words."""
    if remote_refs is None:
        return "remote-tracking refs not read"
    if not remote_refs:
        return "on no remote-tracking ref when read"
    named = ", ".join(screen.plain(name) for name in remote_refs[:3])
    return f"on {named}" + (f" and {len(remote_refs) - 3} more" if len(remote_refs) > 3 else "")


def outcome(answer: HandOffNowAnswer) -> list[str]:
    """One or two lines about what was stored."""
    if answer.committed is None:
        return ["Prepared; nothing was committed."]
    lines = committed_lines(answer.committed)
    if answer.unproved and answer.committed.status == "committed":
        lines.append("Unproved: nothing that it cites was read by Passdown itself.")
    return lines


def committed_lines(committed: CommitAnswer) -> list[str]:
    """One line about a commit."""
    revision = committed.handoff_ref.revision
    if committed.status == "unchanged":
        return [f"Unchanged: the same content is revision {revision} already."]
    if committed.replayed:
        return [f"Committed before, as revision {revision}; nothing was added."]
    return [f"Committed as revision {revision}  {committed.content_digest[:19]}…"]
