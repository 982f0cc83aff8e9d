"""Plugins import values, ports, the hook marker and a few tools: these, and nothing else of core.

A list of what is allowed, so that a new module of core is out of reach until somebody puts it here.
(That nothing allowed reaches up is the layers' contract in pyproject.toml.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = "tokenwire.core"
ALLOWED = {
    # errors and values
    *("blocks", "call", "dialogue", "errors", "events", "field_rule", "fingerprint", "fold"),
    *("prompt", "queries", "script", "seeds", "stored", "token_ids", "tokens", "wire"),
    # ports, and what a plugin registers
    *("ports.codec", "ports.dialect", "ports.engine", "ports.guard", "ports.observer"),
    *("ports.router", "ports.store", "ports.tokenizer", "ports.transfer"),
    *("checkpoint", "factory", "hookspecs", "scripts"),
    # tools for any codec
    *("custom_calls", "ignored", "json_body", "sealing", "signing"),
    # tools for any tokenizer
    "byte_text",
    # tools for any engine
    *("figures", "job_check", "job_log", "outlet", "progress", "threaded_engine", "waits"),
    *("gguf_config", "gguf_header", "token_codec"),
    # what layouts cost, and which are judged well
    *("cost.exchange", "cost.gpus", "cost.layout", "cost.links", "cost.shape"),
    *("planning.request", "planning.verdicts"),
    # tools for whatever has a connection
    *("breaker", "resolve", "secrets"),
}
SOURCES = [
    path
    for folder in ("plugins", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not path.name.startswith("test_")
]


def imports(source: str) -> Iterator[str]:
    """Every module of core that it names, at its top or inside a function."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                if module == CORE:
                    yield from (alias.name for alias in names)
                elif module.startswith(f"{CORE}."):
                    yield module.removeprefix(f"{CORE}.")
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.startswith(CORE):
                        yield alias.name.removeprefix(f"{CORE}.")


def test_plugins_import_what_they_may() -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {CORE}.{name}"
        for path in SOURCES
        for name in imports(path.read_text())
        if name not in ALLOWED
    ]
    assert not found, f"{'; '.join(found)}: plugins may import {', '.join(sorted(ALLOWED))}"


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_what_they_may_import_is_there(name: str) -> None:
    assert (ROOT / "core" / name.replace(".", "/")).with_suffix(".py").is_file()


def test_every_way_to_import_is_seen() -> None:
    source = (
        "from tokenwire.core import host\nimport tokenwire.core.flow as flow\n"
        "def f():\n    from tokenwire.core.server.edge import Edge\n"
    )
    assert list(imports(source)) == ["host", "flow", "server.edge"]
