"""The version of this program; everything inside the package takes it from here."""

from typing import Final

__version__: Final = "0.1.0"
