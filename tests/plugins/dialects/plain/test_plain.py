"""The dialect that has no markers."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.reading import read, text
from tokenwire.core.dialogue import (
    Dialogue,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects.plain.parser import PlainMaker
from tokenwire.plugins.dialects.plain.template import PlainTemplate


def test_everything_is_text() -> None:
    answer = "\n<think>a</think> <tool_call>{}</tool_call> \n"
    assert read(answer, maker=PlainMaker(), phase="reasoning") == [text(answer)]


def test_special_tokens_are_dropped_and_counted() -> None:
    assert read("a", "<eos>", "b", maker=PlainMaker(), special=("<eos>",)) == [text("ab")]
    parser = PlainMaker().parser(ParserSetup())
    parser.push(Piece("<bos>", True))
    start, delta = parser.push(Piece("hello"))
    assert (start.kind, delta.text, delta.end) == ("text", "hello", 10)


def test_an_empty_answer_has_no_parts() -> None:
    assert read("", maker=PlainMaker()) == []


def test_the_template_knows_whose_text_is_whose() -> None:
    turns = (
        Turn("system", (Text("S"),)),
        Turn("user", (Text("a"), Text("b"))),
        Turn("assistant", (Reasoning("r"), ToolCall("c", "f", "{}"))),
        Turn("tool", (ToolResult("c", (Text("3"),)),)),
    )
    segments = PlainTemplate().render(Dialogue(turns=turns), 0.0)
    assert segments.text == (
        "system:\nS\n\nuser:\nab\n\nassistant:\nf({})\n\ntool:\n3\n\nassistant:\n"
    )
    client = [(s.text, s.turn, s.part) for s in segments.segments if s.source == "client"]
    assert client == [("S", 0, 0), ("a", 1, 0), ("b", 1, 1), ("f({})", 2, 1), ("3", 3, 0)]


def test_a_final_turn_can_be_continued() -> None:
    turns = (Turn("user", (Text("a"),)), Turn("assistant", (Text("The answer"),)))
    text = PlainTemplate().render(Dialogue(turns=turns, continue_final=True), 0.0).text
    assert text.endswith("assistant:\nThe answer")


def test_blocks_of_an_unknown_kind_are_left_out() -> None:
    turn = Turn("user", (Text("a"), Opaque("other", {}), Text("b")))
    assert PlainTemplate().render(Dialogue(turns=(turn,)), 0.0).text.startswith("user:\nab\n")


def test_media_are_refused() -> None:
    with pytest.raises(RequestError, match="image"):
        PlainTemplate().render(Dialogue(turns=(Turn("user", (Image(data=b"x"),)),)), 0.0)
    with pytest.raises(RequestError, match="at least one message"):
        PlainTemplate().render(Dialogue(turns=()), 0.0)
