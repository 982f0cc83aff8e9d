"""Documents that are drawn from code are what the code says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tokenwire.core import hookspecs
from tokenwire.core.events import ORDER
from tokenwire.core.host import HOOKS

ROOT = Path(__file__).parents[2]


def test_the_diagram_of_events_is_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    drawn = re.findall(r"^  (\w+) --> (\w+): (\w+)$", text, re.MULTILINE)
    assert {(state, key): after for state, after, key in drawn} == ORDER


def test_every_hook_is_documented_with_its_signature() -> None:
    text = (ROOT / "plugins" / "README.md").read_text()
    for hook in HOOKS:
        signature = str(inspect.signature(getattr(hookspecs, hook))).replace("'", "")
        assert f"`{hook}{signature}`" in text, f"{hook}{signature} has no line in plugins/README.md"


def test_every_kind_of_plugin_has_an_example_and_a_way() -> None:
    text = (ROOT / "plugins" / "README.md").read_text()
    for kind in ("protocol", "template", "parser", "dialect", "tokenizer", "engine", "store"):
        assert re.search(rf"^## .*{kind}", text, re.MULTILINE | re.IGNORECASE), kind
