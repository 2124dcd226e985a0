"""Which schema this version of Passdown writes.

Design: the revisions are listed oldest first; the last one is the head. A store is compared with this list by plain
SQL, so that a store that is up to date never imports the migration tools. A revision that is not in the list was
written by a newer version and is refused. Each entry has exactly one file in ``migrations/versions``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from passdown.kernel.errors import PassdownError

SCHEMA_REVISIONS: Final = ("0001", "0002", "0003")
SCHEMA_HEAD: Final = SCHEMA_REVISIONS[-1]

APPLICATION_ID: Final = 0x50534457
"""Stands in the header of every SQLite file of ours; a database of another program is never adopted."""

UPGRADES_TABLE: Final = "pd_upgrades"
"""On engines without a lock that fits, the table with the row that upgrades lock; made before anything else."""

SchemaState = Literal["absent", "behind", "current"]

REVISION_QUERY: Final = "SELECT version_num FROM alembic_version"
HEAD_ROWS: Final = [(SCHEMA_HEAD,)]
"""What :data:`REVISION_QUERY` answers in a store that is up to date."""

_REVISION: Final = re.compile(r"[0-9A-Za-z_]{1,32}")


def judge(rows: Sequence[tuple[object, ...]]) -> SchemaState:
    """What the answer to :data:`REVISION_QUERY` says; a revision that is not known is ``schema_too_new``."""
    if not rows:
        return "absent"
    if rows == HEAD_ROWS:
        return "current"
    if len(rows) == 1 and rows[0][0] in SCHEMA_REVISIONS:
        return "behind"
    found = str(rows[0][0])
    shown = found if _REVISION.fullmatch(found) else "unreadable"
    raise PassdownError("schema_too_new", found=shown, known=SCHEMA_HEAD)
