"""One symbol for each status, the same in a terminal and on a page.

None of them has an emoji form, so that none is drawn in colour or two columns wide. A symbol always stands beside its
word.
"""

from collections.abc import Mapping
from typing import Final

STATUS_SYMBOLS: Final[Mapping[str, str]] = {
    "blocked": "■",
    "continuable": "►",
    "no_handoff": "○",
    "unknown": "?",
    "complete": "✓",
}
