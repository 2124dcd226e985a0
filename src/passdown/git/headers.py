"""Commit objects, parsed: pure functions from bytes to :class:`~passdown.git.facts.Commit`.

The header lines of the object are read rather than what git prints about them, so that a commit reads the same in a
shallow clone, under a mailmap, a graft or a replacement.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from passdown.git.facts import Commit
from passdown.kernel.errors import PassdownError
from passdown.kernel.limits import MAX_SAFE_INTEGER

SUBJECT_BYTES: Final = 256 * 1024
"""A subject may be this long; a commit with a longer one is refused, not cut."""

_PARENT: Final = re.compile(rb"parent (?:[0-9a-f]{40}|[0-9a-f]{64})")
_FIELDS: Final = frozenset({b"author", b"committer", b"encoding"})
_ENCODING: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:-]{0,39}")
_DATE: Final = re.compile(rb"(-?[0-9]{1,18})(?:[ \t]+([+-][0-9]{1,6}))?[ \t\r]*")
_SPACE: Final = b" \t\r\n"

# Text encodings that commits have been written in. Others that Python knows (escapes, compression, IDNA) are no
# encodings of text in this sense, and some of them cost more than linear time.
_KNOWN: Final = frozenset(
    {f"iso8859-{part}" for part in range(1, 17)}
    | {f"cp{page}" for page in (437, 850, 852, 855, 858, 866, 874, 932, 936, 949, 950, *range(1250, 1259))}
    | {"ascii", "utf-8", "big5", "big5hkscs", "gb18030", "gb2312", "gbk", "koi8-r", "koi8-u", "mac-roman", "tis-620"}
    | {"euc_jp", "euc_kr", "iso2022_jp", "johab", "shift_jis", "euc_jis_2004", "shift_jisx0213"}
)


def decode(data: bytes, codec: str = "utf-8") -> str:
    """Text in ``codec``; bytes that it cannot read as ``\\xNN``."""
    return data.decode(codec, "backslashreplace")


def parse_commit(oid: str, data: bytes, *, indent: bytes = b"") -> Commit:
    """The commit with this id from its object, or, with ``indent``, from ``rev-list --header``, which indents messages.

    Raises ``git_failed`` with rule ``subject_too_long``.
    """
    head, _, message = data.partition(b"\n\n")
    lines = head.split(b"\n")
    at = 1 if lines[0].startswith(b"tree ") else 0
    parents: list[str] = []
    while at < len(lines) and _PARENT.fullmatch(lines[at]):  # parents stand first; the word elsewhere means nothing
        parents.append(lines[at][7:].decode("ascii"))
        at += 1
    fields: dict[bytes, bytes] = {}
    for line in lines[at:]:
        key, _, value = line.partition(b" ")
        if key in _FIELDS:  # continuation lines of signatures begin with a space, and so have no key
            fields.setdefault(key, value)
    codec = _codec(fields[b"encoding"]) if b"encoding" in fields else "utf-8"
    written, committed = fields.get(b"author", b""), fields.get(b"committer", b"")
    author = _person(written, codec)
    committer = author if committed == written else _person(committed, codec)  # mostly the same line
    return Commit(oid, tuple(parents), *author, *committer, decode(_subject(message, indent), codec))


def _subject(message: bytes, indent: bytes) -> bytes:
    """The first paragraph, its lines joined by one space, as git defines a subject."""
    lines: list[bytes] = []
    size = 0
    at = 0
    while at < len(message):
        end = message.find(b"\n", at)
        end = len(message) if end < 0 else end
        line = message[at:end].removeprefix(indent).rstrip(_SPACE)
        at = end + 1
        if line:
            lines.append(line)
            size += len(line) + 1
            if size > SUBJECT_BYTES + 1:
                raise PassdownError(
                    "git_failed", operation="commit", status=0, rule="subject_too_long", limit=SUBJECT_BYTES
                )
        elif lines:
            break
    return b" ".join(lines)


def _person(line: bytes, codec: str) -> tuple[str, int, int]:
    """Name, seconds, minutes east of UTC from ``NAME <MAIL> SECONDS ZONE``; the mail address is dropped here."""
    name, _, rest = line.partition(b"<")
    date = _DATE.fullmatch(rest.rpartition(b">")[2].strip(_SPACE))
    seconds = int(date[1]) if date else 0
    if abs(seconds) > MAX_SAFE_INTEGER:
        seconds = 0
    return decode(name.strip(_SPACE), codec), seconds, _minutes(date[2] if date else None)


def _minutes(zone: bytes | None) -> int:
    if zone is None:
        return 0
    value = int(zone[1:])
    minutes = value // 100 * 60 + value % 100
    return -minutes if zone.startswith(b"-") else minutes


def _codec(name: bytes) -> str:
    """The codec of an ``encoding`` header, UTF-8 when it is none that we know."""
    if not _ENCODING.fullmatch(name):
        return "utf-8"
    try:
        known = codecs.lookup(name.decode("ascii")).name
    except (LookupError, ValueError):
        return "utf-8"
    return known if known in _KNOWN else "utf-8"
