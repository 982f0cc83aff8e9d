"""Template `deepseek_v41`: prompts of DeepSeek V4.1. Equal to its makers' renderer, to the letter.

System text stands where it was said; the tools stand with the first of it. Reasoning of earlier
turns is shown only where there are tools, or where the last turn is one to go on with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.plugins.dialects.deepseek.json_text import load, plain_float, spaced
from tokenwire.plugins.dialects.deepseek.spelling import (
    ASSISTANT,
    BOS,
    EOS,
    REMINDER,
    SYSTEM,
    THINK,
    THINK_END,
    USER,
    V41,
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
    MORE_TOOLS,
    SCHEMA,
    effort_score,
    tools_header,
)

__all__ = ("DeepseekV41Template",)

CALLS: Final = CallWriter(V41, plain_float, empty="\n")
TOOLS: Final = tools_header(V41)
SYSTEMS: Final = ("system", "developer")
USERS: Final = ("user", "result")


@final
class DeepseekV41Template(Template):
    """Thinks unless told not to; the effort is high unless told otherwise."""

    source = "deepseek_v41 1"

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
        self._messages = read_messages(dialogue)

    def pieces(self) -> Iterator[str]:
        messages = self._messages
        first = messages[0] if messages and messages[0].kind in SYSTEMS else None
        yield from self._head(first)
        at = 0 if first is None else 1
        calls: Message | None = None
        goes_on = False
        while at < len(messages):
            message = messages[at]
            at += 1
            if message.kind in USERS:
                start = at - 1
                while at < len(messages) and messages[at].kind in USERS:
                    at += 1
                yield USER + "\n\n".join(_block(messages[start:at], calls))
            elif message.kind == "assistant":
                goes_on = at == len(messages) and self._dialogue.continue_final
                calls = message if message.calls else calls
                yield from self._assistant(message, goes_on=goes_on)
            elif message.kind == "reminder":
                yield REMINDER + message.text
            else:
                yield f"{SYSTEM}{message.text}{self._added(message)}"
        if not goes_on:
            yield ASSISTANT + (THINK if self._thinks else THINK_END)
        if self._tools and opens_calls(self._dialogue):
            yield CALLS.begin

    def _head(self, first: Message | None) -> Iterator[str]:
        yield BOS
        wanted = self._dialogue.response_format
        schema = _schema(wanted.kind, wanted.text)
        if not (first or self._tools or schema or (self._thinks and self._messages)):
            return
        yield SYSTEM
        if self._thinks:
            yield effort_score(effort_of(self._dialogue))
        if first is not None:
            yield first.text
        if self._tools:
            # Why: tools that are loaded later stand where they are added.
            shown = [t for t in self._tools if t.extra.get("defer_loading") is not True]
            lines = "\n".join(signature(tool, plain_float) for tool in shown)
            yield f"\n\n{TOOLS}{lines}\n{AFTER_TOOLS}"
        if schema:
            yield f"\n\n{SCHEMA}{schema}"
        if first is not None:
            yield self._added(first)

    def _added(self, message: Message) -> str:
        if not message.added:
            return ""
        tools = {tool.name: tool for tool in self._tools}
        lines = [signature(tools[name], plain_float) for name in message.added if name in tools]
        return MORE_TOOLS + "\n".join(lines) if lines else ""

    def _assistant(self, message: Message, *, goes_on: bool) -> Iterator[str]:
        yield ASSISTANT
        if self._thinks and (self._tools or goes_on):
            yield THINK + message.reasoning
            # Why: what goes on with nothing visible goes on thinking.
            if message.text or message.calls or not goes_on:
                yield THINK_END
        else:
            yield THINK_END
        yield message.text
        if message.calls:
            yield CALLS.section(message.calls)
        if not goes_on:
            yield EOS


def _block(messages: list[Message], calls: Message | None) -> Iterator[str]:
    """One user turn: what was said, and the results in the order of the calls they answer."""
    places: dict[str, int] = {}
    for place, call in enumerate(calls.calls if calls else ()):
        places.setdefault(call.id, place)
    results = [message for message in messages if message.kind == "result"]
    in_order = iter(sorted(results, key=lambda result: places.get(result.call_id, 0)))
    for message in messages:
        if message.kind == "result":
            yield f"<tool_result>{next(in_order).text}</tool_result>"
        else:
            yield message.text


def _schema(kind: str, text: str | None) -> str:
    if kind == "json_object":
        return '{"type": "json_object"}'
    if kind != "json_schema" or text is None:
        return ""
    try:
        return spaced(load(text), plain_float)
    except ValueError as error:
        raise RequestError(
            f"response_format: wanted a JSON Schema, got text that is no JSON ({error})"
        ) from error
