"""Free-form ("custom") tools for models that only know functions: asked as one, read back as text.

To the model a custom tool is a function with one string argument, `input`; what it writes for a
call is `{"input": "..."}`, which `FreeInput` turns into the plain text inside as it comes. Knows no
protocol and no dialect.
"""

from __future__ import annotations

import re
from typing import Final, final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.dialogue import Dialogue, Part, ToolCall, ToolSpec

__all__ = ("FreeInput", "FreeInputState", "as_functions")

PARAMETERS: Final = (
    '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],'
    '"additionalProperties":false}'
)
HEAD: Final = re.compile(r'\s*\{\s*"input"\s*:\s*"')
HEAD_TOKENS: Final = ("{", '"input"', ":", '"')
LONGEST_HEAD: Final = 256
"""Characters after which held text is no head, however it may go on: white space is endless."""
PLAIN: Final = re.compile(r'[^"\\]+')
TAIL: Final = re.compile(r"\s*\}?\s*")
ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
UNICODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")

_encode: Final = msgspec.json.Encoder().encode


def as_functions(dialogue: Dialogue) -> Dialogue:
    """The dialogue as templates are to see it: custom tools, and calls of them, as functions."""
    customs = any(tool.custom for tool in dialogue.tools)
    called = any(
        isinstance(part, ToolCall) and part.custom for turn in dialogue.turns for part in turn.parts
    )
    if not customs and not called:
        return dialogue
    tools = tuple(_function(tool) if tool.custom else tool for tool in dialogue.tools)
    turns = dialogue.turns
    if called:
        turns = tuple(replace(turn, parts=tuple(map(_plain, turn.parts))) for turn in turns)
    return replace(dialogue, tools=tools, turns=turns)


def _function(tool: ToolSpec) -> ToolSpec:
    description = tool.description
    if (grammar := tool.grammar) is not None:
        # Why in words: a grammar inside a JSON string is no grammar that engines take.
        must = f"The input must match this {grammar.syntax} grammar:\n{grammar.text}"
        description = f"{description}\n\n{must}" if description else must
    return ToolSpec(tool.name, description, PARAMETERS, extra=tool.extra)


def _plain(part: Part) -> Part:
    if not isinstance(part, ToolCall) or not part.custom:
        return part
    arguments = _encode({"input": part.arguments}).decode()
    return replace(part, arguments=arguments, custom=False)


class FreeInputState(Struct, frozen=True, array_like=True):
    """A reader between two pieces."""

    place: str
    held: str


@final
class FreeInput:
    """`push` a call's arguments as they come, then `flush`; the texts together are the input.

    Any cutting gives the same text. What is not of that shape is passed on as it stands, from the
    first character on, or from behind the string where only its end is not; escapes that stand for
    no character stay as they were written. What is held back is at most a head or one escape.
    """

    __slots__ = ("_held", "_place")

    def __init__(self) -> None:
        self._place = "head"  # then "string", "tail"; or "raw" for the rest
        self._held = ""

    def push(self, text: str) -> str:
        text, self._held = self._held + text, ""
        if self._place == "head":
            found = HEAD.match(text)
            if found is None:
                if _may_be_head(text):
                    self._held = text
                    return ""
                self._place = "raw"
                return text
            self._place, text = "string", text[found.end() :]
        if self._place == "string":
            return self._string(text)
        return self._tail(text) if self._place == "tail" else text

    def flush(self) -> str:
        """What was held back and is no more of that shape."""
        held, self._held = self._held, ""
        place, self._place = self._place, "raw"
        # Why: a whole tail is the call's own writing, and half of one is a call that was cut off.
        return "" if place == "tail" else held

    def _string(self, text: str) -> str:
        out: list[str] = []
        at = 0
        while at < len(text):
            if found := PLAIN.match(text, at):
                out.append(found.group())
                at = found.end()
            elif text[at] == '"':
                self._place = "tail"
                return "".join(out) + self._tail(text[at + 1 :])
            else:
                plain, end = _escape(text, at)
                if plain is None:
                    self._held = text[at:]
                    break
                out.append(plain)
                at = end
        return "".join(out)

    def _tail(self, text: str) -> str:
        found = TAIL.match(text)
        assert found is not None  # It matches the empty string.
        if found.end() == len(text):
            self._held = text[-LONGEST_HEAD:]
            return ""
        self._place = "raw"
        return text

    def save(self) -> FreeInputState:
        return FreeInputState(self._place, self._held)

    def restore(self, state: FreeInputState) -> None:
        self._place, self._held = state.place, state.held


def _may_be_head(text: str) -> bool:
    """Whether more text could make it a head."""
    if len(text) > LONGEST_HEAD:
        return False
    rest = text.lstrip()
    for token in HEAD_TOKENS:
        if len(rest) <= len(token):
            return token.startswith(rest)
        if not rest.startswith(token):
            return False
        rest = rest[len(token) :].lstrip() if token != '"' else rest[1:]
    return False


def _escape(text: str, at: int) -> tuple[str | None, int]:
    """The character(s) that the escape at `at` stands for, and its end; None: there is more."""
    if at + 1 == len(text):
        return None, at
    letter = text[at + 1]
    if letter != "u":
        return ESCAPES.get(letter, text[at : at + 2]), at + 2
    first = UNICODE.match(text, at)
    if first is None:
        whole = text[at + 2 : at + 6]
        if len(whole) < 4 and all(c in "0123456789abcdefABCDEF" for c in whole):
            return None, at
        return "\\u", at + 2
    code = int(first[1], 16)
    if not 0xD800 <= code < 0xE000:
        return chr(code), at + 6
    if code >= 0xDC00:
        return first.group(), at + 6
    return _pair(text, at, code)


def _pair(text: str, at: int, high: int) -> tuple[str | None, int]:
    """A high surrogate with the low one behind it; alone it stays as it was written."""
    second = text[at + 6 : at + 12]
    found = UNICODE.match(second)
    if found is not None and 0xDC00 <= (low := int(found[1], 16)) < 0xE000:
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), at + 12
    could_come = len(second) < 6 and re.fullmatch(r"\\?|\\u[0-9a-fA-F]{0,3}", second)
    if found is None and could_come:
        return None, at
    return text[at : at + 6], at + 6
