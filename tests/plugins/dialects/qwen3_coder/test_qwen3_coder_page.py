"""The page of this plugin says what its dialects are."""

from __future__ import annotations

from tests.plugins.dialects.dialect_pages import check_dialects_page


def test_the_page_shows_the_dialects_as_they_are_installed() -> None:
    check_dialects_page("qwen3_coder", ["qwen3_coder", "step3p5", "seed_oss", "minicpm5"])
