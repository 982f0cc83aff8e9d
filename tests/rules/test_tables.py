"""Tables in documents that are drawn from code are what the code says, and none is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tokenwire.core.field_rule import FieldRule
from tokenwire.core.host import Host

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_table_is_stale(tables: ModuleType) -> None:
    stale = [str(path.relative_to(ROOT)) for path, _, new in tables.drawn() if new is not None]
    assert not stale, f"{', '.join(stale)}: run `make docs`"


def test_every_protocol_has_a_page_with_its_table(tables: ModuleType) -> None:
    drawn = {path.relative_to(ROOT / "docs").as_posix(): names for path, names, _ in tables.drawn()}
    assert "protocols" in drawn["protocols.md"]
    assert "dialects" in drawn["dialects.md"]
    assert "metrics" in drawn["metrics.md"]
    assert "settings of cuda" in drawn["engine.md"]
    for name, codec in tables.codecs(Host()).items():
        page = f"protocols/{tables.page(name)}.md"
        assert (ROOT / "docs" / page).is_file(), f"{name} has no page docs/{page}"
        if codec.fields:
            assert f"fields of {name}" in drawn[page]


def test_every_setting_says_what_it_is(tables: ModuleType) -> None:
    rows = list(tables._keys(Host().engines.find("cuda").settings))
    assert ("`speculation.tokens`", "int, from 1", "`4`") in {row[:3] for row in rows}
    assert ("`gpu_memory_fraction`", "float, above 0 to 1", "`0.88`") in {row[:3] for row in rows}
    assert [row[0] for row in rows if not row[3].endswith((".", "..."))] == []


def test_what_would_break_a_table_is_written_so_that_it_does_not(tables: ModuleType) -> None:
    rules = (FieldRule("a|b", "used", "x | y", ("n", "seed"), "refused"), FieldRule("`c`", "used"))
    assert tables._fields(rules) == (
        "| field | how | meaning | needs |\n"
        "| --- | --- | --- | --- |\n"
        "| `a\\|b` | used | x \\| y | `n`, `seed`; else refused |\n"
        "| `` `c` `` | used | | |\n"
    )
    assert tables._code("\n<tool>|") == "`\\n<tool>\\|`"


def test_checking_writes_nothing_and_tells(tables: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    page.write_text("<!-- fields of render -->\nold\n<!-- end -->\n")
    kept = tables.DOCS
    try:
        tables.DOCS = tmp_path
        assert tables.main(["--check"]) == 1
        assert "old" in page.read_text()
        assert tables.main([]) == 0
        assert "| `protocol` | used |" in page.read_text()
        assert tables.main(["--check"]) == 0
    finally:
        tables.DOCS = kept
