"""A store in which one transaction can span a whole handler.

Services open their own transactions. A caller that has to store something together with what a handler stores opens
the transaction first and runs the handler inside it: every ``read`` and ``write`` of the same thread then joins it.

States of a thread: free, or spanning. Invariants: what a spanned handler wrote and what its caller wrote are committed
together or not at all; a span never opens inside another; other threads are not touched by it.

Public operations: :class:`SpanningStore`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from passdown.kernel.errors import PassdownError
from passdown.storage.session import Session, Store

T = TypeVar("T")


class SpanningStore:
    """A :class:`passdown.storage.Store` over ``inner``, with :meth:`span` on top."""

    def __init__(self, inner: Store) -> None:
        self.url = inner.url
        self.engine = inner.engine
        self._inner = inner
        self._here = threading.local()

    def span(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in one durable transaction that everything this thread reads or writes meanwhile joins.

        ``work`` may be run again after a retryable error, like that of ``write``; a refusal that it raises undoes all
        of it. A span inside a span is ``internal_error`` with rule ``nested_write``.
        """
        if self._session() is not None:
            raise PassdownError("internal_error", rule="nested_write")

        def spanned(session: Session) -> T:
            self._here.session = session
            try:
                return work(session)
            finally:
                self._here.session = None

        return self._inner.write(spanned)

    def read(self, work: Callable[[Session], T]) -> T:
        """See :meth:`passdown.storage.Store.read`; inside a span it sees what the span wrote."""
        session = self._session()
        return self._inner.read(work) if session is None else work(session)

    def write(self, work: Callable[[Session], T]) -> T:
        """See :meth:`passdown.storage.Store.write`; inside a span nothing is durable before the span ends."""
        session = self._session()
        return self._inner.write(work) if session is None else work(session)

    def writes(self) -> int:
        """See :meth:`passdown.storage.Store.writes`."""
        return self._inner.writes()

    def close(self) -> None:
        """See :meth:`passdown.storage.Store.close`."""
        self._inner.close()

    def _session(self) -> Session | None:
        found: Session | None = getattr(self._here, "session", None)
        return found
