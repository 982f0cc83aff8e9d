"""A dialogue as the list of dicts that chat templates read. Knows no Jinja.

The shape is the one that transformers documents: `content` a string (or a list of parts where
the template asks for it), `tool_calls` with arguments as a dict, `tool` messages, one a result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tokenwire.core.dialogue import (
    ClientPart,
    Dialogue,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.plugins.dialects._shared.client_text import text_of
from tokenwire.plugins.dialects.jinja.habits import Habits, Message
from tokenwire.plugins.dialects.jinja.shaping import join, merge_roles, place_systems, shorten_ids

__all__ = ("to_messages", "to_tools")


def to_tools(tools: Sequence[ToolSpec], habits: Habits) -> list[Message] | None:
    """Tools as JSON Schema dicts; what the template takes for none when there are none."""
    if not tools:
        return None if habits.no_tools is None else list(habits.no_tools)
    return [_tool(tool) for tool in tools]


def _tool(tool: ToolSpec) -> Message:
    function: Message = {"name": tool.name, "description": tool.description or ""}
    if tool.custom:
        text = {"type": "string"}
        function["parameters"] = {
            "type": "object", "properties": {"input": text}, "required": ["input"]
        }  # fmt: skip
    elif tool.parameters is not None:
        function["parameters"] = _schema(tool)
    else:
        function["parameters"] = {"type": "object", "properties": {}}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _schema(tool: ToolSpec) -> Any:
    try:
        return json.loads(tool.parameters or "{}")
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"tool {tool.name!r}: wanted a JSON Schema in parameters, got text that is not JSON"
        ) from error


def to_messages(dialogue: Dialogue, habits: Habits) -> list[Message]:
    """Raises RequestError for media."""
    names = {p.id: p.name for turn in dialogue.turns for p in turn.parts if isinstance(p, ToolCall)}
    messages: list[Message] = []
    for index, turn in enumerate(dialogue.turns):
        messages.extend(_turn(turn, index, names, habits))
    if habits.short_ids:
        shorten_ids(messages)
    messages = place_systems(messages, habits)
    if habits.merges_roles:
        messages = merge_roles(messages, habits)
    return messages


def _turn(turn: Turn, index: int, names: Mapping[str, str], habits: Habits) -> Iterator[Message]:
    role = habits.roles.get(turn.role, turn.role)
    if len(turn.parts) == 1 and type(only := turn.parts[0]) is Text:
        # Why first: most turns of a long history are one text.
        message: Message = {"role": role, "content": _content((only,), index, habits)}
        if turn.name:
            message["name"] = turn.name
        yield message
        return
    results = [part for part in turn.parts if isinstance(part, ToolResult)]
    for result in results:
        yield _result(result, index, names, habits)
    rest = tuple(part for part in turn.parts if not isinstance(part, ToolResult))
    if not rest and results:
        return
    message = {"role": role}
    visible = [part for part in rest if not isinstance(part, (Reasoning, ToolCall, ToolResult))]
    message["content"] = _content(visible, index, habits)
    if turn.name:
        message["name"] = turn.name
    reasoning = "".join(part.text for part in rest if isinstance(part, Reasoning))
    if reasoning:
        # Why twice: gpt-oss templates read `thinking`; transformers fills both.
        message["thinking"] = message["reasoning_content"] = reasoning
    calls = [part for part in rest if isinstance(part, ToolCall)]
    if calls and habits.takes_calls:
        if habits.wants_null_content:
            if message["content"]:
                yield message
            message = {"role": role, "content": None}
        message["tool_calls"] = [_call(call, habits) for call in calls]
    elif calls:
        written = "\n".join(_call_text(call) for call in calls)
        message["content"] = join(message["content"], written, "\n")
    yield message


def _result(result: ToolResult, index: int, names: Mapping[str, str], habits: Habits) -> Message:
    content = _content(result.parts, index, habits)
    if not habits.takes_results:
        return {"role": "user", "content": content}
    message: Message = {"role": "tool", "tool_call_id": result.call_id, "content": content}
    name = result.name or names.get(result.call_id)
    if name:
        message["name"] = name
    return message


def _call(call: ToolCall, habits: Habits) -> Message:
    function = {"name": call.name, "arguments": _arguments(call, habits)}
    return {"id": call.id, "type": "function", "function": function}


def _call_text(call: ToolCall) -> str:
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {call.arguments}}}'


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} does not fit a float")
    return number


def _arguments(call: ToolCall, habits: Habits) -> Any:
    """The dict that the text holds; text that holds none stays text, so that no history is lost."""
    if habits.wants_string_arguments:
        return call.arguments or "{}"
    if call.custom:
        return {"input": call.arguments}
    if call.arguments.strip() in ("", "null"):
        return {}
    try:
        value = json.loads(call.arguments, parse_float=_finite, parse_constant=_refuse_constant)
        if isinstance(value, dict):
            # Why: an escaped lone surrogate is JSON, but no text that could be tokenised.
            json.dumps(value, ensure_ascii=False).encode()
            return value
    except (ValueError, RecursionError):
        pass
    return {"raw": call.arguments} if habits.raw_arguments else call.arguments


def _content(parts: Iterable[ClientPart], turn: int, habits: Habits) -> Any:
    texts = [text_of(part, turn) for part in parts if not isinstance(part, Opaque)]
    if habits.takes_strings:
        return habits.joiner.join(texts)
    return [{"type": "text", "text": text} for text in texts]
