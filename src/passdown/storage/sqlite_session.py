"""The statements of one transaction on one SQLite connection.

States: open; doomed (a statement failed, ``fault`` holds the error, nothing more is executed); ended. A doomed
transaction can only be rolled back: SQLite may already have rolled back by itself, and later statements would then be
committed one by one.
"""

from __future__ import annotations

import os
import sqlite3

from passdown.kernel.errors import PassdownError
from passdown.storage.faults import is_key_taken, refusal
from passdown.storage.session import Param, Row, check_parameters


class SqliteSession:
    """A :class:`passdown.storage.Session`; made and ended by the store."""

    __slots__ = ("_connection", "_ended", "_process", "_writable", "fault", "statements")

    def __init__(self, connection: sqlite3.Connection, *, writable: bool) -> None:
        self.statements = 0
        self.fault: Exception | None = None
        self._connection = connection
        self._writable = writable
        self._ended = False
        self._process = os.getpid()

    def all(self, sql: str, /, **params: Param) -> list[Row]:
        """See :meth:`passdown.storage.Session.all`."""
        self._check(params)
        try:
            rows: list[Row] = self._connection.execute(sql, params).fetchall()
        except (sqlite3.Error, OverflowError) as error:
            raise self._doom(error) from error
        return rows

    def one(self, sql: str, /, **params: Param) -> Row | None:
        """See :meth:`passdown.storage.Session.one`."""
        rows = self.all(sql, **params)
        if len(rows) > 1:
            raise PassdownError("internal_error", rule="more_than_one_row")
        return rows[0] if rows else None

    def run(self, sql: str, /, **params: Param) -> int:
        """See :meth:`passdown.storage.Session.run`."""
        self._check_change(params)
        try:
            return self._connection.execute(sql, params).rowcount
        except (sqlite3.Error, OverflowError) as error:
            raise self._doom(error) from error

    def insert_new(self, sql: str, /, **params: Param) -> bool:
        """See :meth:`passdown.storage.Session.insert_new`.

        A violated key undoes its own statement and leaves the transaction as it was, so no savepoint is needed.
        """
        self._check_change(params)
        try:
            self._connection.execute(sql, params)
        except (sqlite3.Error, OverflowError) as error:
            if is_key_taken(error):
                return False
            raise self._doom(error) from error
        return True

    def end(self) -> None:
        """Refuse every further statement."""
        self._ended = True

    @property
    def inherited(self) -> bool:
        """True in a forked child of the process that began the transaction; its connection must not be touched."""
        return os.getpid() != self._process

    def _check_change(self, params: dict[str, Param]) -> None:
        if not self._writable:
            raise PassdownError("internal_error", rule="change_in_read")
        self._check(params)

    def _check(self, params: dict[str, Param]) -> None:
        if self._ended:
            raise PassdownError("internal_error", rule="session_ended")
        if self.fault is not None:
            raise refusal(self.fault, writing=self._writable) from self.fault
        if self.inherited:
            raise PassdownError("internal_error", rule="session_inherited")
        check_parameters(params)
        self.statements += 1

    def _doom(self, error: Exception) -> PassdownError:
        self.fault = error
        return refusal(error, writing=self._writable)
