"""Words about a compared checkout: why a relation is unknown, why a path may only look changed, what was not read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from passdown.cli import screen

if TYPE_CHECKING:
    from passdown.handoff.operations import PathRemark, Workspace

_UNKNOWN = {
    "no_commit_cited": "the handoff cites no commit to compare HEAD with",
    "commit_missing": "this repository lacks a commit that the handoff cites; `git fetch` may bring it",
    "shallow": "this clone is shallow and its history ends too early; `git fetch --unshallow` brings the rest",
    "no_head": "there is no commit here yet; check out the branch that the handoff was written on",
}
_REMARKS = {
    "filter_not_run": "may only look changed: it passes through a filter, which is not run",
    "line_endings": "may only look changed: line ends",
    "mode": "same bytes, other mode",
}
_NOTES = {
    "nested_repository_not_read": "a repository inside this one was not read",
    "repository_attributes_not_read": "the attributes file that this repository's settings name was not read",
    "repository_excludes_not_read": "the excludes file that this repository's settings name was not read",
    "submodule_not_entered": "submodules were not entered; run `git status` in them",
    "unreadable_file": "a file could not be read",
    "unreadable_folder": "a folder could not be opened: what is uncommitted in it is not known",
    "user_config_unreadable": "your git settings could not be read: ignored paths may be listed",
}


def why_unknown(workspace: Workspace) -> str:
    """The cause and what to do about it, after a colon; empty where the relation is known or the cause was not told."""
    return "" if workspace.unknown_because is None else f": {_UNKNOWN[workspace.unknown_because]}"


def named(paths: Iterable[str], remarks: Iterable[PathRemark]) -> list[str]:
    """Each path as one harmless line, with the reason for doubt behind it."""
    reasons = {item.path: _REMARKS[item.remark] for item in remarks}
    return [screen.plain(path) + (f" ({reasons[path]})" if path in reasons else "") for path in paths]


def not_read(workspace: Workspace) -> list[str]:
    """A line for each thing that the reading of this checkout left out."""
    told = (_NOTES[note] for note in workspace.notes if note in _NOTES)
    return [line for text in told for line in screen.flowing(f"? Not read: {text}", 0)]
