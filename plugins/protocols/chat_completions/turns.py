"""Messages to turns: who said what, calls and results in order. Knows no sampling, no tools."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tokenwire.core.dialogue import Part, Reasoning, Text, ToolCall, ToolResult, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import check_depth
from tokenwire.plugins.protocols.chat_completions.parts import read_content
from tokenwire.plugins.protocols.chat_completions.schema import (
    MESSAGE_FIELDS,
    CalledCustom,
    CalledFunction,
    Message,
    ToolCallField,
)

__all__ = ("read_turns",)

CALL_FIELDS: Final = frozenset(ToolCallField.__struct_fields__)
FUNCTION_FIELDS: Final = frozenset(CalledFunction.__struct_fields__)
CALLED_FIELDS: Final = (
    ("function", FUNCTION_FIELDS),
    ("custom", frozenset(CalledCustom.__struct_fields__)),
)
PLAIN: Final = frozenset(("role", "content"))
PLAIN_ROLES: Final = frozenset(("system", "developer", "user"))

_arguments: Final = msgspec.json.Decoder(dict[str, object])


def read_turns(
    raw: list[dict[str, object]], messages: list[Message], ignored: Ignored
) -> tuple[Turn, ...]:
    """One turn a message. `raw` holds the same messages untyped, for the fields we do not know."""
    reader = _Reader(ignored)
    turns: list[Turn] = []
    for k, (message, given) in enumerate(zip(messages, raw, strict=True)):
        role, content = message.role, message.content
        # Why first: most turns of a long history are a role and a text, and nothing else.
        if given.keys() == PLAIN and type(content) is str and role in PLAIN_ROLES:
            turns.append(Turn(role, (Text(content),)))  # type: ignore[arg-type]
        else:
            turns.append(reader.turn(message, given, k))
    return tuple(turns)


class _Reader:
    """Remembers which calls were made, since a result must answer one of them."""

    __slots__ = ("_called", "_ignored", "_legacy")

    def __init__(self, ignored: Ignored) -> None:
        self._ignored = ignored
        self._called: dict[str, str] = {}
        self._legacy: dict[str, str] = {}

    def turn(self, message: Message, given: dict[str, object], k: int) -> Turn:
        extra = self._ignored.unknown(given, MESSAGE_FIELDS, "messages[]")
        match message.role:
            case "assistant":
                return Turn("assistant", self._assistant(message, given, k), message.name, extra)
            case "tool" | "function":
                return Turn("tool", (self._result(message, f"messages[{k}]"),), extra=extra)
            case role:
                at = f"messages[{k}]"
                parts = read_content(message.content, f"{at}.content", self._ignored)
                if not parts:
                    raise RequestError(
                        f"{at}.content must be a string or a list of at least one part",
                        param=f"{at}.content",
                        code="missing_field",
                    )
                return Turn(role, parts, message.name, extra)

    def _assistant(self, message: Message, given: dict[str, object], k: int) -> tuple[Part, ...]:
        parts: list[Part] = []
        if reasoning := message.reasoning_content or message.reasoning:
            parts.append(Reasoning(reasoning))
        # Why: null, "", [] and no content at all must give the same prompt.
        if type(message.content) is str:
            if message.content:
                parts.append(Text(message.content))
        else:
            for part in read_content(message.content, f"messages[{k}].content", self._ignored):
                if not (isinstance(part, Text) and not part.text):
                    parts.append(part)
        if message.refusal and len(parts) == (1 if reasoning else 0):
            parts.append(Text(message.refusal))
        if message.tool_calls:
            for number, call in enumerate(message.tool_calls):
                at = f"messages[{k}].tool_calls[{number}]"
                parts.append(self._call(call, given, number, at))
        if message.function_call is not None:
            inner: Any = given["function_call"]
            self._ignored.unknown(inner, FUNCTION_FIELDS, "messages[].function_call")
            parts.append(self._legacy_call(message.function_call, f"messages[{k}]"))
        return tuple(parts)

    def _call(
        self, call: ToolCallField, given: dict[str, object], number: int, at: str
    ) -> ToolCall:
        extra = _call_keys(_item(given, number), self._ignored)
        if call.custom is not None and call.type != "function":
            self._called[call.id] = call.custom.name
            return ToolCall(call.id, call.custom.name, call.custom.input, custom=True, extra=extra)
        if call.function is None:
            raise RequestError(
                f"{at}.function is missing", param=f"{at}.function", code="missing_field"
            )
        self._called[call.id] = call.function.name
        arguments = self._argument_text(call.function, f"{at}.function.arguments")
        return ToolCall(call.id, call.function.name, arguments, extra=extra)

    def _legacy_call(self, call: CalledFunction, at: str) -> ToolCall:
        """`function_call`, which tool_calls replaced: it has no id, so it gets one."""
        id_ = f"call_{len(self._called)}"
        self._called[id_] = call.name
        self._legacy[call.name] = id_
        return ToolCall(id_, call.name, self._argument_text(call, f"{at}.function_call.arguments"))

    def _argument_text(self, call: CalledFunction, at: str) -> str:
        """As it was written. What is not a JSON object is kept, and noted."""
        if not isinstance(call.arguments, str):
            return msgspec.json.encode(call.arguments or {}).decode()
        check_depth(call.arguments, param=at)
        try:
            _arguments.decode(call.arguments)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            self._ignored.add(at)
        return call.arguments

    def _result(self, message: Message, at: str) -> ToolResult:
        id_ = message.tool_call_id
        if message.role == "function":
            id_ = self._legacy.get(message.name or "")
        if id_ is None:
            raise RequestError(
                f"{at}.tool_call_id is missing: it names the call that this message answers",
                param=f"{at}.tool_call_id",
                code="missing_field",
            )
        name = self._called.get(id_)
        if name is None:
            raise RequestError(
                f"{at}.tool_call_id {id_[:64]!r} answers no earlier call: the tool_calls of an"
                " assistant message before it must hold that id",
                param=f"{at}.tool_call_id",
                code="unknown_tool_call",
            )
        content = message.content
        if type(content) is str:
            return ToolResult(id_, (Text(content),), name=message.name or name)
        parts = read_content(content, f"{at}.content", self._ignored)
        return ToolResult(id_, parts, name=message.name or name)


def _call_keys(item: dict[str, object], ignored: Ignored) -> dict[str, object]:
    """What a call has beside the known fields; what stands inside it is listed alone."""
    for name, known in CALLED_FIELDS:
        if isinstance(inner := item.get(name), dict):
            ignored.unknown(inner, known, f"messages[].tool_calls[].{name}")
    return ignored.unknown(item, CALL_FIELDS, "messages[].tool_calls[]")


def _item(given: dict[str, object], k: int) -> dict[str, object]:
    calls = given["tool_calls"]
    assert isinstance(calls, list)
    item: dict[str, object] = calls[k]
    return item
