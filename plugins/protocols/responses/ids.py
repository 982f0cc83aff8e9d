"""Ids: a response's, and those of its items, which tell to which response they belong. Pure."""

from __future__ import annotations

import re
from typing import Final

from tokenwire.core.wire import Stamp

__all__ = ("PREFIXES", "call_id", "input_id", "item_id", "response_id", "response_of")

TOKEN: Final = 24
PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
}
OWNED: Final = re.compile(r"[a-z]+_([0-9A-Za-z]{24})i?[0-9]{4,}")


def response_id(stamp: Stamp) -> str:
    return f"resp_{stamp.token(0, TOKEN)}"


def item_id(stamp: Stamp, kind: str, index: int) -> str:
    """Of the output item at `index`."""
    return f"{PREFIXES[kind]}_{stamp.token(0, TOKEN)}{index:04}"


def input_id(stamp: Stamp, kind: object, index: int) -> str:
    """Of an input item that came without one."""
    prefix = PREFIXES.get(kind, "item") if isinstance(kind, str) else "item"
    return f"{prefix}_{stamp.token(0, TOKEN)}i{index:04}"


def call_id(stamp: Stamp, index: int) -> str:
    return f"call_{stamp.token(1 + index, TOKEN)}"


def response_of(item: str) -> str:
    """The response that an item's id belongs to; of a foreign id one that nobody has."""
    found = OWNED.fullmatch(item)
    return f"resp_{found[1]}" if found else ""
