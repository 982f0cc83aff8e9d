"""The page of these families says what the code does."""

from __future__ import annotations

from tests.plugins.dialects.family_pages import check_page
from tokenwire.plugins.dialects.prefixed.build import NAMES, all_families


def test_the_page_says_what_the_code_does() -> None:
    check_page("prefixed", NAMES, all_families())
