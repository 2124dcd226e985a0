"""Git configuration read as data.

A configuration file can name programs, so git is never started on one that we did not write. This module parses the
format itself (sections, quoting, continuation lines, comments), follows no ``include`` and expands nothing, and hands
out plain pairs. What is done with them is decided by :mod:`~passdown.git.locate` and :mod:`~passdown.git.shadow`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from passdown.git.files import read_regular

CONFIG_BYTES: Final = 1024 * 1024
"""A configuration file may be this large. Larger ones are refused like broken ones."""

_SKIP: Final = re.compile(rb"(?:[ \t\r\n]+|[#;][^\n]*)+")
_SECTION: Final = re.compile(rb'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_KEY: Final = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|\r?\n|\Z)")
_PLAIN_VALUE: Final = re.compile(rb'[ \t]*([^\n"\\#;]*)(?:[#;][^\n]*)?(?:\n|\Z)')
_VALUE_PART: Final = re.compile(rb'[^\n"\\#; \t\r]+')
_CONTINUED: Final = re.compile(rb"\\\r?\n")
_ESCAPES: Final = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"\\": b"\\", b'"': b'"'}
_TRUE: Final = frozenset({b"true", b"yes", b"on"})
_FALSE: Final = frozenset({b"false", b"no", b"off", b""})

Pairs = list[tuple[bytes, bytes | None]]


class BadConfig(Exception):
    """The bytes are not a git configuration."""


def parse_config(data: bytes) -> Pairs:
    """``section.key`` or ``section.subsection.key`` with values, in file order; a key without ``=`` has value None.

    Section and key are lower case, the subsection is kept as written. Raises :class:`BadConfig`.
    """
    pairs: Pairs = []
    prefix = b""
    at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    # git reads the end of the file as the end of a line, but never as the second half of a CR LF.
    data += b"\r\n" if data.endswith(b"\r") else b"\n"
    while True:
        if skipped := _SKIP.match(data, at):
            at = skipped.end()
        if at >= len(data):
            return pairs
        if section := _SECTION.match(data, at):
            prefix = section[1].lower() + b"."
            if section[2] is not None:
                prefix += re.sub(rb"\\(.)", rb"\1", section[2]) + b"."
            at = section.end()
            continue
        key = _KEY.match(data, at)
        if key is None:
            raise BadConfig
        name, at = prefix + key[1].lower(), key.end()
        if key[2] != b"=":
            pairs.append((name, None))
            continue
        value, at = _value(data, at)
        pairs.append((name, value))


def _value(data: bytes, at: int) -> tuple[bytes, int]:
    """The value that begins at ``at`` and the offset behind its line."""
    if plain := _PLAIN_VALUE.match(data, at):
        return re.sub(rb"[ \t\r]", b" ", plain[1].strip(b" \t\r")), plain.end()
    value = bytearray()
    spaces = 0  # unquoted white space counts only between other characters
    quoted = False
    while at < len(data):
        char = data[at : at + 1]
        if data[at : at + 2] == b"\r\n":
            char, at = b"\n", at + 1
        if char == b"\n":
            break
        if not quoted and char in b" \t\r":
            spaces += 1 if value else 0
            at += 1
        elif not quoted and char in b"#;":
            end = data.find(b"\n", at)
            return bytes(value), len(data) if end < 0 else end + 1
        else:
            value += b" " * spaces
            spaces = 0
            if char == b"\\":
                continued = _CONTINUED.match(data, at)
                if continued:
                    at = continued.end()
                    continue
                escaped = _ESCAPES.get(data[at + 1 : at + 2])
                if escaped is None:
                    raise BadConfig
                value += escaped
                at += 2
            elif char == b'"':
                quoted = not quoted
                at += 1
            else:
                run = _VALUE_PART.match(data, at)
                value += run[0] if run else char
                at += len(run[0]) if run else 1
    if quoted:
        raise BadConfig
    return bytes(value), at + 1


def read_config(path: Path) -> Pairs:
    """The pairs of one file; empty when there is none. Raises :class:`BadConfig`, also when it is too large."""
    data = read_regular(path, CONFIG_BYTES)
    if data is None:
        return []
    if len(data) > CONFIG_BYTES:
        raise BadConfig
    return parse_config(data)


def as_bool(value: bytes | None) -> bool | None:
    """A value as git reads a boolean; None when it is none."""
    if value is None or value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    return value.strip(b"0") != b"" if re.fullmatch(rb"[+-]?\d{1,18}", value) else None


def as_path(value: bytes | None, home: bytes | None) -> bytes | None:
    """An absolute path, with a leading ``~/`` put in place; None for everything that git would have to look up."""
    if value and value.startswith(b"~/") and home:
        return home.rstrip(b"/") + value[1:]
    return value if value and value.startswith(b"/") else None


def user_config_files(environment: Mapping[bytes, bytes]) -> list[bytes]:
    """Paths of the user's own configuration, the weakest first, as git looks for them."""
    chosen = environment.get(b"GIT_CONFIG_GLOBAL")
    if chosen is not None:
        return [chosen] if chosen else []
    home = environment.get(b"HOME")
    found = []
    if base := config_home(environment):
        found.append(base + b"/git/config")
    if home:
        found.append(home + b"/.gitconfig")
    return found


def config_home(environment: Mapping[bytes, bytes]) -> bytes | None:
    """The folder of user settings: ``XDG_CONFIG_HOME``, else ``~/.config``; None when neither is known."""
    home = environment.get(b"HOME")
    return environment.get(b"XDG_CONFIG_HOME") or (home + b"/.config" if home else None)
