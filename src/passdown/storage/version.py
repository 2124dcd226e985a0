"""Which schema this version of Passdown writes.

Design: the revisions are listed oldest first; the last one is the head. A store is compared with this list by plain
SQL, so that a store that is up to date never imports the migration tools. A revision that is not in the list was
written by a newer version and is refused. Each entry has exactly one file in ``migrations/versions``.
"""

from __future__ import annotations

from typing import Final

SCHEMA_REVISIONS: Final = ("0001",)
SCHEMA_HEAD: Final = SCHEMA_REVISIONS[-1]

APPLICATION_ID: Final = 0x50534457
"""Stands in the header of every SQLite file of ours; a database of another program is never adopted."""
