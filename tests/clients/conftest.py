"""One live server for all client tests: the mock with scripts, and SmolLM2's tokenizer over it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.live import LiveServer, live_server

CONFIG = """
server:
  http: {http}
models:
  - name: mock
    engine: mock
    tokenizer: bytes
    dialect: plain
  - name: script
    engine: mock
    tokenizer: script
    dialect: hermes
  - name: agent
    engine: {{plugin: mock, context_length: 400000}}
    tokenizer: script
    dialect: hermes
  - name: gpt-5.5  # a name to which Codex gives a free-form tool
    engine: {{plugin: mock, context_length: 400000}}
    tokenizer: script
    dialect: hermes
  - name: gpt-6-sol  # and one to which it gives all its tools in namespaces, by an item
    engine: {{plugin: mock, context_length: 400000}}
    tokenizer: script
    dialect: hermes
  - name: busy
    engine: {{plugin: mock, context_length: 400000, error_at: 0, error_cause: overloaded}}
    tokenizer: script
    dialect: hermes
"""


@pytest.fixture(scope="session", params=["granian", "uvicorn"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("live")
    with live_server(CONFIG.format(http=request.param), folder) as live:
        yield live


TOOL_SCRIPT = {
    "pieces": [
        "I will look. ",
        '<tool_call>\n{"name": "get_tide", "argu',
        'ments": {"port": "Bre',
        'st"}}\n</tool_call>',
        '\n<tool_call>\n{"name": "get_tide", "arguments": {"port": "Cork"}}\n</tool_call>',
    ],
    "finish": "eos",
}
THINK_SCRIPT = {
    "pieces": ["<think>", "two and", " two", "</think>", "\n\n", "It is ", "4 🌊", "."],
    "finish": "eos",
}


@pytest.fixture(scope="session")
def scripted(server: LiveServer) -> LiveServer:
    server.script("tools", TOOL_SCRIPT)
    server.script("think", THINK_SCRIPT)
    server.script("late", {"pieces": ["par", {"engine_error": "lost"}], "finish": "abort"})
    cut = ['<tool_call>\n{"name": "f", "arguments": {"a": "b']
    server.script("cut", {"pieces": cut, "finish": "length"})
    server.script("halt", {"pieces": ["one ", "ST", "OP two"], "finish": "eos"})
    return server
