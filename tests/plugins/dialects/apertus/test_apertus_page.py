"""The family's page says what its dialects are."""

from __future__ import annotations

from tests.plugins.dialects.dialect_pages import check_dialects_page


def test_the_page_has_the_table() -> None:
    check_dialects_page("apertus", ("apertus",))
