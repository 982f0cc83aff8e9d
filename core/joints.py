"""Where a template writes client words straight behind its own, so that both may spell a marker.

A template that writes `<`, a key of a tool's schema and `>` lets a client spell `<tool_call>` with
the key `tool_call`. Found once a model, by rendering words that no template has. Knows no dialect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import count
from typing import Final, TypeAlias

from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import Template

__all__ = ("Joint", "joints")

Joint: TypeAlias = tuple[str, str]
"""The beginning of a spelling, behind which client text stands, and what stands behind that."""
WORD: Final = re.compile("zq[0-9]+qz")


def joints(template: Template, spellings: Collection[str]) -> frozenset[Joint]:
    """Of `spellings`, as far as the template writes any words of ours."""
    longest = max(map(len, spellings), default=0)
    begins = {text[:length] for text in spellings for length in range(1, len(text))}
    found: set[Joint] = set()
    for dialogue in _dialogues():
        with suppress(RequestError):
            text = template.render(dialogue, 0.0).text
            for match in WORD.finditer(text):
                start, end = match.span()
                before = text[max(start - longest, 0) : start]
                after = text[end : end + longest]
                found |= {
                    (before[at:], after) for at in range(len(before)) if before[at:] in begins
                }
    return frozenset(found)


def _dialogues() -> Iterator[Dialogue]:
    """With words in all places; then without those that templates refuse."""
    words = (f"zq{number}qz" for number in count())

    def text() -> Text:
        return Text(next(words))

    def value() -> dict[str, object]:
        inner = {next(words): next(words), "title": next(words), "enum": [next(words)]}
        held = {"type": "object", "properties": {next(words): inner}, "required": [next(words)]}
        return {**inner, "type": "object", "properties": {next(words): {**inner, **held}}}

    def call(name: str) -> ToolCall:
        given = {next(words): next(words), next(words): {next(words): [next(words), [next(words)]]}}
        return ToolCall("call00001", name, json.dumps(given))

    tools = tuple(ToolSpec(next(words), next(words), json.dumps(value())) for _ in "ab")
    name = tools[0].name
    asked, said = Turn("user", (text(),)), Turn("assistant", (text(),))
    called = Turn("assistant", (call(name), call(name)))
    result = Turn("tool", (ToolResult("call00001", (text(),), name=name),))
    second = Turn("tool", (ToolResult("call00001", (text(), text()), name=next(words)),))
    thought = Turn("assistant", (Reasoning(next(words)), text(), call(name)))
    system, named = Turn("system", (text(),)), Turn("user", (text(), text()), name=next(words))
    yield Dialogue((system, named, called, result, second, said, asked, thought, result), tools)
    yield Dialogue((asked, Turn("assistant", (call(name),)), result, said, asked), tools)
    yield Dialogue((asked, said, asked))
