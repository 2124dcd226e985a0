"""Files and pipes that a person names: read within a limit, written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from passdown.kernel.errors import PassdownError


def read_input(path: Path, limit: int, *, field: str = "file") -> bytes:
    """At most ``limit`` + 1 bytes of a file, or of stdin for ``-``: one byte too many tells that it is too long."""
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(limit + 1)
        with path.open("rb") as stream:
            return stream.read(limit + 1)
    except OSError:
        raise PassdownError("file_not_readable", field=field) from None


def write_output(path: Path | None, body: bytes) -> None:
    """Write to a file in one step, or to stdout for ``-`` and None."""
    if path is None or str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
        return
    write_whole(path, body)


def write_whole(path: Path, body: bytes) -> None:
    """Write a file in one step: a reader sees the old bytes or the new ones, never a part."""
    import tempfile

    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(body)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError:
        raise PassdownError("file_not_writable", field="output") from None
