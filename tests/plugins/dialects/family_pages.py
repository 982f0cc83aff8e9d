"""The table that stands on a family's page, made from its rows of code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.plugins.dialects.laws import TOOLS
from tokenwire.plugins.dialects._shared.family import Family

__all__ = ("check_page",)

DOCS = Path(__file__).parents[3] / "docs" / "dialects"
HEAD = (
    "| dialect | models | `auto` looks for | reasoning | calls begin with | stops at | grammar |",
    "|---|---|---|---|---|---|---|",
)


def check_page(name: str, names: Mapping[str, str], families: Mapping[str, Family]) -> None:
    """Of docs/dialects/`name`.md."""
    wanted = "\n".join((*HEAD, *rows_of(names, families)))
    page = (DOCS / f"{name}.md").read_text()
    assert wanted in page, f"docs/dialects/{name}.md needs this table:\n{wanted}"


def rows_of(names: Mapping[str, str], families: Mapping[str, Family]) -> Iterator[str]:
    assert list(names) == list(families)
    for name, models in names.items():
        family, format = families[name], families[name].format
        bare = [f"{_code(start.marker)} (bare)" for start in format.bare]
        grammar = family.grammar is not None and family.grammar(TOOLS) is not None
        cells = (
            f"`{name}`",
            models,
            " and ".join(map(_code, family.template_markers)) or "nothing",
            f"{_code(format.think)} to {_code(format.think_end)}" if format.think else "none",
            ", ".join([*(_code(start.marker) for start in format.calls), *bare]),
            ", ".join(map(_code, family.stop_strings)) or "eos ids only",
            "yes" if grammar else "no",
        )
        yield f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    return f"`{shown}`"
