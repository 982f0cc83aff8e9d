"""A dialogue as the list of dicts that chat templates read. Knows no Jinja.

The shape is the one that transformers documents: `content` a string (or a list of parts where media
or the template ask for it), `tool_calls` with arguments as a dict, `tool` messages, one a result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.dialogue import (
    Audio,
    ClientPart,
    Dialogue,
    Document,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import RequestError

__all__ = ("Habits", "Message", "to_messages", "to_tools")

Message: TypeAlias = dict[str, Any]
ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Habits(Struct, frozen=True):
    """What a template can take; found by probe.py, bent by settings and retries."""

    joiner: str = "\n"
    """Between text parts that become one string."""
    takes_strings: bool = True
    """False: content must be a list of parts."""
    media: frozenset[str] = frozenset({"image", "audio", "document"})
    """Kinds of media parts that leave a trace in the prompt."""
    roles: Mapping[str, str] = {}
    """Renames: {"developer": "system"} where the template does not know developer."""
    takes_system: bool = True
    """False: system text goes to the head of the first user message."""
    takes_several_systems: bool = True
    takes_late_systems: bool = True
    merges_system: bool = False
    """True: all system text is joined at the front."""
    takes_calls: bool = True
    """False: calls of the history are written out as text."""
    wants_null_content: bool = False
    """True: calls are seen only in a message whose content is None, so text gets one of its own."""
    takes_results: bool = True
    """False: tool results become user messages."""
    no_tools: tuple[Message, ...] | None = None
    """What the variable `tools` holds when there are none."""
    merges_roles: bool = False
    """True: neighbours of the same role become one message."""
    short_ids: bool = False
    """True: call ids become nine letters and digits, the same for call and result."""
    raw_arguments: bool = False
    """True: arguments that are no JSON object become {"raw": text} instead of the text itself."""


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
    """Raises RequestError for media that the template would drop."""
    names = {p.id: p.name for turn in dialogue.turns for p in turn.parts if isinstance(p, ToolCall)}
    messages: list[Message] = []
    for index, turn in enumerate(dialogue.turns):
        messages.extend(_turn(turn, index, names, habits))
    if habits.short_ids:
        _shorten_ids(messages)
    messages = _place_systems(messages, habits)
    if habits.merges_roles:
        messages = _merge_roles(messages, habits)
    return messages


def _turn(turn: Turn, index: int, names: Mapping[str, str], habits: Habits) -> Iterator[Message]:
    role = habits.roles.get(turn.role, turn.role)
    results = [part for part in turn.parts if isinstance(part, ToolResult)]
    for result in results:
        yield _result(result, index, names, habits)
    rest = tuple(part for part in turn.parts if not isinstance(part, ToolResult))
    if not rest and results:
        return
    message: Message = {"role": role}
    visible = [part for part in rest if isinstance(part, (Text, Image, Audio, Document, Opaque))]
    message["content"] = _content(visible, f"turns[{index}]", habits)
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
        message["content"] = _join(message["content"], written, "\n")
    yield message


def _result(result: ToolResult, index: int, names: Mapping[str, str], habits: Habits) -> Message:
    content = _content(result.parts, f"turns[{index}]", habits)
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


def _content(parts: Iterable[ClientPart], where: str, habits: Habits) -> Any:
    items = [item for part in parts if (item := _item(part, where, habits))]
    if habits.takes_strings and all(item["type"] == "text" for item in items):
        return habits.joiner.join(item["text"] for item in items)
    return items


def _item(part: ClientPart, where: str, habits: Habits) -> Message | None:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Document(text=str(text), title=title):
            return {"type": "text", "text": f"{title}\n{text}" if title else text}
        case Image():
            kind = "image"
        case Audio():
            kind = "audio"
        case Document():
            kind = "document"
        case Opaque():
            return None
    if kind not in habits.media:
        raise RequestError(
            f"{where}: this model's chat template takes no {kind} parts", param=where
        )
    return {"type": kind}


def _join(first: Any, second: Any, joiner: str) -> Any:
    """Two contents as one, whichever of the two shapes they have."""
    if not isinstance(first, list) and not isinstance(second, list):
        return joiner.join(text for text in (first, second) if text)
    as_parts = [
        content
        if isinstance(content, list)
        else [{"type": "text", "text": content}] * bool(content)
        for content in (first, second)
    ]
    return as_parts[0] + as_parts[1]


def _place_systems(messages: list[Message], habits: Habits) -> list[Message]:
    systems = [m for m in messages if m["role"] in ("system", "developer")]
    if not systems:
        return messages
    others = [m for m in messages if m["role"] not in ("system", "developer")]
    leading = next((k for k, m in enumerate(messages) if m not in systems), len(messages))
    merges = (
        habits.merges_system
        or not habits.takes_system
        or (len(systems) > 1 and not habits.takes_several_systems)
        or (leading < len(systems) and not habits.takes_late_systems)
    )
    if not merges:
        return messages
    content: Any = ""
    for system in systems:
        content = _join(content, system["content"], "\n\n")
    if habits.takes_system:
        return [{**systems[0], "content": content}, *others]
    for k, message in enumerate(others):
        if message["role"] == "user":
            head = {**message, "content": _join(content, message["content"], "\n\n")}
            return [*others[:k], head, *others[k + 1 :]]
    return [{"role": "user", "content": content}, *others]


def _merge_roles(messages: list[Message], habits: Habits) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last is None or last["role"] != message["role"] or message["role"] == "tool":
            merged.append(message)
            continue
        both = {**last, **message}
        both["content"] = _join(last["content"], message["content"], habits.joiner)
        calls = [*last.get("tool_calls", ()), *message.get("tool_calls", ())]
        if calls:
            both["tool_calls"] = calls
        merged[-1] = both
    return merged


def _shorten_ids(messages: list[Message]) -> None:
    short: dict[str, str] = {}

    def shorten(id: str) -> str:
        if id not in short:
            number = int.from_bytes(hashlib.sha256(id.encode(errors="replace")).digest())
            while True:
                digits, rest = "", number
                for _ in range(9):
                    rest, digit = divmod(rest, len(ALPHABET))
                    digits += ALPHABET[digit]
                if digits not in short.values():
                    break
                number += 1
            short[id] = digits
        return short[id]

    for message in messages:
        for call in message.get("tool_calls", ()):
            call["id"] = shorten(call["id"])
        if "tool_call_id" in message:
            message["tool_call_id"] = shorten(message["tool_call_id"])


def with_front_systems(habits: Habits) -> Habits:
    """`merge_system: front`."""
    return replace(habits, merges_system=True)
