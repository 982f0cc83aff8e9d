"""Template `deepseek_v4`: prompts of DeepSeek V4. Equal to its makers' renderer, to the letter.

All system text stands at the front, with the tools. Reasoning of earlier turns is shown only where
there are tools, or where the last turn is one to go on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from msgspec.structs import replace

from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.plugins.dialects.deepseek.json_text import load, spaced, v4_float
from tokenwire.plugins.dialects.deepseek.spelling import (
    ASSISTANT,
    BOS,
    EOS,
    REMINDER,
    THINK,
    THINK_END,
    USER,
    V4,
)
from tokenwire.plugins.dialects.deepseek.template_calls import CallWriter, opens_calls, signature
from tokenwire.plugins.dialects.deepseek.template_messages import (
    Message,
    effort_of,
    is_thinking,
    read_messages,
    shown_tools,
)
from tokenwire.plugins.dialects.deepseek.template_words import (
    AFTER_TOOLS,
    JSON_ONLY,
    SCHEMA,
    V4_EFFORTS,
    tools_header,
)

__all__ = ("DeepseekV4Template",)

CALLS: Final = CallWriter(V4, v4_float, empty="")
TOOLS: Final = tools_header(V4)


@final
class DeepseekV4Template(Template):
    """Thinks unless told not to; the effort is high unless told otherwise."""

    source = "deepseek_v4 1"

    def render(self, dialogue: Dialogue, now: float) -> Segments:
        if not dialogue.turns:
            raise RequestError("a conversation needs at least one message")
        return Segments((Segment("".join(_Prompt(dialogue).pieces()), "unknown"),))


@final
class _Prompt:
    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self._thinks = is_thinking(dialogue)
        self._tools = shown_tools(dialogue)
        messages = read_messages(dialogue)
        self._system = [m.text for m in messages if m.kind == "system" and m.text]
        self._messages = _grouped([m for m in messages if m.kind != "system"])

    def pieces(self) -> Iterator[str]:
        yield from self._head()
        last = len(self._messages) - 1
        goes_on = False
        for index, message in enumerate(self._messages):
            match message.kind:
                case "assistant":
                    goes_on = index == last and self._dialogue.continue_final
                    yield from self._assistant(message, goes_on=goes_on)
                case "reminder":
                    yield REMINDER + message.text
                case _:
                    yield USER + message.text
        if not goes_on:
            yield ASSISTANT + (THINK if self._thinks else THINK_END)
        if self._tools and opens_calls(self._dialogue):
            yield CALLS.begin

    def _head(self) -> Iterator[str]:
        yield BOS
        if self._thinks:
            yield V4_EFFORTS[effort_of(self._dialogue)]
        yield "\n\n".join(self._system)
        if self._tools:
            yield f"\n\n{TOOLS}"
            for tool in self._tools:
                yield f"{signature(tool, v4_float)}\n"
            yield AFTER_TOOLS
        wanted = self._dialogue.response_format
        if wanted.kind == "json_object":
            yield f"\n\n{JSON_ONLY}"
        elif wanted.kind == "json_schema" and wanted.text is not None:
            yield f"\n\n{SCHEMA}{_schema(wanted.text)}"

    def _assistant(self, message: Message, *, goes_on: bool) -> Iterator[str]:
        yield ASSISTANT
        if self._thinks and (self._tools or goes_on):
            yield THINK + message.reasoning
            # Why: what goes on without visible text goes on thinking.
            if message.text or not goes_on:
                yield THINK_END
        else:
            yield THINK_END
        yield message.text
        if message.calls:
            yield CALLS.section(message.calls)
        if not goes_on:
            yield EOS


def _schema(text: str) -> str:
    try:
        return spaced(load(text), v4_float)
    except ValueError as error:
        raise RequestError(
            f"response_format: wanted a JSON Schema, got text that is no JSON ({error})"
        ) from error


def _grouped(messages: list[Message]) -> list[Message]:
    """Neighbours that share one user turn, as one message: the user's own, and results with what
    the user says behind them."""
    grouped: list[Message] = []
    for message in _in_order_of_calls(_said_once(messages)):
        kind, text = message.kind, message.text
        if kind == "result":
            text = f"<tool_result>{text}</tool_result>"
        if kind in ("user", "result") and grouped and grouped[-1].kind == "result":
            grouped[-1] = replace(grouped[-1], kind=kind, text=f"{grouped[-1].text}\n\n{text}")
        else:
            grouped.append(replace(message, text=text) if kind == "result" else message)
    return grouped


def _said_once(messages: list[Message]) -> Iterator[Message]:
    """Neighbouring messages of the user as one; empty ones leave no gap."""
    said: Message | None = None
    for message in messages:
        if message.kind not in ("user", "developer"):
            if said is not None:
                yield said
                said = None
            yield message
        elif said is None:
            said = message if message.kind == "user" else replace(message, kind="user")
        else:
            texts = [text for text in (said.text, message.text) if text]
            said = replace(said, text="\n\n".join(texts))
    if said is not None:
        yield said


def _in_order_of_calls(messages: Iterable[Message]) -> Iterator[Message]:
    """Results in the order of the calls that they answer."""
    results: list[Message] = []
    places: dict[str, int] = {}
    for message in messages:
        if message.kind == "result":
            results.append(message)
            continue
        if results:
            yield from sorted(results, key=lambda result: places.get(result.call_id, len(places)))
            results = []
        if message.calls:
            places = _places(message)
        yield message
    yield from sorted(results, key=lambda result: places.get(result.call_id, len(places)))


def _places(message: Message) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, call in enumerate(message.calls):
        places.setdefault(call.id, place)
    return places
