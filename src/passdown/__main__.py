"""The ``passdown`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from passdown.cli.main import run

    sys.exit(run())


if __name__ == "__main__":
    main()
