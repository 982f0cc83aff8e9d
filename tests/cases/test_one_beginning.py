"""One beginning of text, though template and tokenizer would each write it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from tests.cases.stage import CHAT, MESSAGES, Played
from tokenwire.core.config import Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.testing.client import LocalClient

BEGIN, END = "<s>", "</s>"
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint whose tokenizer puts BEGIN before whatever it encodes with special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {letter: at for at, letter in enumerate(alphabet)}
    library = Tokenizer(models.BPE(vocab=words, merges=[]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens([AddedToken(BEGIN), AddedToken(END)])
    begin = library.token_to_id(BEGIN)
    library.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, begin)]
    )
    assert library.encode("x").ids[0] == begin
    library.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    (tmp_path / "tokenizer_config.json").write_text(
        f'{{"bos_token": "{BEGIN}", "eos_token": "{END}"}}'
    )
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
