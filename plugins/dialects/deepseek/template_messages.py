"""A dialogue as the flat list of messages that DeepSeek V4 prompts are made of. Renders none of
them.

A message is the system's, the developer's, the user's, one tool's result, the assistant's, or a
reminder. Parts of a turn are joined by an empty line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.dialogue import (
    Dialogue,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.plugins.dialects._shared.client_text import text_of

__all__ = ("Effort", "Kind", "Message", "effort_of", "is_thinking", "read_messages", "shown_tools")

Kind: TypeAlias = Literal["system", "developer", "user", "result", "assistant", "reminder"]
Effort: TypeAlias = Literal["low", "high", "max"]
JOINER = "\n\n"


class Message(Struct, frozen=True):
    kind: Kind
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    """Of the call that a result answers."""
    added: tuple[str, ...] = ()
    """Names of tools that a system message brings into the conversation."""


def read_messages(dialogue: Dialogue) -> list[Message]:
    """Raises RequestError for media."""
    messages: list[Message] = []
    for index, turn in enumerate(dialogue.turns):
        if turn.role == "assistant":
            messages.append(_assistant(turn, index))
        elif len(turn.parts) == 1 and type(part := turn.parts[0]) is Text and not turn.extra:
            # Why: most turns are so, and need no more.
            messages.append(Message("user" if turn.role == "tool" else turn.role, part.text))
        else:
            messages.extend(_others(turn, index))
    return messages


def _assistant(turn: Turn, index: int) -> Message:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for part in turn.parts:
        match part:
            case ToolCall():
                calls.append(part)
            case Reasoning():
                if part.redacted is None:
                    thoughts.append(part.text)
            case Opaque() | ToolResult():
                pass
            case _:
                texts.append(text_of(part, index))
    return Message("assistant", JOINER.join(texts), JOINER.join(thoughts), tuple(calls))


def _others(turn: Turn, index: int) -> Iterator[Message]:
    kind: Kind = "user" if turn.role == "tool" else turn.role
    if turn.extra.get("role") == "latest_reminder":
        kind = "reminder"
    said: list[Part] = []
    for part in turn.parts:
        if not isinstance(part, ToolResult):
            said.append(part)
            continue
        if said:
            yield _said(kind, said, index)
            said = []
        yield Message("result", _text(part.parts, index), call_id=part.call_id)
    if said or not turn.parts:
        yield _said(kind, said, index)


def _said(kind: Kind, parts: list[Part], index: int) -> Message:
    added = tuple(name for part in parts if isinstance(part, Opaque) and (name := _added(part)))
    return Message(kind, _text(parts, index), added=added)


def _added(block: Opaque) -> str:
    """The name of the tool that a `tool_addition` block refers to."""
    tool = block.value.get("tool") if block.kind == "tool_addition" else None
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def _text(parts: Sequence[Part], index: int) -> str:
    if len(parts) == 1 and type(parts[0]) is Text:
        return parts[0].text
    return JOINER.join(
        text_of(part, index)
        for part in parts
        if not isinstance(part, (Opaque, Reasoning, ToolCall, ToolResult))
    )


def is_thinking(dialogue: Dialogue) -> bool:
    """Unless switched off: by the template's own arguments, the mode, or an effort of none."""
    for name in ("thinking", "enable_thinking"):
        value = dialogue.template_args.get(name)
        if isinstance(value, bool):
            return value
    settings = dialogue.reasoning
    return settings.mode != "off" and not (settings.mode is None and settings.effort == "none")


def effort_of(dialogue: Dialogue) -> Effort:
    """Of the three that the models know, the one nearest to what was asked for."""
    match dialogue.template_args.get("reasoning_effort", dialogue.reasoning.effort):
        case "minimal" | "low":
            return "low"
        case "max":
            return "max"
        case _:
            return "high"


def shown_tools(dialogue: Dialogue) -> tuple[ToolSpec, ...]:
    """None with tool_choice none; the one that must be called where one is named."""
    choice = dialogue.tool_choice
    if choice.mode == "none":
        return ()
    if choice.mode == "named":
        return tuple(tool for tool in dialogue.tools if tool.name in choice.names)
    return dialogue.tools
