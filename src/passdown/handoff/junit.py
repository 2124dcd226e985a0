"""JUnit XML to counts and the names of what failed. Pure: bytes in, facts out; nothing is fetched or expanded.

The format has no standard; what pytest, Surefire, Gradle, jest-junit, gotestsum and others write has in common:
``testsuites`` or ``testsuite`` at the root, suites in suites, ``testcase`` with ``failure``, ``error`` or ``skipped``.
Counted are the cases themselves, each once: an error before a failure before a skip. What the suites declare is kept
beside it only where it differs, because a report that was cut off declares more than it has.

Refused as ``test_report_refused``, with ``rule``: ``not_xml``, ``encoding``, ``doctype`` (any document type, hence
every entity), ``too_deep``, ``not_junit``. Text and messages of a report are never kept.

Limits: 16 MiB (the most that is read within some seconds), 64 elements inside one another, 100 names of failures with
512 characters each; the rest is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat

from passdown.kernel.errors import PassdownError
from passdown.kernel.text import nfc

REPORT_BYTES: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_FAILING: Final = 100
NAME_CHARS: Final = 512

COMMIT_PROPERTIES: Final = frozenset(
    (
        "commit",
        "commit.id",
        "commit_id",
        "commit_sha",
        "git.commit",
        "git.commit.id",
        "git.sha",
        "git_commit",
        "git_sha",
        "revision",
        "sha",
        "vcs.revision",
        "vcs_revision",
    )
)
"""Names, in lower case, of properties in which runners write the commit that the tests ran on."""

_OID: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_SPACES: Final = re.compile(r"\s+")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class JUnitFacts:
    """``failing`` names at most 100 failed or broken cases, ``failing_total`` counts all.

    ``declared`` is what the suites say they have, None where they say nothing or the same; ``commit`` is the one that a
    property names, None where none does or two differ.
    """

    tests: int
    failures: int
    errors: int
    skipped: int
    failing: tuple[str, ...]
    failing_total: int
    declared: int | None
    commit: str | None


def _refused(rule: str) -> PassdownError:
    return PassdownError("test_report_refused", rule=rule)


def read_junit(data: bytes) -> JUnitFacts:
    """The facts of a report; ``body_too_large`` over 16 MiB, else ``test_report_refused``."""
    if len(data) > REPORT_BYTES:
        raise PassdownError("body_too_large", limit=REPORT_BYTES, actual=len(data))
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _doctype
    try:
        for begin in range(0, len(data), _CHUNK):
            parser.Parse(data[begin : begin + _CHUNK], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        encodings = (expat.errors.XML_ERROR_UNKNOWN_ENCODING, expat.errors.XML_ERROR_INCORRECT_ENCODING)
        is_encoding = expat.ErrorString(error.code) in encodings
        raise _refused("encoding" if is_encoding else "not_xml") from None
    except (LookupError, ValueError):  # an encoding that Python knows and the parser cannot use
        raise _refused("encoding") from None
    return reader.facts()


def _doctype(*_: Any) -> None:
    raise _refused("doctype")


@dataclass(slots=True)
class _Case:
    name: str
    outcome: str = "passed"


_RANK: Final = {"passed": 0, "skipped": 1, "failure": 2, "error": 3}


@dataclass(slots=True)
class _Reader:
    """Counts while the document goes by; holds one case at a time."""

    path: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_RANK, 0))
    failing: list[str] = field(default_factory=list)
    declared: int | None = None
    commits: set[str] = field(default_factory=set)
    case: _Case | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if not self.path and name not in ("testsuites", "testsuite"):
            raise _refused("not_junit")
        if len(self.path) >= MAX_DEPTH:
            raise _refused("too_deep")
        parent = self.path[-1] if self.path else None
        self.path.append(name)
        if name == "testcase" and self.case is None:
            self.case = _Case(_case_name(attributes))
        elif parent == "testcase" and self.case is not None and name in _RANK:
            if _RANK[name] > _RANK[self.case.outcome]:
                self.case.outcome = name
        elif name == "property" and parent == "properties":
            self._property(attributes)
        elif name == "testsuite" and "testsuite" not in self.path[:-1]:
            self._declare(attributes.get("tests", ""))

    def end(self, tag: str) -> None:
        name = self.path.pop()
        if name != "testcase" or self.case is None or "testcase" in self.path:
            return
        self.counts[self.case.outcome] += 1
        if self.case.outcome in ("failure", "error") and len(self.failing) < MAX_FAILING:
            self.failing.append(self.case.name)
        self.case = None

    def _property(self, attributes: Mapping[str, str]) -> None:
        value = attributes.get("value", "").strip().lower()
        if attributes.get("name", "").strip().lower() in COMMIT_PROPERTIES and _OID.match(value):
            self.commits.add(value)

    def _declare(self, text: str) -> None:
        """The outermost suites count what is in them."""
        if re.fullmatch(r"[0-9]{1,15}", text.strip(), re.ASCII):
            self.declared = (self.declared or 0) + int(text)

    def facts(self) -> JUnitFacts:
        tests = sum(self.counts.values())
        return JUnitFacts(
            tests=tests,
            failures=self.counts["failure"],
            errors=self.counts["error"],
            skipped=self.counts["skipped"],
            failing=tuple(self.failing),
            failing_total=self.counts["failure"] + self.counts["error"],
            declared=None if self.declared == tests else self.declared,
            commit=next(iter(self.commits)) if len(self.commits) == 1 else None,
        )


def _case_name(attributes: Mapping[str, str]) -> str:
    """``class.name`` on one line, cut visibly."""
    group = attributes.get("classname") or attributes.get("file") or ""
    own = attributes.get("name") or "?"
    line = nfc(_SPACES.sub(" ", f"{group}.{own}" if group else own)).strip()
    # A control character that XML lets through (U+0085 and the like) is no part of a name that people search for.
    line = "".join(char if char.isprintable() else "?" for char in line) or "?"
    return line if len(line) <= NAME_CHARS else line[: NAME_CHARS - 1] + "…"
