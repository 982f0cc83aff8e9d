"""Every dialect stands on a page, and the overview leads to every page."""

from __future__ import annotations

from tests.plugins.dialects.dialect_pages import DOCS, check_dialects_page
from tokenwire.core.host import Host


def test_the_pages_of_the_first_families_say_what_is_installed() -> None:
    check_dialects_page("hermes", ("hermes", "qwen_vl", "think"))
    check_dialects_page("plain", ("plain",))


def test_every_dialect_has_a_page() -> None:
    pages = [page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")]
    missing = [name for name in Host().dialects if not any(f"| `{name}` |" in p for p in pages)]
    assert not missing, f"no page in docs/dialects has a row for {missing}"


def test_the_overview_leads_to_every_page_and_names_every_dialect() -> None:
    overview = (DOCS.parent / "dialects.md").read_text(encoding="utf-8")
    unlinked = [
        page.name for page in DOCS.glob("*.md") if f"(dialects/{page.name})" not in overview
    ]
    assert not unlinked
    assert [name for name in Host().dialects if f"`{name}`" not in overview] == []
