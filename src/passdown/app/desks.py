"""Where a handoff is written: the caller, the checkout, the workstream with its language and its last handoff."""

from __future__ import annotations

from dataclasses import dataclass

from passdown.app import catalog
from passdown.app.citing import Words
from passdown.app.handing import RECENT_COMMITS, compose
from passdown.app.resuming import Previous, previous
from passdown.handoff.gitdraft import Locale
from passdown.handoff.host import Checkout
from passdown.handoff.operations import HandOffNowAsk
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Caller
from passdown.report.models import WorkstreamDescriptor


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a handoff is written. ``title`` is its objective where nobody says one and there is no last one.

    ``recent`` bounds the commits that are restated: the history of the repository belongs to the workstream that was
    there first; another one begins at HEAD.
    """

    call: Caller
    checkout: Checkout
    scope_id: str
    title: str
    locale: Locale
    last: Previous | None
    recent: int


def _listed(call: Caller, scope_id: str) -> WorkstreamDescriptor | None:
    """The catalog entry of the workstream; None where there is none, or no catalog because the report is off."""
    try:
        return catalog.workstream_of(call, scope_id)
    except PassdownError as error:
        if error.code not in ("feature_off", "not_found"):
            raise
        return None


def desk(call: Caller, checkout: Checkout, scope_id: str) -> Desk:
    """Look up what a handoff of this workstream starts from."""
    item = _listed(call, scope_id)
    locale = catalog.project(call, item.project_id).default_locale if item else "en"
    last = previous(call, scope_id)
    is_later = (
        item is not None
        and last is None
        and any(other.scope_id != item.scope_id for other in catalog.workstreams(call, item.project_id))
    )
    title = item.title if item else scope_id
    return Desk(call, checkout, scope_id, title, locale, last, 1 if is_later else RECENT_COMMITS)


def request(at: Desk, words: Words) -> HandOffNowAsk:
    """The request that these words make here."""
    return compose(at.last, at.checkout, at.scope_id, words, title=at.title, locale=at.locale, recent=at.recent)
