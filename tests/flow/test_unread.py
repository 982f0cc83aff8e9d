"""What the model's template does not read is listed, by the protocol's own name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.flow.wired import ask, model, serving
from tokenwire.core.config import PluginUse

HEADER = "x-tokenwire-ignored"
SILENT = "{% for m in messages %}{{ m.content }}{% endfor %}"
READS = "{{ reasoning_effort }}{{ documents }}{{ colour }}{{ tools }}" + SILENT

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
ASKED: list[tuple[str, dict[str, Any], str]] = [
    ("chat_completions", {"reasoning_effort": "high"}, "reasoning_effort"),
    ("chat_completions", {"documents": [{"text": "a"}]}, "documents"),
    (
        "chat_completions",
        {"chat_template_kwargs": {"colour": "red"}},
        "chat_template_kwargs.colour",
    ),
    ("chat_completions", {"tools": [TOOL]}, "tools"),
    ("messages", {"output_config": {"effort": "high"}}, "output_config.effort"),
]


def served(source: str, folder: Path, **more: Any) -> Any:
    path = folder / "template.jinja"
    path.write_text(source)
    return serving(model(chat_template=PluginUse("jinja", {"path": str(path)}), **more))


@pytest.mark.parametrize(("protocol", "fields", "name"), ASKED)
def test_it_is_listed_where_the_template_is_silent_about_it(
    protocol: str, fields: dict[str, Any], name: str, tmp_path: Path
) -> None:
    with served(SILENT, tmp_path) as (client, _):
        assert name in ask(client, protocol, **fields).headers[HEADER].split(", ")
    with served(READS, tmp_path, dialect="hermes") as (client, _):
        assert name not in ask(client, protocol, **fields).headers.get(HEADER, "").split(", ")


def test_thinking_is_listed_where_neither_template_nor_parser_knows_of_it(tmp_path: Path) -> None:
    asked = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    with served(SILENT, tmp_path, dialect="plain") as (client, _):
        assert "thinking" in ask(client, "messages", **asked).headers[HEADER].split(", ")
    with served(SILENT, tmp_path, dialect="think") as (client, _):
        assert "thinking" not in ask(client, "messages", **asked).headers.get(HEADER, "")
