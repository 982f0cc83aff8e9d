"""What a law of the dialect kit works with: the plugins, answers, a way to complain.

Knows no model family.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import msgspec
from hypothesis import strategies as st

from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolSpec, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.events import PartDelta, Started
from tokenwire.core.fold import Answer, Part, fold
from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup, PartEvent, Template
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Piece
from tokenwire.core.testing.laws import Probe

__all__ = (
    "ANSWERS",
    "CALLS",
    "SETUPS",
    "THOUGHTS",
    "TOOLS",
    "DialectProbe",
    "asking",
    "deltas",
    "parts_of",
    "turn_parts",
)

NOW = 1_700_000_000.0
SCHEMA = '{"type": "object", "properties": {"a": {"type": "string", "description": "any text"}}}'
TOOLS = (ToolSpec("look_up", "Looks a word up.", SCHEMA),)
ANSWERS = (
    Turn("assistant", (Text("The answer is four."),)),
    Turn("assistant", (Text("prose\n\n  with 'quotes' and 🌊\nand lines"),)),
)
"""Answers that every dialect can show; a dialect with tools or reasoning is given more."""
CALLS = (
    Turn("assistant", (ToolCall("c1", "look_up", '{"a": "b \\n c"}'),)),
    Turn("assistant", (ToolCall("c1", "look_up", "{}"), ToolCall("c2", "look_up", '{"a": [1]}'))),
)
THOUGHTS = (Turn("assistant", (Reasoning("hm\n\n  so"), Text("it is four"))),)
SETUPS = (
    ParserSetup(),
    ParserSetup(tools=TOOLS),
    ParserSetup(tools=TOOLS, parse_tools=False),
    ParserSetup(tools=TOOLS, phase="reasoning"),
    ParserSetup(tools=TOOLS, reasoning=False),
)
BITS = ("<", ">", "</", "{", "}", "[", "]", '"', "\\", ":", ",", "\n", "\n\n", " ", "a", "word ",
        "é🌊", "null", '{"name": "look_up", "arguments": {"a": "b"}}', '{"name": "look_up"',
        '"arguments"')  # fmt: skip


def asking(*turns: Turn, tools: tuple[ToolSpec, ...] = TOOLS) -> Dialogue:
    """A question, then `turns`."""
    return Dialogue(turns=(Turn("user", (Text("What is two and two?"),)), *turns), tools=tools)


def parts_of(events: Sequence[PartEvent]) -> tuple[Part, ...]:
    answer: Answer = fold([Started(0), *events])
    return answer.choices[0].parts


@final
class DialectProbe(Probe):
    """For one run of one law."""

    port = "dialect"

    def __init__(
        self,
        template: Template | None,
        maker: ParserMaker | None,
        law: str,
        *,
        answers: Sequence[Turn],
        tokenizer: Tokenizer | None,
        examples: int,
        held: int,
        state_bytes: int,
    ) -> None:
        super().__init__(law, examples=examples)
        self.template = template
        self.maker = maker
        self.tokenizer = tokenizer
        self.answers = answers
        self.held = held
        self.state_bytes = state_bytes

    def parse(self, setup: ParserSetup, pieces: Sequence[Piece | str]) -> list[PartEvent]:
        """All events of one answer."""
        parser = self.parser(setup)
        events = [event for piece in pieces for event in parser.push(as_piece(piece))]
        return [*events, *parser.flush()]

    def parser(self, setup: ParserSetup) -> Parser:
        assert self.maker is not None
        return self.maker.parser(setup)

    def moved(self, parser: Parser, setup: ParserSetup) -> Parser:
        """A fresh parser with this one's state, taken through msgpack."""
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(parser.save()))
        fresh = self.parser(setup)
        fresh.restore(state)
        return fresh

    def outputs(self) -> st.SearchStrategy[tuple[ParserSetup, str]]:
        """Setups, and texts in the spirit of the dialect: its markers, JSON, rendered answers."""
        assert self.maker is not None
        texts = [text for _, text in self.rendered()]
        bits = (*BITS, *self.maker.markers, *(m[: len(m) // 2] for m in self.maker.markers), *texts)
        text = st.lists(st.sampled_from(bits), max_size=9).map("".join)
        return st.tuples(st.sampled_from(SETUPS), text)

    def render(self, dialogue: Dialogue) -> str:
        assert self.template is not None
        return self.template.render(dialogue, NOW).text

    def rendered(self) -> Iterator[tuple[Turn, str]]:
        """Each answer turn, and the text of it that the model would have to say."""
        if self.template is None or self.maker is None:
            return
        try:
            other = self.render(asking(Turn("assistant", (Text("\u2603"),)), tools=()))
        except RequestError as error:
            self.broken(f"an answer of one character is refused: {error.message}")
        behind = other[other.rfind("\u2603") + 1 :]
        for turn in self.answers:
            tools = TOOLS if any(isinstance(part, ToolCall) for part in turn.parts) else ()
            try:
                prompt = self.render(asking(tools=tools))
                whole = self.render(asking(turn, tools=tools))
            except RequestError as error:
                self.broken(f"an answer of the kit's is refused: {error.message}")
            if not whole.startswith(prompt):
                self.broken(f"the prompt {prompt[-80:]!r} is not how the next prompt begins")
            if not whole.endswith(behind):
                self.broken(f"an answer ends with {whole[-80:]!r}, another with {behind!r}")
            yield turn, whole[len(prompt) : len(whole) - len(behind)]


def as_piece(piece: Piece | str) -> Piece:
    return Piece(piece) if isinstance(piece, str) else piece


def turn_parts(turn: Turn) -> tuple[Part, ...]:
    """A turn as the parts that reading it must give."""
    parts = []
    for part in turn.parts:
        match part:
            case Reasoning(text):
                parts.append(Part("reasoning", text))
            case Text(text):
                parts.append(Part("text", text))
            case ToolCall(name=name, arguments=arguments):
                parts.append(Part("tool_call", arguments, name=name))
    return tuple(parts)


def deltas(events: Sequence[PartEvent]) -> list[PartDelta]:
    return [event for event in events if isinstance(event, PartDelta)]
