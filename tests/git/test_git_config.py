"""The configuration parser against git's own. Catches: a value that git reads differently from us."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from git_support import plain_environment
from hypothesis import example, given, settings
from hypothesis import strategies as st

from passdown.git.config import CONFIG_BYTES, BadConfig, as_bool, parse_config, read_config

PIECES = st.sampled_from(
    [b"[core]", b'[remote "a b"]', b'[x "q\\"\\\\z"]', b"[Sec.Sub]", b"key", b" = ", b"=", b"bare", b"Auto-CRLF", b"\n",
     b"\r\n", b" ", b"\t", b"# note", b"; note", b'"', b"\\", b"\\n", b'\\"', b"\\\\", b"\\\n", b"a b  c", b"true",
     b"]", b"[", b"\xff", b"\xef\xbb\xbf", b"1", b"  x", b"\r"]
)  # fmt: skip


def git_reads(path: Path) -> list[tuple[bytes, bytes | None]] | None:
    done = subprocess.run(
        ["git", "config", "--file", path, "-z", "--list"], capture_output=True, env=plain_environment(), check=False
    )
    if done.returncode != 0:
        return None
    pairs: list[tuple[bytes, bytes | None]] = []
    for record in done.stdout.split(b"\0")[:-1]:
        key, newline, value = record.partition(b"\n")
        pairs.append((key, value if newline else None))
    return pairs


def we_read(data: bytes) -> list[tuple[bytes, bytes | None]] | None:
    try:
        return parse_config(data)
    except BadConfig:
        return None


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config") / "file"


@settings(max_examples=120, deadline=None)
@given(body=st.lists(PIECES, max_size=14))
@example(body=[b"\nkey\r"])
@example(body=[b"a\r"])
@example(body=[b"a\\\r"])
def test_any_configuration_reads_as_git_reads_it(scratch: Path, body: list[bytes]) -> None:
    data = b"[core]\n\tkey =" + b"".join(body)
    scratch.write_bytes(data)
    assert we_read(data) == git_reads(scratch)


@pytest.mark.parametrize(
    "data",
    [
        b'[a]\n k = " x ; y " # note\n',
        b"[a]\n k = one \\\n  two\n",
        b'[a] k = v\n[b]\n\n; c\nflag\nother = ""\n',
        b'[url "git@x:"]\r\n\tinsteadOf = "q\\tq"\r\n',
        b"",
        b'[a]\nk = unterminated "x\n',
        b"key = before any section\n",
        b"[a\n",
        b"[a]\n1k = v\n",
    ],
)
def test_chosen_configurations_read_as_git_reads_them(scratch: Path, data: bytes) -> None:
    scratch.write_bytes(data)
    assert we_read(data) == git_reads(scratch)


def test_a_configuration_at_the_size_limit_is_read_and_one_byte_more_is_refused(scratch: Path) -> None:
    scratch.write_bytes(b"[a]\nk=v\n#" + b"x" * (CONFIG_BYTES - 9))
    assert read_config(scratch) == [(b"a.k", b"v")]
    scratch.write_bytes(b"[a]\nk=v\n#" + b"x" * (CONFIG_BYTES - 8))
    with pytest.raises(BadConfig):
        read_config(scratch)


def test_booleans_are_read_as_git_reads_them() -> None:
    values = [None, b"YES", b"on", b"True", b"1", b"-1", b"00", b"0", b"off", b"No", b"", b"maybe", b"1x"]
    expected = [True, True, True, True, True, True, False, False, False, False, False, None, None]
    assert [as_bool(value) for value in values] == expected
