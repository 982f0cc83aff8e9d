"""The page of these families says what the code does."""

from __future__ import annotations

from tests.plugins.dialects.dialect_pages import check_dialects_page
from tokenwire.plugins.dialects.prefixed.build import NAMES


def test_the_page_says_what_the_code_does() -> None:
    check_dialects_page("prefixed", tuple(NAMES))
