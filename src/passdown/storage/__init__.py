"""The one store: transactions, compare-and-set, migrations. It knows rows, not what they mean.

Public operations: :func:`open_store` gives a :class:`Store`; its ``read`` and ``write`` run a function over a
:class:`Session`; :func:`in_list`, :func:`in_pairs`, :func:`table_of_pairs` and :func:`chunks` build the few fragments
of SQL that depend on a number of values. Importing this package loads ``sqlite3`` and nothing heavier; SQLAlchemy comes
with the first store on a server.
"""

from passdown.storage.opening import open_store
from passdown.storage.session import (
    CHUNK,
    Param,
    Params,
    Row,
    Session,
    Store,
    chunks,
    in_list,
    in_pairs,
    table_of_pairs,
)

__all__ = [
    "CHUNK",
    "Param",
    "Params",
    "Row",
    "Session",
    "Store",
    "chunks",
    "in_list",
    "in_pairs",
    "open_store",
    "table_of_pairs",
]
