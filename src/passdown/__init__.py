"""Passdown hands work from one participant to the next without losing its meaning.

Public: :func:`canonical_bytes` and :func:`digest`, the canonical form of a JSON value and the digest over it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passdown.kernel.canonical import canonical_bytes, digest

__version__ = "0.1.0"
__all__ = ["__version__", "canonical_bytes", "digest"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: importing the package is on the path of every command.
    if name in ("canonical_bytes", "digest"):
        from passdown.kernel import canonical

        return getattr(canonical, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
