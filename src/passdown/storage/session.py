"""What the rooms above see of a database.

Design: every query is written once, as portable SQL text with ``:name`` parameters, and runs over :class:`Session`.
Parameters are integers, bytes and ``None`` only: identity text is stored as bytes, and a ``str`` would compare unequal
to the same bytes without a word, so it is refused. A session lives as long as one transaction of a :class:`Store`; a
statement that failed dooms its transaction, even if the caller swallowed the error.

Public operations: :class:`Session`, :class:`Store`, and the fragment makers :func:`in_list`, :func:`in_pairs`,
:func:`table_of_pairs` and :func:`chunks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final, Protocol, TypeVar

from passdown.kernel.errors import PassdownError

T = TypeVar("T")
Param = int | bytes | None
Params = Mapping[str, Param]
Row = tuple[Any, ...]

CHUNK: Final = 500
"""Values in one list: engines bound the number of parameters and the depth of an expression."""

_PARAMETER_TYPES: Final = frozenset({int, bytes, NoneType})


class Session(Protocol):
    """The statements of one transaction.

    ``statements`` counts what was executed through the session. Every method raises ``PassdownError``: ``store_busy``,
    ``store_not_writable``, ``store_not_readable``, or ``internal_error`` for a fault of the caller (a parameter that is
    neither integer nor bytes, a change inside a read, a violated constraint, use after the end of the transaction).
    """

    statements: int

    def all(self, sql: str, /, **params: Param) -> list[Row]:
        """Every row of a query."""
        ...

    def one(self, sql: str, /, **params: Param) -> Row | None:
        """The only row of a query, or None. More than one row is ``internal_error`` with rule ``more_than_one_row``."""
        ...

    def run(self, sql: str, /, **params: Param) -> int:
        """Execute an INSERT, UPDATE or DELETE; returns how many rows it touched (1 means that a comparison held)."""
        ...

    def insert_new(self, sql: str, /, **params: Param) -> bool:
        """Execute an INSERT of one row and let the keys decide.

        False if a row with the same primary or unique key is there; the transaction goes on. Any other violated
        constraint is a fault.
        """
        ...


class Store(Protocol):
    """One database. Safe to share between threads; after a fork the child opens connections of its own."""

    url: str
    engine: str

    def read(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` over one snapshot, the state committed when it began.

        It takes no write lock and does not wait for a writer. ``work`` may be called again, so it changes nothing but
        its own variables.
        """
        ...

    def write(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in one durable transaction, in order of arrival.

        When it returns, everything is on disk; when it raises, nothing is. If something changed, the counter of writes
        goes up in the same transaction. ``work`` may be called again after a retryable error, so it must depend on the
        session only, and may not write through the same store. Waiting too long is ``store_busy``.

        A server engine lets several writers in at once, each statement seeing what is committed when it begins: what
        must hold between statements is decided by a comparison in an UPDATE, by a key, or behind a row that all writers
        touch first. The order of arrival is then that of the rows they meet at. There is one exception to "when it
        raises, nothing is": ``store_outcome_unknown``, when the server went away before it answered the commit.
        """
        ...

    def writes(self) -> int:
        """How many transactions changed this store so far, by any process; whoever waits for news compares it."""
        ...

    def close(self) -> None:
        """Close the idle connections, and those in use as they come back. Closing twice is allowed."""
        ...


def check_parameters(params: Params) -> None:
    """Refuse, as a fault of the caller, a value that is neither integer nor bytes; a boolean is no integer here."""
    for value in params.values():
        if type(value) not in _PARAMETER_TYPES:
            raise PassdownError("internal_error", rule="parameter_type")


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Cut ``values`` into runs of at most ``size``, in order. Nothing in, nothing out."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def in_list(name: str, values: Sequence[int | bytes]) -> tuple[str, dict[str, Param]]:
    """The right side of ``column IN …``: ``"(:name0, :name1)"`` and its parameters.

    ``name`` is a prefix of letters that no other parameter of the statement shares. At most :data:`CHUNK` values, more
    are ``internal_error`` with rule ``list_too_long``. No values give a list that no row is in. The list is filled up
    to a power of two by repeating the last value, so that few different texts reach the cache of prepared statements.
    """
    padded = _padded(values)
    if not padded:
        return "(NULL)", {}
    params: dict[str, Param] = {f"{name}{index}": value for index, value in enumerate(padded)}
    return "(" + ", ".join(f":{key}" for key in params) + ")", params


def in_pairs(
    first: str, second: str, name: str, pairs: Sequence[tuple[int | bytes, int | bytes]]
) -> tuple[str, dict[str, Param]]:
    """A condition that is true for the rows whose columns ``first`` and ``second`` are one of ``pairs``.

    It is written as a disjunction, since row values in lists are not portable and are planned badly; with an index over
    both columns each pair is one look-up. Limits, filling and ``name`` are those of :func:`in_list`; no pairs give a
    condition that is false.
    """
    padded = _padded(pairs)
    if not padded:
        return "(1 = 0)", {}
    params: dict[str, Param] = {}
    terms = []
    for index, (left, right) in enumerate(padded):
        params[f"{name}{index}a"] = left
        params[f"{name}{index}b"] = right
        terms.append(f"({first} = :{name}{index}a AND {second} = :{name}{index}b)")
    return "(" + " OR ".join(terms) + ")", params


def table_of_pairs(
    first: str, second: str, name: str, pairs: Sequence[tuple[int | bytes, int | bytes]]
) -> tuple[str, dict[str, Param]]:
    """A table in parentheses with the columns ``first`` and ``second`` whose rows are ``pairs``, to join with.

    It selects what :func:`in_pairs` selects, in less than half of the time where much is joined to each pair: nothing
    has to be kept to see which rows two terms found. A pair that stands there twice gives its rows twice. One to
    :data:`CHUNK` pairs; more are ``internal_error`` with rule ``list_too_long``, none with rule ``list_empty``. The
    table is filled up to a power of two, at most to the limit, with rows that equal nothing.
    """
    if not pairs:
        raise PassdownError("internal_error", rule="list_empty")
    filling = len(_padded(pairs)) - len(pairs)
    params: dict[str, Param] = {}
    rows = []
    # SQLite takes a union of at most as many selects as a list has values here. The first rows give the columns their
    # types, so the filling comes behind them.
    for index, (left, right) in enumerate([*pairs, *([(None, None)] * filling)][:CHUNK]):
        params[f"{name}{index}a"] = left
        params[f"{name}{index}b"] = right
        rows.append(f"SELECT :{name}{index}a AS {first}, :{name}{index}b AS {second}")
    return "(" + " UNION ALL ".join(rows) + ")", params


def _padded(values: Sequence[T]) -> list[T]:
    if len(values) > CHUNK:
        raise PassdownError("internal_error", rule="list_too_long")
    filled = list(values)
    if filled:
        size = 1 << (len(filled) - 1).bit_length()
        filled += [filled[-1]] * (size - len(filled))
    return filled
