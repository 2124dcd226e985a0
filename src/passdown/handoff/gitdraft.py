"""A draft that says only what git shows. Pure.

Each statement cites the commit or the worktree reading it was made from, by inline label. There is never a next action:
history does not show one. Wording exists in both report languages; everything quoted stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Locale = Literal["zh-CN", "en"]
WORKTREE_LABEL: Final = "worktree"
NAMED_PATHS: Final = 5
STATEMENT_PATH_CHARS: Final = 200
STATEMENT_SUBJECT_CHARS: Final = 300
"""A longer subject is visibly cut in the statement, so that ten fit into one handoff; its source has all of it."""

_WORDS: Final[Mapping[str, Mapping[Locale, str]]] = {
    "commit": {"en": "Committed: {subject}", "zh-CN": "已提交：{subject}"},
    "no_subject": {"en": "Committed without a subject line.", "zh-CN": "已提交，但没有标题行。"},
    "tag": {"en": "Tag {name} names this commit: {subject}", "zh-CN": "标签 {name} 指向此提交：{subject}"},
    "clean": {"en": "Nothing is uncommitted.", "zh-CN": "没有未提交的改动。"},
    "dirty": {"en": "Uncommitted paths ({count}): {paths}", "zh-CN": "未提交的路径（{count}）：{paths}"},
    "more": {"en": "and {count} more", "zh-CN": "另有 {count} 个"},
    "earlier": {
        "en": "Earlier commits are not restated here.",
        "zh-CN": "更早的提交未在此复述。",
    },
    "shallow": {
        "en": "The clone is shallow: history before its oldest commit was not available.",
        "zh-CN": "此克隆是浅克隆：最早提交之前的历史不可用。",
    },
    "unborn": {"en": "The repository has no commit yet.", "zh-CN": "此仓库还没有提交。"},
    "unread": {
        "en": "A folder could not be opened: what is uncommitted in it is not known.",
        "zh-CN": "有文件夹无法打开：其中未提交的内容未知。",
    },
    "unread_file": {
        "en": "A file could not be read: its content is not known here.",
        "zh-CN": "有文件无法读取：此处不知道其内容。",
    },
    "submodule": {
        "en": "A submodule is checked out: what is uncommitted inside it was not read.",
        "zh-CN": "有已检出的子模块：其中未提交的内容未读取。",
    },
    "nested": {
        "en": "A repository inside this one was not read.",
        "zh-CN": "此仓库内部的另一个仓库未读取。",
    },
    "rules": {
        "en": "A file of git's rules was not read: paths that it would ignore may be listed.",
        "zh-CN": "有 git 规则文件未读取：可能列出了按其规则应忽略的路径。",
    },
    "doubtful": {
        "en": "{count} of the uncommitted paths may only look changed: a filter was not run, or line ends differ.",
        "zh-CN": "未提交的路径中有 {count} 个可能只是看起来有改动：过滤器未运行，或行尾不同。",
    },
    "clean_but": {
        "en": "Nothing that could be read is uncommitted.",
        "zh-CN": "在可以读取的范围内没有未提交的改动。",
    },
    "not_listed": {
        "en": "{count} uncommitted paths were counted but not recorded.",
        "zh-CN": "有 {count} 个未提交的路径只计数，未记录。",
    },
}


_NOTED: Final[Mapping[str, frozenset[str]]] = {
    "unread": frozenset({"unreadable_folder"}),
    "unread_file": frozenset({"unreadable_file"}),
    "submodule": frozenset({"submodule_not_entered"}),
    "nested": frozenset({"nested_repository_not_read"}),
    "rules": frozenset({"user_config_unreadable", "repository_excludes_not_read", "repository_attributes_not_read"}),
}
"""The omission that each note of a status becomes."""
_MAY_HIDE: Final = frozenset({"unreadable_folder", "submodule_not_entered"})
"""With these, a worktree without a change is not said to be clean."""

_FROM_GIT: Final = re.compile(
    "|".join(
        ".*".join(map(re.escape, re.split(r"\{[a-z]+\}", wording)))
        for key in ("commit", "no_subject", "tag", "clean", "clean_but", "dirty")
        for wording in _WORDS[key].values()
    ),
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class GitFacts:
    """What the host read: commit descriptors newest first, tag names by commit id, the worktree descriptor.

    ``notes`` are those of the status, and ``doubtful`` counts the paths that may only look changed.
    """

    commits: Sequence[Mapping[str, Any]]
    tags: Mapping[str, Sequence[str]]
    worktree: Mapping[str, Any]
    shallow: bool
    more_history: bool
    notes: Sequence[str] = ()
    doubtful: int = 0


@dataclass(frozen=True, slots=True)
class GitDraft:
    """Members for ``hand_off_now``: statements and omissions with inline citations, and the evidence they cite.

    The last statement is the one about the worktree; ``is_dirty`` says that something is uncommitted in it.
    """

    state: tuple[dict[str, Any], ...]
    omissions: tuple[dict[str, Any], ...]
    evidence: tuple[dict[str, Any], ...]
    is_dirty: bool


def commit_label(oid: str) -> str:
    """The inline label of a commit."""
    return f"commit {oid}"


def _inline(label: str) -> list[dict[str, str]]:
    return [{"kind": "inline", "label": label}]


def is_from_git(text: str) -> bool:
    """Whether a statement has the wording of one that this module makes, in either language.

    Somebody who writes "Committed: …" by hand says what git would say, and git will say it again.
    """
    return _FROM_GIT.fullmatch(text) is not None


def _commit_text(commit: Mapping[str, Any], tags: Sequence[str], locale: Locale) -> str:
    subject = str(commit["subject"]).strip()
    if len(subject) > STATEMENT_SUBJECT_CHARS:
        subject = subject[: STATEMENT_SUBJECT_CHARS - 1] + "…"
    if tags:
        return _WORDS["tag"][locale].format(name=", ".join(tags[:NAMED_PATHS]), subject=subject)
    return _WORDS["commit"][locale].format(subject=subject) if subject else _WORDS["no_subject"][locale]


def worktree_text(worktree: Mapping[str, Any], locale: Locale) -> str:
    """What is uncommitted, in a sentence that names at most five paths and counts the rest."""
    entries = worktree["entries"]
    count = len(entries) + worktree["omitted_paths"]
    if not count:
        return _WORDS["clean"][locale]
    named = [str(entry["path"])[:STATEMENT_PATH_CHARS] for entry in entries[:NAMED_PATHS]]
    if count > len(named):
        named.append(_WORDS["more"][locale].format(count=count - len(named)))
    return _WORDS["dirty"][locale].format(count=count, paths=", ".join(named))


def draft(facts: GitFacts, locale: Locale) -> GitDraft:
    """Statements for the worktree and each commit, omissions for what git did not show."""
    evidence: list[dict[str, Any]] = [
        {"label": commit_label(commit["oid"]), "source_type": "git_commit", "descriptor": dict(commit)}
        for commit in facts.commits
    ]
    evidence.append(
        {"label": WORKTREE_LABEL, "source_type": "worktree", "descriptor": dict(facts.worktree)},
    )
    state = [
        {
            "text": _commit_text(commit, facts.tags.get(commit["oid"], ()), locale),
            "citations": _inline(commit_label(commit["oid"])),
        }
        for commit in facts.commits
    ]
    text = worktree_text(facts.worktree, locale)
    if _MAY_HIDE.intersection(facts.notes) and text == _WORDS["clean"][locale]:
        text = _WORDS["clean_but"][locale]
    state.append({"text": text, "citations": _inline(WORKTREE_LABEL)})
    omissions: list[dict[str, Any]] = []
    if not facts.commits and facts.worktree["head"] is None:
        omissions.append({"text": _WORDS["unborn"][locale], "citation": None})
    if facts.more_history:
        omissions.append({"text": _WORDS["earlier"][locale], "citation": None})
    if facts.shallow:
        omissions.append({"text": _WORDS["shallow"][locale], "citation": None})
    for key, notes in _NOTED.items():
        if notes.intersection(facts.notes):
            omissions.append({"text": _WORDS[key][locale], "citation": _inline(WORKTREE_LABEL)[0]})
    if facts.doubtful:
        text = _WORDS["doubtful"][locale].format(count=facts.doubtful)
        omissions.append({"text": text, "citation": _inline(WORKTREE_LABEL)[0]})
    if facts.worktree["omitted_paths"]:
        text = _WORDS["not_listed"][locale].format(count=facts.worktree["omitted_paths"])
        omissions.append({"text": text, "citation": _inline(WORKTREE_LABEL)[0]})
    is_dirty = bool(facts.worktree["entries"] or facts.worktree["omitted_paths"])
    return GitDraft(tuple(state), tuple(omissions), tuple(evidence), is_dirty)
