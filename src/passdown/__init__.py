"""Passdown hands work from one participant to the next without losing its meaning.

Public: :func:`open` gives a :class:`Client` for a store on this machine or for a server; :class:`AsyncClient` is for
programs that await; :class:`PassdownError` is every refusal; :func:`canonical_bytes` and :func:`digest` are the
canonical form of a JSON value and the digest over it. The models of requests and answers are in
``passdown.client.models``. ``docs/public-api.txt`` lists all that is public.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from passdown.kernel.version import __version__

if TYPE_CHECKING:
    from passdown.client.async_client import AsyncClient
    from passdown.client.client import Client
    from passdown.client.opening import open
    from passdown.client.retries import Retries
    from passdown.kernel.canonical import canonical_bytes, digest
    from passdown.kernel.errors import PassdownError

__all__ = [
    "AsyncClient",
    "Client",
    "PassdownError",
    "Retries",
    "__version__",
    "canonical_bytes",
    "digest",
    "open",
]

_HOMES = {
    "AsyncClient": "passdown.client.async_client",
    "Client": "passdown.client.client",
    "PassdownError": "passdown.kernel.errors",
    "Retries": "passdown.client.retries",
    "canonical_bytes": "passdown.kernel.canonical",
    "digest": "passdown.kernel.canonical",
    "open": "passdown.client.opening",
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: importing the package is on the path of every command.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
