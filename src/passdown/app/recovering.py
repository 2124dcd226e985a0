"""Recovering from a checkout: what a successor finds on the disk of somebody who could not hand off any more."""

from __future__ import annotations

from passdown.app.handing import RECENT_COMMITS, read_git
from passdown.app.resuming import previous
from passdown.handoff.gitdraft import Locale, draft
from passdown.handoff.host import Checkout
from passdown.handoff.recover_operations import RECOVER_DRAFT, RecoverDraftAnswer, RecoverDraftAsk
from passdown.handoff.relation import commit_of
from passdown.handoff.rules import cited
from passdown.kernel.operations import Caller
from passdown.kernel.wire import dump, validate


def recover_here(
    call: Caller,
    checkout: Checkout,
    scope_id: str,
    *,
    objective: str | None,
    locale: Locale,
    recent: int = RECENT_COMMITS,
) -> RecoverDraftAnswer:
    """A draft of this worktree: commits since the last handoff, what is uncommitted, and the last handoff's own words.

    Evidence is stored, a revision is not: whoever answers for the draft commits it.
    """
    last = previous(call, scope_id)
    known = frozenset() if last is None else frozenset(filter(None, map(commit_of, cited(dump(last.content)))))
    shown = draft(read_git(checkout, known, recent), locale)
    labels = {citation["label"] for item in shown.state for citation in item["citations"]}
    ask = {
        "scope_id": scope_id,
        "objective": objective,
        "evidence": [item for item in shown.evidence if item["label"] in labels],
        "state": list(shown.state),
        "omissions": list(shown.omissions),
        "locale": locale,
    }
    return call(RECOVER_DRAFT, validate(RecoverDraftAsk, ask))
