"""Which dialect a name or a chat template means."""

from __future__ import annotations

import pytest

from tokenwire.core.dialect_names import ALIASES, pick
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host, lone_services


def test_a_configured_name_is_taken_as_it_is_or_as_an_alias() -> None:
    assert pick("<tool_call>", "plain")[0] == "plain"
    assert pick(None, "qwen2.5")[0] == pick(None, "hermes+think")[0] == "hermes"
    assert pick(None, "sentencepiece")[0] == "plain"
    assert pick(None, "nobody's")[0] == "nobody's"


def test_every_alias_is_an_installed_dialect() -> None:
    assert set(ALIASES.values()) <= set(Host().dialects)


@pytest.mark.parametrize("name", ["kimi", "harmony", "qwen3_coder", "llama3_json", "json_array"])
def test_a_known_family_without_a_plugin_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}.*no plugin"):
        pick(None, name)
    assert pick(None, name, installed=frozenset({name}))[0] == name


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('{{ \'<tool_call>\\n{"name": x, "arguments": y}\' }}', "hermes"),
        ('{{ "<tool_call>{\\"name\\": x, \\"arguments\\": y}" }}', "hermes"),
        ("<tool_call><function=f><think>", "think"),
        ("<tool_call><function=f>", "plain"),
        ("<think>", "think"),
        ("{{ messages }}", "plain"),
        (None, "plain"),
    ],
)
def test_auto_looks_for_a_familys_markers_and_says_why(source: str | None, name: str) -> None:
    host = Host()
    dialects = [host.dialects.build(name, {}, lone_services()) for name in host.dialects]
    families = {dialect.name: dialect.template_markers for dialect in dialects}
    found, why = pick(source, "auto", families=families)
    assert found == name
    assert "template" in why


def test_auto_can_be_told_of_other_families() -> None:
    families = {"mine": ("<<call>>",)}
    assert pick("a <<call>> b", "auto", families=families)[0] == "mine"
