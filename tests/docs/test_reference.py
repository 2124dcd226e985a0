"""The reference pages are made from code: a page that was not made anew after a change is found here."""

from __future__ import annotations

import pytest
from tools.reference import DOCS, pages

PAGES = pages()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_reference_page_says_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name], "run `python -m tools.reference`"
