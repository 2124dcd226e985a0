"""The one error table: every row is raised somewhere, asserted somewhere and complete; no code lives outside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import passdown
from passdown.kernel.errors import ERRORS, PassdownError
from passdown.kernel.operations import COMMON_ERRORS

SOURCE = Path(passdown.__file__).parent
TESTS = Path(__file__).resolve().parent.parent
EXIT_OF = {
    400: 2,
    401: 2,
    403: 2,
    404: 4,
    405: 2,
    408: 5,
    409: 3,
    413: 2,
    415: 2,
    421: 2,
    422: 2,
    431: 2,
    500: 1,
    501: 5,
    503: 5,
}
OWN_EXIT = {"selection_not_resolvable": 4, "digest_mismatch": 4}


def _text(folder: Path, *leave_out: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name not in leave_out)


RAISING = _text(SOURCE, "error_table.py", "error_rows.py")
ASSERTING = _text(TESTS, Path(__file__).name)


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_code_is_raised_somewhere(code: str) -> None:
    assert f'"{code}"' in RAISING


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_code_is_asserted_somewhere(code: str) -> None:
    assert f'"{code}"' in ASSERTING


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_row_tells_what_is_wrong_and_what_to_do(code: str) -> None:
    spec = ERRORS[code]
    assert re.fullmatch(r"[a-z][a-z_]+", code)
    assert spec.exit_code == OWN_EXIT.get(code, EXIT_OF[spec.status])
    assert spec.sentence.endswith(".") and spec.next_step.endswith(".")
    assert spec.type == f"urn:passdown:problem:{code}"


def test_codes_that_every_operation_can_give_are_in_the_table() -> None:
    assert set(COMMON_ERRORS) <= set(ERRORS)


def test_a_code_outside_the_table_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        PassdownError("no_such_code")


def test_a_problem_has_the_members_of_rfc_9457_and_the_typed_ones() -> None:
    problem = PassdownError("handoff_too_large", limit=10, actual=11).problem("abc")
    assert problem == {
        "type": "urn:passdown:problem:handoff_too_large",
        "title": ERRORS["handoff_too_large"].sentence,
        "status": 413,
        "code": "handoff_too_large",
        "next_step": ERRORS["handoff_too_large"].next_step,
        "correlation_id": "abc",
        "limit": 10,
        "actual": 11,
    }
