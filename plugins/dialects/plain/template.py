"""Template `plain`: each turn is its role, a colon, a line with its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from tokenwire.core.dialogue import Dialogue, Part, Reasoning, ToolCall, ToolResult
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.plugins.dialects._shared.client_text import text_of

__all__ = ("PlainTemplate",)


@final
class PlainTemplate(Template):
    """For models without a chat template. Tools are listed, earlier reasoning is left out."""

    source = "plain 1"
    is_open_ended = True
    variables = ("tools",)

    def render(self, dialogue: Dialogue, now: float) -> Segments:
        return Segments(tuple(s for s in _segments(dialogue) if s.text))


def _segments(dialogue: Dialogue) -> Iterator[Segment]:
    if not dialogue.turns:
        raise RequestError("a conversation needs at least one message")
    if dialogue.tools:
        yield Segment("tools:", "template")
        for tool in dialogue.tools:
            yield Segment("\n- ", "template")
            yield Segment(
                f"{tool.name}: {tool.description or ''} {tool.parameters or ''}", "client"
            )
        yield Segment("\n\n", "template")
    last = len(dialogue.turns) - 1
    for k, turn in enumerate(dialogue.turns):
        yield Segment(f"{turn.role}:\n", "template")
        for j, part in enumerate(turn.parts):
            if j and isinstance(part, ToolResult):
                # Why: protocols differ in whether each result is a message; the prompt must not.
                yield Segment(f"\n\n{turn.role}:\n", "template")
            yield from _part(part, k, j)
        if not (k == last and dialogue.continue_final):
            yield Segment("\n\n", "template")
    if not dialogue.continue_final and dialogue.generation_prompt:
        yield Segment("assistant:\n", "template")


def _part(part: Part, turn: int, index: int) -> Iterator[Segment]:
    match part:
        case ToolCall():
            yield Segment(f"{part.name}({part.arguments})", "client", turn, index)
        case ToolResult(parts=parts):
            for inner in parts:
                yield Segment(text_of(inner, turn), "client", turn, index)
        case Reasoning():
            return
        case _:
            yield Segment(text_of(part, turn), "client", turn, index)
