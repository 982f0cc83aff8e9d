"""The table that stands on a family's page, made from its dialects as they are installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.plugins.dialects.laws import TOOLS
from tokenwire.core.host import Host, lone_services
from tokenwire.core.plugin_rows import plugin_rows
from tokenwire.core.ports.dialect import CallGrammar

__all__ = ("check_dialects_page",)

DOCS = Path(__file__).parents[3] / "docs" / "dialects"
HEAD = (
    "| dialect | models | `auto` looks for | or for the type | reasoning | stops at | grammar |",
    "|---|---|---|---|---|---|---|",
)


def check_dialects_page(name: str, dialects: Sequence[str]) -> None:
    """Of docs/dialects/`name`.md."""
    wanted = "\n".join((*HEAD, *rows_of(dialects)))
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert wanted in page, f"docs/dialects/{name}.md needs this table:\n{wanted}"


def rows_of(dialects: Sequence[str]) -> Iterator[str]:
    host, services = Host(), lone_services()
    summaries = {row.name: row.summary for row in plugin_rows(host) if row.kind == "dialect"}
    for name in dialects:
        dialect = host.dialects.build(name, {}, services, f"dialect.{name}")
        maker = host.parsers.build(dialect.parser, {}, services, f"parser.{dialect.parser}")
        start, end = maker.reasoning_start, maker.reasoning_end
        grammar = maker.call_grammar(TOOLS)
        cells = (
            f"`{name}`",
            summaries[name],
            " and ".join(map(_code, dialect.template_markers)) or "nothing",
            ", ".join(map(_code, dialect.model_types)) or "none",
            f"{_code(start)} to {_code(end)}" if start else "none",
            ", ".join(map(_code, maker.stop_strings)) or "eos ids only",
            _grammar(grammar),
        )
        yield f"| {' | '.join(cells)} |"


def _grammar(grammar: CallGrammar | None) -> str:
    if grammar is None:
        return "no"
    return f"from {_code(grammar.trigger)}" if grammar.trigger else "of forced calls"


def _code(text: str) -> str:
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    return f"`{shown}`"
