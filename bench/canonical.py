"""Speed of canonical JSON and of the strict reader on 10 MiB of report-like data, as ratios within one run.

Run it with `python -m bench.canonical` from the root of the repository. :func:`rows` gives the table as data.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import orjson
import rfc8785

from bench.report_data import report_value
from passdown.kernel.canonical import canonical_bytes, canonical_bytes_of_validated, digest
from passdown.kernel.limits import REQUEST_BODY_BYTES
from passdown.kernel.strict_json import parse_json

MEBIBYTE = 1024 * 1024
ROUNDS = 7

Work = tuple[Callable[[Any], object], Callable[[], Any]]


def _least(works: dict[str, Work]) -> dict[str, float]:
    """Least seconds of each work over some rounds, each time on a value that nothing has touched since it was made.

    The works take turns, so that a load that comes and goes meets all of them.
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, (work, fresh) in works.items():
            value = fresh()
            begin = time.perf_counter()
            work(value)
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def _row(name: str, value: float, unit: str, target: float | None, at_least: bool, how: str) -> dict[str, Any]:
    """`met` is None where there is no target."""
    met = None if target is None else value >= target if at_least else value <= target
    return {"name": name, "value": round(value, 3), "unit": unit, "target": target, "met": met, "how": how}


def _decomposed(raw: bytes) -> bytes:
    """The report with a decomposed accent in every tenth statement, as some keyboards and file systems write."""
    head, *rest = raw.split(b'"text":"')
    return head + b"".join(
        (b'"text":"' if number % 10 else b'"text":"e\xcc\x81') + part for number, part in enumerate(rest)
    )


def _nfc(value: Any) -> Any:
    """NFC of every string and key, as a program without canonical forms of its own would do it."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_nfc(item) for item in value]
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", key): _nfc(item) for key, item in value.items()}
    return value


def rows() -> list[dict[str, Any]]:
    """One dict per measurement: `name, value, unit, target, met, how`. Takes about ten seconds."""
    report = report_value(10 * MEBIBYTE)
    raw = orjson.dumps(report)
    expected = rfc8785.dumps(report)
    if not expected == canonical_bytes(report) == canonical_bytes_of_validated(report):
        raise AssertionError("the bytes differ, so their speeds mean nothing")
    decomposed = _decomposed(raw)
    if canonical_bytes(orjson.loads(decomposed)) != rfc8785.dumps(_nfc(orjson.loads(decomposed))):
        raise AssertionError("the bytes differ, so their speeds mean nothing")
    body = report_value(REQUEST_BODY_BYTES - MEBIBYTE // 8)
    document = orjson.dumps(body).ljust(REQUEST_BODY_BYTES)
    large = document.rstrip()[:-1] + b',"n":18446744073709551616}'

    def as_sent() -> Any:
        return orjson.loads(raw)

    def as_sent_decomposed() -> Any:
        return orjson.loads(decomposed)

    least = _least(
        {
            "pure written": (rfc8785.dumps, as_sent),
            "pure digested": (lambda value: sha256(rfc8785.dumps(value)).hexdigest(), as_sent),
            "pure changed": (lambda value: sha256(rfc8785.dumps(_nfc(value))).hexdigest(), as_sent_decomposed),
            "digested": (digest, as_sent),
            "changed": (digest, as_sent_decomposed),
            "validated": (canonical_bytes_of_validated, as_sent),
            "read": (parse_json, lambda: document),
            "read with care": (parse_json, lambda: large),
        }
    )
    ms = {name: f"{seconds * 1000:.0f} ms" for name, seconds in least.items()}

    size = f"{len(raw):,} bytes, half English, half Chinese, least of {ROUNDS}"
    return [
        _row(
            "canonicalise and digest, raw values",
            least["pure digested"] / least["digested"],
            "x",
            4,
            True,
            f"rfc8785.dumps + sha256 {ms['pure digested']}, digest() {ms['digested']}; {size}",
        ),
        _row(
            "canonicalise and digest, raw values, a tenth of the statements not NFC",
            least["pure changed"] / least["changed"],
            "x",
            4,
            True,
            f"NFC + rfc8785.dumps + sha256 {ms['pure changed']}, digest() {ms['changed']}; {size}",
        ),
        _row(
            "canonicalise, validated values",
            least["pure written"] / least["validated"],
            "x",
            40,
            True,
            f"rfc8785.dumps {ms['pure written']}, ours {ms['validated']}; {size}",
        ),
        _row(
            "read 12 MiB strictly",
            least["read"],
            "s",
            0.5,
            False,
            f"parse_json() on {len(document):,} bytes, quick path",
        ),
        _row(
            "read 12 MiB strictly, with an integer beyond 64 bits",
            least["read with care"],
            "s",
            None,
            False,
            f"parse_json() on {len(large):,} bytes, careful path",
        ),
    ]


def main() -> None:
    """Prints one line per row."""
    for row in rows():
        verdict = {None: "no target", True: f"target {row['target']}, met", False: f"target {row['target']}, NOT MET"}
        print(f"{row['name']}: {row['value']} {row['unit']} ({verdict[row['met']]}); {row['how']}")


if __name__ == "__main__":
    main()
