"""Messages to turns: who said what, calls and results in order. Knows no sampling, no tools."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from tokenwire.core.dialogue import ClientPart, Part, Reasoning, Text, ToolCall, ToolResult, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import check_depth
from tokenwire.plugins.protocols.chat_completions.parts import read_content, read_said
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
USUAL: Final = ("id", "type", "function")
USUAL_INSIDE: Final = ("name", "arguments")
"""The keys of a call and of its function as nearly all clients send them: none is to be listed."""
PLAIN_ROLES: Final = frozenset(("system", "developer", "user"))

Scalar: TypeAlias = str | int | float | bool | None
Shallow: TypeAlias = Scalar | list[Scalar] | dict[str, Scalar]

_shallow: Final = msgspec.json.Decoder(dict[str, Shallow])
_arguments: Final = msgspec.json.Decoder(dict[str, object])


def read_turns(
    raw: list[dict[str, object]], messages: list[Message], ignored: Ignored
) -> tuple[Turn, ...]:
    """One turn a message. `raw` holds the same messages untyped, for the fields we do not know."""
    reader = _Reader(ignored)
    turns: list[Turn] = []
    # Why one look at all: histories are long, and clients that send more fields are few.
    has_more = not set[str]().union(*raw) <= MESSAGE_FIELDS
    for k, message in enumerate(messages):
        extra = ignored.unknown(raw[k], MESSAGE_FIELDS, "messages[]") if has_more else {}
        role, content = message.role, message.content
        # Why first: most turns of a long history are a role and a text, and nothing else.
        if type(content) is str and role in PLAIN_ROLES:
            turns.append(Turn(role, (Text(content),), message.name, extra))  # type: ignore[arg-type]
            continue
        match role:
            case "assistant":
                turns.append(Turn(role, reader.said(message, raw[k], k), message.name, extra))
            case "tool" | "function":
                turns.append(Turn("tool", (reader.result(message, k),), extra=extra))
            case _:
                turns.append(Turn(role, reader.asked(message, k), message.name, extra))
    return tuple(turns)


class _Reader:
    """Remembers which calls were made, since a result must answer one of them."""

    __slots__ = ("_called", "_ignored", "_legacy")

    def __init__(self, ignored: Ignored) -> None:
        self._ignored = ignored
        self._called: dict[str, str] = {}
        self._legacy: dict[str, str] = {}

    def asked(self, message: Message, k: int) -> tuple[ClientPart, ...]:
        """What a user says, or the system."""
        at = f"messages[{k}].content"
        parts = read_content(message.content, at, self._ignored)
        if not parts:
            raise RequestError(
                f"{at} must be a string or a list of at least one part",
                param=at,
                code="missing_field",
            )
        return parts

    def said(self, message: Message, given: dict[str, object], k: int) -> tuple[Part, ...]:
        """The assistant's parts: reasoning, content, calls."""
        parts: list[Part] = []
        if reasoning := message.reasoning_content or message.reasoning:
            parts.append(Reasoning(reasoning))
        # Why: null, "", [] and no content at all must give the same prompt.
        content = message.content
        if type(content) is str:
            if content:
                parts.append(Text(content))
        elif isinstance(content, list):
            for part in read_said(content, f"messages[{k}].content", self._ignored):
                # Why: a client that sends reasoning in both places means one.
                is_twice = isinstance(part, Reasoning) and part.text == reasoning
                if not (isinstance(part, Text | Reasoning) and not part.text) and not is_twice:
                    parts.append(part)
        if message.refusal and len(parts) == (1 if reasoning else 0):
            parts.append(Text(message.refusal))
        if message.tool_calls:
            for number, call in enumerate(message.tool_calls):
                item = given["tool_calls"][number]  # type: ignore[index]
                is_usual = tuple(item) == USUAL and tuple(item["function"] or ()) == USUAL_INSIDE
                extra = {} if is_usual else _call_keys(item, self._ignored)
                parts.append(self._call(call, extra, k, number))
        if message.function_call is not None:
            inner: Any = given["function_call"]
            self._ignored.unknown(inner, FUNCTION_FIELDS, "messages[].function_call")
            parts.append(self._legacy_call(message.function_call, k))
        return tuple(parts)

    def _call(self, call: ToolCallField, extra: dict[str, object], k: int, number: int) -> ToolCall:
        if call.custom is not None and call.type != "function":
            self._called[call.id] = call.custom.name
            return ToolCall(call.id, call.custom.name, call.custom.input, custom=True, extra=extra)
        function = call.function
        if function is None:
            at = f"messages[{k}].tool_calls[{number}].function"
            raise RequestError(f"{at} is missing", param=at, code="missing_field")
        self._called[call.id] = function.name
        arguments = self._argument_text(function, k, number)
        return ToolCall(call.id, function.name, arguments, extra=extra)

    def _legacy_call(self, call: CalledFunction, k: int) -> ToolCall:
        """`function_call`, which tool_calls replaced: it has no id, so it gets one."""
        id_ = f"call_{len(self._called)}"
        self._called[id_] = call.name
        self._legacy[call.name] = id_
        return ToolCall(id_, call.name, self._argument_text(call, k))

    def _argument_text(self, call: CalledFunction, k: int, number: int | None = None) -> str:
        """As it was written. What is not a JSON object is kept, and noted."""
        text = call.arguments
        if not isinstance(text, str):
            return msgspec.json.encode(text or {}).decode()
        try:
            _shallow.decode(text)  # Why first: most are, and then nothing is left to be looked at.
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            field = "function_call" if number is None else f"tool_calls[{number}].function"
            self._look_closer(text, f"messages[{k}].{field}.arguments")
        return text

    def _look_closer(self, text: str, at: str) -> None:
        check_depth(text, param=at)
        try:
            _arguments.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            self._ignored.add(at)

    def result(self, message: Message, k: int) -> ToolResult:
        id_ = message.tool_call_id
        if message.role == "function":
            id_ = self._legacy.get(message.name or "")
        name = None if id_ is None else self._called.get(id_)
        if id_ is None or name is None:
            raise _unanswered(id_, f"messages[{k}].tool_call_id")
        content = message.content
        if type(content) is str:
            return ToolResult(id_, (Text(content),), name=message.name or name)
        parts = read_content(content, f"messages[{k}].content", self._ignored)
        return ToolResult(id_, parts, name=message.name or name)


def _call_keys(item: dict[str, object], ignored: Ignored) -> dict[str, object]:
    """What a call has beside the known fields; what stands inside it is listed alone."""
    for name, known in CALLED_FIELDS:
        if isinstance(inner := item.get(name), dict):
            ignored.unknown(inner, known, f"messages[].tool_calls[].{name}")
    return ignored.unknown(item, CALL_FIELDS, "messages[].tool_calls[]")


def _unanswered(id_: str | None, at: str) -> RequestError:
    if id_ is None:
        return RequestError(
            f"{at} is missing: it names the call that this message answers",
            param=at,
            code="missing_field",
        )
    return RequestError(
        f"{at} {id_[:64]!r} answers no earlier call: the tool_calls of an assistant message before"
        " it must hold that id",
        param=at,
        code="unknown_tool_call",
    )
