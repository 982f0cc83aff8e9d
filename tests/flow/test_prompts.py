"""What reaches the engine: a real tokenizer and template, and nothing that a client spelled."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import real_tokenizers
from tests.flow import spy
from tests.flow.spy import SPIES
from tokenwire.core.call import Call
from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.dialogue import Dialogue, Text, ToolCall, ToolResult, ToolSpec, Turn
from tokenwire.core.factory import Services
from tokenwire.core.host import Host
from tokenwire.core.model_parts import assemble
from tokenwire.core.rendering import Renderer
from tokenwire.core.signing import Keyring
from tokenwire.core.testing.client import LocalClient

SPELLINGS = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "<|endoftext|>"]
BITS = st.lists(
    st.sampled_from([*SPELLINGS, "<|im", "_end|>", "<", "hello ", "\n", "é 🌊", "user", "'\""]),
    max_size=5,
).map("".join)


def renderer(folder: Path, dialect: str = "auto") -> Renderer:
    config = ModelConfig(
        name="m",
        engine=PluginUse("mock"),
        tokenizer=PluginUse("hf", {"path": str(folder / "tokenizer.json")}),
        checkpoint=str(folder),
        dialect=dialect,
    )
    return assemble(config, Host(), Services(Keyring([b"k" * 32]))).model.renderer


@pytest.fixture(scope="module")
def qwen3() -> Renderer:
    return renderer(real_tokenizers.published("qwen3"))


@pytest.fixture(scope="module")
def small(smollm2: Path) -> Renderer:
    return renderer(smollm2)


def talk(user: str, answer: str, result: str) -> Dialogue:
    call = ToolCall("c1", "look", json.dumps({"at": user}))
    return Dialogue(
        (
            Turn("system", (Text(result),)),
            Turn("user", (Text(user), Text(answer))),
            Turn("assistant", (Text(answer), call)),
            Turn("tool", (ToolResult("c1", (Text(result),)),)),
            Turn("user", (Text("go on"),)),
        ),
        tools=(ToolSpec("look", user, '{"type": "object", "description": "x"}'),),
    )


def specials(renderer: Renderer, dialogue: Dialogue) -> list[int]:
    marked = set(SPELLINGS)
    ids = {token.id for token in renderer.tokenizer.vocabulary.added if token.text in marked}
    return [id for id in renderer.prompt(dialogue, 0.0).ids if id in ids]


@given(BITS, BITS, BITS)
def test_client_text_never_makes_a_special_token(
    qwen3: Renderer, user: str, answer: str, result: str
) -> None:
    # Why "a": a template may leave out what is empty, together with what it puts around it.
    benign = specials(qwen3, talk("a", "a", "a"))
    assert specials(qwen3, talk("a" + user, "a" + answer, "a" + result)) == benign


@given(BITS, BITS, BITS)
def test_the_ids_spell_the_prompts_text_and_spans_cover_them(
    qwen3: Renderer, user: str, answer: str, result: str
) -> None:
    prompt = qwen3.prompt(talk("a" + user, "b" + answer, "c" + result), 0.0, spans=True)
    spelled = b"".join(qwen3.tokenizer.token_bytes(id) for id in prompt.ids)
    assert spelled.decode() == prompt.text
    ends = [span.end for span in prompt.spans]
    assert [span.start for span in prompt.spans] == [0, *ends[:-1]]
    assert ends[-1] == len(prompt.ids)
    special = {token.id for token in qwen3.tokenizer.vocabulary.added if token.special}
    for span in prompt.spans:
        ids = prompt.ids[span.start : span.end]
        assert (span.source == "special") == all(id in special for id in ids)


def test_spans_say_whose_text_it_is(small: Renderer) -> None:
    dialogue = Dialogue((Turn("system", (Text("Be brief."),)), Turn("user", (Text(" Hello! "),))))
    prompt = small.prompt(dialogue, 0.0, spans=True)

    def text(start: int, end: int) -> str:
        return b"".join(small.tokenizer.token_bytes(id) for id in prompt.ids[start:end]).decode()

    client = [
        (span.turn, span.part, text(span.start, span.end))
        for span in prompt.spans
        if span.source == "client"
    ]
    assert [origin[:2] for origin in client] == [(0, 0), (1, 0)]
    assert [origin[2].strip() for origin in client] == ["Be brief.", "Hello!"]


def test_spelled_specials_do_not_change_harmless_text(small: Renderer) -> None:
    harmless = Dialogue((Turn("user", (Text("1 < 2 and 3 > 2, said |im_end|"),)),))
    prompt = small.prompt(harmless, 0.0)
    assert prompt.ids == small.tokenizer.encode(prompt.text)


def test_no_prompt_text_reaches_the_engines_log(caplog: pytest.LogCaptureFixture) -> None:
    SPIES.clear()
    model = ModelConfig(name="m", engine=PluginUse("spy"), tokenizer=PluginUse("bytes"))
    secret = "my secret is swordfish"
    with (
        caplog.at_level(logging.DEBUG),
        LocalClient(Config(models=(model,)), Host({"s": spy})) as c,
    ):
        body: Any = {
            "model": "m",
            "messages": [{"role": "user", "content": secret}],
            "stop": ["swordfish"],
            "user": "swordfish",
        }
        assert c.post("/v1/chat/completions", body).status == 200
        ids = list(SPIES[0].jobs[0].prompt)
    logged = [record for record in caplog.records if record.name.startswith("tokenwire.engine")]
    text = "\n".join(record.getMessage() for record in logged)
    assert str(ids[-1]) in text
    assert "swordfish" not in "\n".join(record.getMessage() for record in caplog.records)


# --- beside transformers -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(smollm2: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.AutoTokenizer.from_pretrained(str(smollm2))


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co"]), max_size=40)


@pytest.mark.torch
@given(st.lists(WORDS, min_size=1, max_size=3))
def test_ids_are_those_of_transformers(small: Renderer, reference: Any, texts: list[str]) -> None:
    roles = ["user", "assistant"]
    messages = [
        {"role": roles[index % 2], "content": text} for index, text in enumerate([*texts, "?"])
    ]
    turns = tuple(
        Turn(message["role"], (Text(message["content"]),))  # type: ignore[arg-type]
        for message in messages
    )
    expected = reference.apply_chat_template(
        messages, tokenize=True, add_generation_prompt=True, return_dict=False
    )
    assert list(small.prompt(Call("m", Dialogue(turns)).dialogue, 0.0).ids) == list(expected)
