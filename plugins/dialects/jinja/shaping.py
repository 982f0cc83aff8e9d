"""Bends a list of messages to a template: system text, neighbours of one role, call ids."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from tokenwire.plugins.dialects.jinja.habits import Habits, Message

__all__ = ("join", "merge_roles", "place_systems", "shorten_ids")

ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def join(first: Any, second: Any, joiner: str) -> Any:
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


def place_systems(messages: list[Message], habits: Habits) -> list[Message]:
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
        content = join(content, system["content"], "\n\n")
    if habits.takes_system:
        return [{**systems[0], "content": content}, *others]
    for k, message in enumerate(others):
        if message["role"] == "user":
            head = {**message, "content": join(content, message["content"], "\n\n")}
            return [*others[:k], head, *others[k + 1 :]]
    return [{"role": "user", "content": content}, *others]


def merge_roles(messages: list[Message], habits: Habits) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last is None or last["role"] != message["role"] or message["role"] == "tool":
            merged.append(message)
            continue
        both = {**last, **message}
        both["content"] = join(last["content"], message["content"], habits.joiner)
        calls = [*last.get("tool_calls", ()), *message.get("tool_calls", ())]
        if calls:
            both["tool_calls"] = calls
        merged[-1] = both
    return merged


def shorten_ids(messages: list[Message]) -> None:
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
