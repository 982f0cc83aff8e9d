"""With the vocabulary of gpt-oss: markers are special tokens, an answer comes by token."""

from __future__ import annotations

import pytest

from tests import real_tokenizers
from tests.plugins.dialects.reading import call, reasoning, text
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.detokenizer import Detokenizer, PieceTable
from tokenwire.core.dialogue import Reasoning, Text, ToolCall, ToolSpec, Turn
from tokenwire.core.events import Started
from tokenwire.core.fold import fold
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.testing.dialect_kit import run_dialect_kit
from tokenwire.core.testing.dialect_probe import ANSWERS, asking
from tokenwire.plugins.dialects.harmony.maker import HarmonyMaker
from tokenwire.plugins.dialects.harmony.markers import ALL
from tokenwire.plugins.dialects.harmony.template import HarmonyTemplate
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tokenizer():
    return load(HfSettings(fast="off"), Checkpoint(real_tokenizers.published("gptoss")))


def test_an_answer_is_read_from_its_tokens(tokenizer) -> None:
    parts = (
        Reasoning("Über 🌊\n\n so"),
        Text("I <look>.\n"),
        ToolCall("c1", "get_tide", '{"port": "Faro \\"🌊\\"", "n": [1, null]}'),
        ToolCall("c2", "get_tide", "{}"),
    )
    tools = (ToolSpec("get_tide", "Tides."),)
    template = HarmonyTemplate()
    prompt = template.render(asking(tools=tools), 0.0).text
    whole = template.render(asking(Turn("assistant", parts), tools=tools), 0.0).text
    written = whole[len(prompt) :].removesuffix("<|start|>assistant")
    detokenizer = Detokenizer(PieceTable(tokenizer))
    pieces = [detokenizer.push(id) for id in tokenizer.encode(written)]
    assert {piece.text for piece in pieces if piece.special} <= set(ALL)
    parser = HarmonyMaker().parser(ParserSetup(tools=tools))
    events = [event for piece in pieces for event in parser.push(piece)]
    read = fold([Started(0), *events, *parser.flush()]).choices[0].parts
    assert list(read) == [
        reasoning(parts[0].text),
        text(parts[1].text),
        *(call("get_tide", part.arguments) for part in parts[2:]),
    ]


def test_harmony_conforms_with_its_tokens(tokenizer) -> None:
    held = run_dialect_kit(
        HarmonyTemplate(), HarmonyMaker(), answers=ANSWERS, tokenizer=tokenizer, examples=20
    )
    assert {"known_stops", "no_special_from_a_client"} <= set(held)
