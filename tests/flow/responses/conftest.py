"""One gateway for each file of tests, with the answers that its mock gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flow.responses.asking import MODELS
from tokenwire.core.config import Config, ServerConfig
from tokenwire.core.testing.client import LocalClient

SLOW = {"pieces": ["one ", {"sleep_s": 0.01}, {"repeat": "x", "times": 60}], "finish": "eos"}
PATCH_CALL = '<tool_call>\n{"name": "patch", "arguments": {"input": "a\\n\\"b\\""}}\n</tool_call>'


@pytest.fixture(scope="module")
def client() -> Iterator[LocalClient]:
    config = Config(server=ServerConfig(debug=True, max_background=2), models=MODELS)
    with LocalClient(config) as client:
        client.script("short", {"pieces": ["Aye", "."], "finish": "eos"})
        client.script("slow", SLOW)
        client.script("think", {"pieces": ["<think>", "so", "</think>", "Hi"], "finish": "eos"})
        client.script("patch", {"pieces": list(PATCH_CALL), "finish": "eos"})
        yield client
