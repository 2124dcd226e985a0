"""Finds the support of the engine tests, whose desk calls the whole product over a store of any engine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "engines"))
