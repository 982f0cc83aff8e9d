"""One beginning of text, though template and tokenizer would each write it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from tests.cases.checkpoint import BEGIN, write_checkpoint
from tests.cases.stage import CHAT, MESSAGES, Played
from tokenwire.core.config import Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.testing.client import LocalClient

TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path, TEMPLATE)
    return tmp_path


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("text", ["hi", f"what is {BEGIN}?", "long " * 4000])
def test_a_prompt_begins_once(folder: Path, path: str, text: str) -> None:
    """Short, with the spelling in client text, and long enough for a thread."""
    model = ModelConfig(
        name="m",
        engine=PluginUse("mock", {"context_length": 100_000}),
        tokenizer=PluginUse("hf", {"path": str(folder / "tokenizer.json")}),
        chat_template=PluginUse("jinja"),
        dialect="plain",
    )
    with LocalClient(Config(server=ServerConfig(debug=True), models=(model,))) as client:
        body = {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": text}]}
        played = Played(path, client.post(path, body))
        assert played.status == 200
        recent = client.deployment.recent_prompt(played.response.headers["x-request-id"])
    assert recent is not None
    ids = list(recent.prompt.ids)
    begin = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(BEGIN)
    assert ids[0] == begin
    assert ids.count(begin) == 1
