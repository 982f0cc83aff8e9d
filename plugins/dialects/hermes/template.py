"""Template `chatml`: Hermes-style prompts for models that bring no chat template.

A turn is `<|im_start|>role`, a newline, its text, `<|im_end|>`. Tools stand in the system turn;
results that follow one another go back as one user turn. Reasoning is shown only behind the last
question, as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, final

from tokenwire.core.dialogue import (
    Dialogue,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.plugins.dialects._shared.client_text import text_of

__all__ = ("ChatmlTemplate",)

START: Final = Segment("<|im_start|>", "special")
END: Final = Segment("<|im_end|>", "special")
NEWLINE: Final = Segment("\n", "template")
BEFORE_TOOLS: Final = "These tools can be called. Their signatures stand in <tools> tags:\n<tools>"
AFTER_TOOLS: Final = (
    "\n</tools>\nTo call a tool, write a JSON object with its name and arguments in <tool_call>"
    ' tags:\n<tool_call>\n{"name": <tool-name>, "arguments": <arguments-object>}\n</tool_call>'
)
SYSTEM: Final = ("system", "developer")


@final
class ChatmlTemplate(Template):
    """System and developer turns are joined at the front."""

    source = "chatml 1"
    is_open_ended = True
    variables = ("tools",)

    def render(self, dialogue: Dialogue, now: float) -> Segments:
        if not dialogue.turns:
            raise RequestError("a conversation needs at least one message")
        return Segments(tuple(s for s in _dialogue(dialogue) if s.text))


def _dialogue(dialogue: Dialogue) -> Iterator[Segment]:
    turns = list(enumerate(dialogue.turns))
    yield from _system([(k, turn) for k, turn in turns if turn.role in SYSTEM], dialogue.tools)
    question = max((k for k, turn in turns if _asks(turn)), default=-1)
    last = len(turns) - 1
    for k, turn in turns:
        if turn.role in SYSTEM:
            continue
        if turn.role == "assistant":
            yield from _assistant(turn, k, shows_reasoning=k > question)
        else:
            follows = turn.role == "tool" and k > 0 and turns[k - 1][1].role == "tool"
            yield from (NEWLINE,) if follows else (START, Segment("user\n", "template"))
            yield from _user(turn, k)
        if turn.role == "tool" and k < last and turns[k + 1][1].role == "tool":
            # Why: protocols differ in whether each result is a message; the prompt must not.
            continue
        if not (k == last and dialogue.continue_final):
            yield from (END, NEWLINE)
    if not dialogue.continue_final and dialogue.generation_prompt:
        yield from (START, Segment("assistant\n", "template"))
        if dialogue.reasoning.mode == "off":
            yield Segment("<think>\n\n</think>\n\n", "template")


def _asks(turn: Turn) -> bool:
    return turn.role == "user" and not all(isinstance(part, ToolResult) for part in turn.parts)


def _system(turns: list[tuple[int, Turn]], tools: tuple[ToolSpec, ...]) -> Iterator[Segment]:
    if not turns and not tools:
        return
    yield from (START, Segment("system\n", "template"))
    for place, (k, turn) in enumerate(turns):
        if place:
            yield Segment("\n\n", "template")
        yield from _texts(turn.parts, k)
    if tools:
        yield Segment("\n\n" * bool(turns) + BEFORE_TOOLS, "template")
        for tool in tools:
            yield NEWLINE
            yield Segment(_signature(tool), "client")
        yield Segment(AFTER_TOOLS, "template")
    yield from (END, NEWLINE)


def _signature(tool: ToolSpec) -> str:
    name = json.dumps(tool.name, ensure_ascii=False)
    description = json.dumps(tool.description or "", ensure_ascii=False)
    parameters = tool.parameters or '{"type": "object", "properties": {}}'
    function = f'{{"name": {name}, "description": {description}, "parameters": {parameters}}}'
    return f'{{"type": "function", "function": {function}}}'


def _user(turn: Turn, k: int) -> Iterator[Segment]:
    results = [(j, part) for j, part in enumerate(turn.parts) if isinstance(part, ToolResult)]
    for place, (j, part) in enumerate(results):
        yield Segment("\n" * bool(place) + "<tool_response>\n", "template")
        for inner in part.parts:
            yield Segment(text_of(inner, k), "client", k, j)
        yield Segment("\n</tool_response>", "template")
    rest = [part for part in turn.parts if not isinstance(part, ToolResult)]
    if results and rest:
        yield NEWLINE
    yield from _texts(turn.parts, k)


def _assistant(turn: Turn, k: int, *, shows_reasoning: bool) -> Iterator[Segment]:
    yield from (START, Segment("assistant\n", "template"))
    thoughts = [(j, p) for j, p in enumerate(turn.parts) if isinstance(p, Reasoning) and p.text]
    if thoughts and shows_reasoning:
        yield Segment("<think>\n", "template")
        for j, thought in thoughts:
            yield Segment(thought.text, "client", k, j)
        yield Segment("\n</think>\n\n", "template")
    has_text = any(isinstance(part, Text) and part.text for part in turn.parts)
    yield from _texts(turn.parts, k)
    calls = [(j, part) for j, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
    for place, (j, call) in enumerate(calls):
        name = json.dumps(call.name, ensure_ascii=False)
        before = "\n" * bool(place or has_text) + "<tool_call>\n"
        yield Segment(before, "template")
        yield Segment(f'{{"name": {name}, "arguments": {call.arguments or "{}"}}}', "client", k, j)
        yield Segment("\n</tool_call>", "template")


def _texts(parts: tuple[Part, ...], turn: int) -> Iterator[Segment]:
    for j, part in enumerate(parts):
        if not isinstance(part, (Reasoning, ToolCall, ToolResult)):
            yield Segment(text_of(part, turn), "client", turn, j)
