"""What became of the files that were uncommitted when a handoff was written. Pure.

Compared by content: a file that was committed since is still there. A file whose bytes are the recorded ones but whose
mode is another counts as changed, since a lost executable bit is lost work too. Of a changed file is said why it may be
less different than its bytes are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from passdown.git.files import Content
from passdown.handoff.facts import WorktreeEntry

Remark = Literal["filter_not_run", "line_endings", "mode"]


@dataclass(slots=True)
class Compared:
    """``present`` unchanged, ``not_compared`` without a digest then or now; ``remarks`` by changed path."""

    present: int = 0
    not_compared: int = 0
    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    remarks: dict[str, Remark] = field(default_factory=dict)


def compare(
    recorded: Sequence[WorktreeEntry],
    found: Sequence[Content],
    *,
    executable_bits: bool,
    behind_filters: Callable[[Sequence[str]], Collection[str]],
) -> Compared:
    """Each recorded path with what lies there now, in the same order.

    ``executable_bits`` says whether they mean anything in this checkout; ``behind_filters`` tells those of some paths
    that pass through a filter, and is asked once, about changed files only, if there are any.
    """
    result = Compared()
    for then, now in zip(recorded, found, strict=True):
        is_gone = now.kind == "gone"
        # A path that was only taken out of the index is deleted too, but its bytes lay there and were read.
        if then.status == "deleted" and then.size is None:
            if is_gone:
                result.present += 1
            else:
                result.changed.append(then.path)
        elif is_gone:
            result.gone.append(then.path)
        elif then.sha256 is None or now.sha256 is None:
            result.not_compared += 1
        elif now.sha256 != then.sha256:
            result.changed.append(then.path)
            if then.sha256 in now.line_ends:
                result.remarks[then.path] = "line_endings"
        elif _is_other_mode(then.mode, now.mode, executable_bits):
            result.changed.append(then.path)
            result.remarks[then.path] = "mode"
        else:
            result.present += 1
    unexplained = [path for path in result.changed if path not in result.remarks]
    if unexplained:
        result.remarks.update(dict.fromkeys(behind_filters(unexplained), "filter_not_run"))
    return result


def _is_other_mode(then: str | None, now: str | None, executable_bits: bool) -> bool:
    if then is None or now is None or then == now:
        return False
    return executable_bits or "120000" in (then, now)
