"""Reading JUnit's XML: counts as the runner itself has them, hostile documents refused, nothing kept but names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passdown.handoff.junit import MAX_DEPTH, MAX_FAILING, NAME_CHARS, REPORT_BYTES, read_junit
from passdown.kernel.errors import PassdownError

OID = "1f" * 20


def rule(data: bytes) -> str:
    with pytest.raises(PassdownError) as caught:
        read_junit(data)
    assert caught.value.code == "test_report_refused"
    found: str = caught.value.members["rule"]
    return found


def suite(inner: str, attributes: str = "") -> bytes:
    return f"<testsuite {attributes}>{inner}</testsuite>".encode()


def test_a_real_run_is_counted_as_its_runner_counts_it(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 0\n"
        "@pytest.fixture\n"
        "def broken(): raise OSError\n"
        "def test_broken(broken): pass\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
        "@pytest.mark.parametrize('x', ['a b', '<&>'])\n"
        "def test_many(x): assert x == 'a b'\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml"]
    done = subprocess.run([*command, "test_sample.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed, 2 passed, 1 skipped, 1 error" in done.stdout
    found = read_junit((tmp_path / "report.xml").read_bytes())
    assert (found.tests, found.failures, found.errors, found.skipped) == (6, 2, 1, 1)
    assert found.failing == ("test_sample.test_bad", "test_sample.test_broken", "test_sample.test_many[<&>]")
    assert (found.failing_total, found.declared, found.commit) == (3, None, None)


@pytest.mark.parametrize(
    ("document", "counts"),
    [
        # Surefire: one suite, properties of the machine, reruns that ended well are no failures
        (
            '<testsuite name="A" tests="3" errors="1" skipped="0" failures="1"><properties><property name="os.name"'
            ' value="Linux"/></properties><testcase name="x" classname="com.A"><failure type="E">m</failure></testcase>'
            '<testcase name="y" classname="com.A"><error/></testcase><testcase name="z" classname="com.A">'
            '<flakyFailure message="m"/></testcase></testsuite>',
            (3, 1, 1, 0),
        ),
        # suites in suites; the inner ones are not declared twice
        (
            '<testsuites tests="2"><testsuite tests="2"><testsuite tests="1"><testcase name="a"/></testsuite>'
            '<testcase name="b"><skipped/></testcase></testsuite></testsuites>',
            (2, 0, 0, 1),
        ),
        # a case that failed and then broke is counted once, as broken
        ('<testsuite><testcase name="a"><failure/><error/><skipped/></testcase></testsuite>', (1, 0, 1, 0)),
        # elements of those names elsewhere mean nothing
        ("<testsuite><failure/><testcase name='a'><system-out>x</system-out></testcase></testsuite>", (1, 0, 0, 0)),
        ("<testsuites/>", (0, 0, 0, 0)),
        ('<?xml version="1.0" encoding="UTF-8"?>\n<j:testsuite xmlns:j="x"><j:testcase/></j:testsuite>', (1, 0, 0, 0)),
    ],
)
def test_what_other_runners_write_is_counted(document: str, counts: tuple[int, int, int, int]) -> None:
    found = read_junit(document.encode())
    assert (found.tests, found.failures, found.errors, found.skipped) == counts
    assert found.declared is None


def test_a_report_that_was_cut_off_says_that_it_declared_more() -> None:
    assert read_junit(suite('<testcase name="a"/>', 'tests="9"')).declared == 9
    two = '<testsuite tests="2"><testcase/></testsuite><testsuite tests="3"><testcase/></testsuite>'
    assert read_junit(f"<testsuites>{two}</testsuites>".encode()).declared == 5


@pytest.mark.parametrize("name", ["git.commit", "Commit", "revision", "vcs.revision"])
def test_the_commit_is_taken_from_a_property_that_names_it(name: str) -> None:
    properties = f'<properties><property name="{name}" value=" {OID.upper()} "/></properties>'
    assert read_junit(suite(properties)).commit == OID


@pytest.mark.parametrize(
    "inner",
    [
        f'<properties><property name="git.commit" value="{OID[:12]}"/></properties>',  # too short to be one
        f'<properties><property name="note" value="{OID}"/></properties>',
        f'<property name="git.commit" value="{OID}"/>',  # in no list of properties
        f'<properties><property name="commit" value="{OID}"/><property name="sha" value="{"2e" * 20}"/></properties>',
    ],
)
def test_a_commit_is_never_guessed(inner: str) -> None:
    assert read_junit(suite(inner)).commit is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "not_xml"),
        (b"not xml", "not_xml"),
        (b"<testsuite>", "not_xml"),
        (b"<html/>", "not_junit"),
        (b"<!DOCTYPE testsuite><testsuite/>", "doctype"),
        (b'<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite name="&b;"/>', "doctype"),
        (b'<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite name="&x;"/>', "doctype"),
        (b'<!DOCTYPE t SYSTEM "http://127.0.0.1:1/x.dtd"><testsuite/>', "doctype"),
        (b"<testsuite name='&undefined;'/>", "not_xml"),
        (b"<testsuite name='\xff\xfe'/>", "not_xml"),
        (b'<?xml version="1.0" encoding="nonsense"?><testsuite/>', "encoding"),
        (b"<testsuite>" * (MAX_DEPTH + 1) + b"</testsuite>" * (MAX_DEPTH + 1), "too_deep"),
    ],
)
def test_hostile_and_broken_documents_are_refused(data: bytes, expected: str) -> None:
    assert rule(data) == expected


def test_the_deepest_document_is_read() -> None:
    assert read_junit(b"<testsuite>" * MAX_DEPTH + b"</testsuite>" * MAX_DEPTH).tests == 0


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "utf-8-sig"])
def test_other_encodings_of_xml_are_read(encoding: str) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{declared}"?><testsuite><testcase name="é"><error/></testcase></testsuite>'
    assert read_junit(text.encode(encoding)).failing == ("é",)


def test_names_of_failures_are_cut_and_counted_and_are_one_harmless_line() -> None:
    one = '<testcase classname="c" name="{}"><failure>secret</failure></testcase>'
    names = ["x" * 2_000, "a\nb\tc", "e\u0301", "\u009f\u202e"] + [str(number) for number in range(MAX_FAILING)]
    found = read_junit(suite("".join(one.format(name) for name in names)))
    assert (len(found.failing), found.failing_total) == (MAX_FAILING, MAX_FAILING + 4)
    assert len(found.failing[0]) == NAME_CHARS
    assert found.failing[0].endswith("…")
    assert found.failing[1:4] == ("c.a b c", "c.é", "c.??")
    assert "secret" not in repr(found)


def test_a_file_over_the_limit_is_refused_with_both_numbers() -> None:
    with pytest.raises(PassdownError) as caught:
        read_junit(b" " * (REPORT_BYTES + 1))
    assert (caught.value.code, caught.value.members["limit"]) == ("body_too_large", REPORT_BYTES)


PIECES = [
    piece.replace(b"~", b" ")
    for piece in (
        b"<testsuite> </testsuite> <testcase~name='a'> </testcase> <failure/> <error> </error> <skipped/> &amp; &x;"
        b" \xff <!-- --> <![CDATA[ ]]> <?x?> <!DOCTYPE~x> ~"
    ).split(b" ")
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(PIECES),
        max_size=40,
    )
)
def test_any_bytes_give_facts_or_one_refusal(pieces: list[bytes]) -> None:
    try:
        found = read_junit(b"".join(pieces))
    except PassdownError as error:
        assert error.code == "test_report_refused"
    else:
        assert found.failures + found.errors + found.skipped <= found.tests
