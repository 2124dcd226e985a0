"""The statements of one transaction on one connection of SQLAlchemy.

States: open; doomed (a statement failed, ``fault`` holds the error, nothing more is executed); ended. ``changed`` says
whether any statement touched a row. ``key_taken`` says that the fault is a key that an ordinary INSERT or UPDATE met:
unless the caller is wrong, another transaction took it after the caller had looked, so running the work again shows it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import TextClause, text
from sqlalchemy.engine import Connection, CursorResult
from sqlalchemy.exc import SQLAlchemyError

from passdown.kernel.errors import PassdownError
from passdown.storage.server_engine import Engine, Fault, fault_of, refusal
from passdown.storage.session import Param, Row, check_parameters

MOST: Final = 2**63 - 1
FAILURES: Final = (SQLAlchemyError, OSError)


class SqlSession:
    """A :class:`passdown.storage.Session`; made and ended by the store."""

    __slots__ = ("_connection", "_ended", "_engine", "_process", "_writable", "changed", "error", "fault", "statements")

    def __init__(self, connection: Connection, engine: Engine, *, writable: bool) -> None:
        self.statements = 0
        self.changed = False
        self.error: BaseException | None = None
        self.fault: Fault | None = None
        self._connection = connection
        self._engine = engine
        self._writable = writable
        self._ended = False
        self._process = os.getpid()

    def all(self, sql: str, /, **params: Param) -> list[Row]:
        """See :meth:`passdown.storage.Session.all`."""
        self._check(params)
        try:
            return [tuple(row) for row in self._execute(sql, params).fetchall()]
        except FAILURES as error:
            raise self._doom(error) from error

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
            touched = self._execute(sql, params).rowcount
        except FAILURES as error:
            raise self._doom(error) from error
        self.changed |= touched != 0
        return touched

    def insert_new(self, sql: str, /, **params: Param) -> bool:
        """See :meth:`passdown.storage.Session.insert_new`.

        It waits for a transaction that inserted the same key and is not done, and then answers by what became of it.
        """
        self._check_change(params)
        try:
            if self._engine.insert_savepoint:
                with self._connection.begin_nested():
                    self._execute(sql, params)
            else:
                self._execute(sql, params)
        except FAILURES as error:
            if fault_of(self._engine, error) is Fault.KEY:
                return False
            raise self._doom(error) from error
        self.changed = True
        return True

    def end(self) -> None:
        """Refuse every further statement."""
        self._ended = True

    @property
    def inherited(self) -> bool:
        """True in a forked child of the process that began the transaction; its connection must not be touched."""
        return os.getpid() != self._process

    def _execute(self, sql: str, params: dict[str, Param]) -> CursorResult[Any]:
        return self._connection.execute(_text(sql), params)

    def _check_change(self, params: dict[str, Param]) -> None:
        if not self._writable:
            raise PassdownError("internal_error", rule="change_in_read")
        self._check(params)

    def _check(self, params: dict[str, Param]) -> None:
        if self._ended:
            raise PassdownError("internal_error", rule="session_ended")
        if self.fault is not None:
            raise refusal(self.fault, writing=self._writable) from self.error
        if self.inherited:
            raise PassdownError("internal_error", rule="session_inherited")
        check_parameters(params)
        if any(type(value) is int and not -MOST - 1 <= value <= MOST for value in params.values()):
            # Larger numbers are decimals to these engines, and a comparison with one would quietly be another.
            raise PassdownError("internal_error", rule="statement")
        self.statements += 1

    def _doom(self, error: BaseException) -> PassdownError:
        self.error = error
        self.fault = fault_of(self._engine, error)
        return refusal(self.fault, writing=self._writable)


@lru_cache(maxsize=512)
def _text(sql: str) -> TextClause:
    return text(sql)
