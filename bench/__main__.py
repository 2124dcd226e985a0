"""``./run bench [--json]``: everything that is measured, as one table or as ``{"rows": [...]}``."""

from __future__ import annotations

import argparse
import json
import sys

from bench import canonical, commands, readers, report, storage
from bench.table import lines

SECTIONS = {"canonical": canonical, "storage": storage, "report": report, "readers": readers, "commands": commands}


def main() -> None:
    """Measure the sections that are named, or all of them."""
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="what to measure (else all)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = []
    for name in options.sections or SECTIONS:
        sys.stderr.write(f"measuring {name}\n")
        found += SECTIONS[name].rows()
    if options.json:
        sys.stdout.write(json.dumps({"rows": found}, ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines(found)))


if __name__ == "__main__":
    main()
