"""The page of this plugin says what its dialects are."""

from __future__ import annotations

from tests.plugins.dialects.dialect_pages import check_dialects_page


def test_the_page_shows_the_dialects_as_they_are_installed() -> None:
    check_dialects_page("glm", ["glm", "ling3", "laguna", "laguna_xs", "spark", "hunyuan"])
