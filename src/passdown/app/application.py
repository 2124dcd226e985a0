"""One opened store with its handlers: what every surface calls.

The rooms are wired here and nowhere else. A room is made when one of its operations is first asked for, so that a
command which only continues a handoff never imports the report, and one that only reads the report as JSON never
imports the handlers of handoffs nor the renderers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from passdown.app.features import REPORT_MARK, features_off, require_on
from passdown.app.paths import database_path
from passdown.app.spanning import SpanningStore
from passdown.kernel.clock import Clock, SystemClock
from passdown.kernel.ids import IdSource, RandomIds
from passdown.kernel.operations import Handler, Op, Principal
from passdown.storage import Store, open_store

if TYPE_CHECKING:
    from passdown.app.places import Places
    from passdown.app.replays import Replays
    from passdown.handoff.drafting import Provider

Q = TypeVar("Q")
A = TypeVar("A")


class Local:
    """A :class:`~passdown.kernel.operations.Caller` over the handlers of this process."""

    def __init__(self, handler: Callable[[str], Handler], who: Principal) -> None:
        self._handler = handler
        self.who = who

    def __call__(self, op: Op[Q, A], ask: Q) -> A:
        """Call the operation as this principal."""
        answer: A = self._handler(op.name)(self.who, ask)
        return answer


class Application:
    """The store, the clock and the ids of one process, and the handlers over them. Close it, or use ``with``."""

    def __init__(self, store: Store, clock: Clock | None = None, ids: IdSource | None = None) -> None:
        self.store = SpanningStore(store)
        self.clock: Clock = clock or SystemClock()
        self.ids: IdSource = ids or RandomIds(self.clock)
        self.off = features_off(os.environ)
        self._handoff_handlers: dict[str, Handler] | None = None
        self._report_handlers: dict[str, Handler] | None = None

    def _handoff(self) -> dict[str, Handler]:
        if self._handoff_handlers is None:
            from passdown.handoff.service import HandoffService

            service = HandoffService(self.store, self.clock, self.ids, drafting=_drafting())
            self._handoff_handlers = service.handlers()
        return self._handoff_handlers

    def _report(self) -> dict[str, Handler]:
        if self._report_handlers is not None:
            return self._report_handlers
        from passdown.report.fragments import Fragments
        from passdown.report.handoff_reader import StoreHandoffReader
        from passdown.report.service import ReportService

        fragments = Fragments()
        reader = StoreHandoffReader(self.store, fragments)
        service = ReportService(self.store, self.clock, self.ids, reader, _markdown, fragments=fragments)
        self._report_handlers = service.handlers()
        return self._report_handlers

    def handler(self, name: str) -> Handler:
        """The handler of an operation of this version."""
        require_on(name, self.off)
        return (self._report() if REPORT_MARK in name else self._handoff())[name]

    def handlers(self) -> dict[str, Handler]:
        """Every handler, for a surface that serves them all."""
        return self._handoff() if "report" in self.off else {**self._handoff(), **self._report()}

    def caller(self, who: Principal) -> Local:
        """A caller for this principal."""
        return Local(self.handler, who)

    def replays(self) -> Replays:
        """The answers kept for repeated requests, in the transactions of these handlers."""
        from passdown.app.replays import Replays

        return Replays(self.store, self.clock)

    def places(self) -> Places | None:
        """Which project a scope or a key belongs to; None where no feature has projects."""
        if "report" in self.off:
            return None
        from passdown.app.places import Places

        return Places(self.store)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Application:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _drafting() -> Provider | None:
    """The drafting provider that the environment names; nothing of it is loaded before it is asked."""
    if not os.environ.get("PASSDOWN_DRAFTING_URL"):
        return None

    def ask(messages: Sequence[Mapping[str, str]]) -> str:
        from passdown.app.drafting_http import provider_of
        from passdown.handoff.drafting import DraftingFailed
        from passdown.kernel.errors import PassdownError

        try:
            provider = provider_of(os.environ)
        except PassdownError:  # a wrong setting is no reason to refuse a handoff
            provider = None
        if provider is None:
            raise DraftingFailed("misconfigured")
        return provider(messages)

    return ask


def _markdown(report: dict[str, Any]) -> bytes:
    from passdown.report.render import render_markdown

    return render_markdown(report)


def open_application(
    target: Path | str, *, create: bool, clock: Clock | None = None, ids: IdSource | None = None
) -> Application:
    """Open the store of a data directory (a ``Path``), or the one that a database URL names.

    ``create`` makes a missing one; a present one is upgraded when behind. The forms of a URL are those of
    :func:`passdown.storage.open_store`.
    """
    place = database_path(target) if isinstance(target, Path) else target
    return Application(open_store(place, create=create), clock, ids)
