"""The ``passdown`` command."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    # A command lives for a fraction of a second and loads many modules: collecting garbage meanwhile costs a tenth of
    # its time and frees nothing. `serve` turns it on again.
    gc.disable()
    from passdown.cli.main import run

    sys.exit(run())


if __name__ == "__main__":
    main()
