"""From the errors of SQLite and of the file system to the one error table.

Design: pure functions, no I/O. What the user can mend gets a store error with a ``rule``; everything else is a fault of
ours, ``internal_error``, with the original as its cause.

Rules of the store errors: ``missing``, ``denied``, ``read_only``, ``full``, ``io``, ``damaged``, ``foreign`` (a
database of another program), ``replaced`` (another file took its place), ``not_a_file``, ``recovery`` (a crashed writer
left work that a read-only folder cannot take), ``schema_behind``, ``no_wal``, ``unreachable``.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import Final

from passdown.kernel.errors import PassdownError

_UNIQUE: Final = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID}
)
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_CLOSED_DOORS: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
_OS_RULES: Final = {
    errno.ENOENT: "missing",
    errno.ENOTDIR: "missing",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "read_only",
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EISDIR: "not_a_file",
}


def extended_code(error: BaseException) -> int:
    """The extended result code of SQLite, or -1 where it gave none (faults found by the driver)."""
    return int(getattr(error, "sqlite_errorcode", -1))


def primary_code(error: BaseException) -> int:
    """The result code of SQLite without its extension, or -1."""
    code = extended_code(error)
    return code & 0xFF if code >= 0 else -1


def is_busy(error: BaseException | None) -> bool:
    """True for an error that the same statements may not meet again."""
    return error is not None and primary_code(error) in _BUSY


def is_key_taken(error: BaseException) -> bool:
    """True if a primary or unique key decided against an INSERT, and no other constraint."""
    return extended_code(error) in _UNIQUE


def refusal(error: BaseException, *, writing: bool) -> PassdownError:
    """The typed refusal for an error of SQLite or its driver, met while ``writing`` or reading."""
    primary = primary_code(error)
    if primary in _BUSY:
        return PassdownError("store_busy")
    if primary in _DAMAGED:
        return PassdownError("store_not_readable", rule="damaged")
    if primary == sqlite3.SQLITE_CONSTRAINT:
        immutable = extended_code(error) == sqlite3.SQLITE_CONSTRAINT_TRIGGER
        return PassdownError("internal_error", rule="immutable" if immutable else "constraint")
    code = "store_not_writable" if writing else "store_not_readable"
    if primary == sqlite3.SQLITE_FULL:
        return PassdownError("store_not_writable", rule="full")
    if primary == sqlite3.SQLITE_READONLY:
        return PassdownError(code, rule="read_only" if writing else "recovery")
    if primary in _CLOSED_DOORS:
        return PassdownError(code, rule="denied")
    if primary == sqlite3.SQLITE_IOERR:
        return PassdownError(code, rule="io")
    return PassdownError("internal_error", rule="statement")


def os_refusal(error: OSError, *, writing: bool) -> PassdownError:
    """The typed refusal for an error of the file system around the database."""
    rule = _OS_RULES.get(error.errno or 0, "unreachable")
    return PassdownError("store_not_writable" if writing else "store_not_readable", rule=rule)
