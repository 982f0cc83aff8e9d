"""Tools, and the choice among them. Knows no messages, no sampling."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tokenwire.core.dialogue import Grammar, ToolChoice, ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import to_struct
from tokenwire.plugins.protocols._shared.answer_shape import member
from tokenwire.plugins.protocols.chat_completions.schema import (
    AllowedTools,
    CustomFormat,
    CustomTool,
    Function,
    GrammarField,
    RawRequest,
    Tool,
)

__all__ = ("BESIDE", "RawText", "read_choice", "read_tools")

CHOICE_FIELDS: Final = frozenset(("type", "function", "custom", "allowed_tools", "mode", "tools"))
NAME_FIELD: Final = frozenset(("name",))

BESIDE: Final = "tool"
"""Under this key a tool keeps unknown fields that stood beside its function, not in it."""
FUNCTION_FIELDS: Final = frozenset(Function.__struct_fields__)
CUSTOM_FIELDS: Final = frozenset(CustomTool.__struct_fields__)
CUSTOM_FORMAT_FIELDS: Final = frozenset(CustomFormat.__struct_fields__)
GRAMMAR_FIELDS: Final = frozenset(GrammarField.__struct_fields__)
ALLOWED_FIELDS: Final = frozenset(AllowedTools.__struct_fields__)
TOOL_FIELDS: Final = frozenset(Tool.__struct_fields__)

_raw: Final = msgspec.json.Decoder(RawRequest)


class RawText:
    """Pieces of the body as they were sent. The body was read before, so that it is sound."""

    def __init__(self, body: bytes) -> None:
        self.shapes: Final = _raw.decode(body.removeprefix(b"\xef\xbb\xbf"))
        self._tools = self.shapes.tools or []

    def parameters(self, k: int) -> str:
        return member(self._tools[k]["function"], "parameters")


def read_tools(
    given: list[dict[str, object]],
    raw: RawText,
    ignored: Ignored,
    aside: list[list[object]],
) -> tuple[ToolSpec, ...]:
    """Functions and custom tools. Tools that a host would run itself are noted, and put `aside`
    with their places."""
    specs: list[ToolSpec] = []
    for k, item in enumerate(given):
        at = f"tools[{k}]"
        kind = item.get("type", "function")
        if kind == "function":
            function = to_struct(item.get("function"), Function, at=f"{at}.function")
            extra = _beside(item, "function", FUNCTION_FIELDS, ignored)
            parameters = None if function.parameters is None else raw.parameters(k)
            specs.append(
                ToolSpec(
                    function.name,
                    function.description,
                    parameters,
                    strict=function.strict,
                    extra=extra,
                )
            )
        elif kind == "custom":
            custom = to_struct(item.get("custom"), CustomTool, at=f"{at}.custom")
            specs.append(_custom(custom, item, at, ignored))
        elif isinstance(kind, str):
            ignored.add(f"tools[].{kind[:64]}")
            aside.append([k, item])
        else:
            raise RequestError(
                f"{at}.type must be a string", param=f"{at}.type", code="invalid_type"
            )
    return tuple(specs)


def _custom(tool: CustomTool, item: dict[str, object], at: str, ignored: Ignored) -> ToolSpec:
    extra = _beside(item, "custom", CUSTOM_FIELDS, ignored)
    grammar: Grammar | None = None
    if tool.format is not None:
        _format_keys(item, ignored)
    if tool.format is not None and tool.format.type == "grammar":
        given = tool.format.grammar
        if given is None:
            missing = f"{at}.custom.format.grammar"
            raise RequestError(f"{missing} is missing", param=missing, code="missing_field")
        grammar = Grammar(given.syntax, given.definition)
    elif tool.format is not None:
        extra["format"] = {"type": "text"}
    return ToolSpec(tool.name, tool.description, custom=True, extra=extra, grammar=grammar)


def _format_keys(item: dict[str, object], ignored: Ignored) -> None:
    at = "tools[].custom.format"
    shape: Any = item["custom"]["format"]  # type: ignore[index]
    ignored.unknown(shape, CUSTOM_FORMAT_FIELDS, at)
    if isinstance(grammar := shape.get("grammar"), dict):
        ignored.unknown(grammar, GRAMMAR_FIELDS, f"{at}.grammar")


def _beside(
    item: dict[str, object], name: str, known: frozenset[str], ignored: Ignored
) -> dict[str, object]:
    inner = item[name]
    assert isinstance(inner, dict)
    beside = ignored.unknown(item, {"type", name}, "tools[]")
    extra = ignored.unknown(inner, known, f"tools[].{name}")
    return extra | {BESIDE: beside} if beside else extra


def read_choice(
    given: str | dict[str, object] | None,
    parallel: bool | None,
    tools: tuple[ToolSpec, ...],
    ignored: Ignored,
) -> ToolChoice:
    """Refused when it calls for a tool that is not there."""
    several = parallel is not False
    match given:
        case None | "auto":
            return ToolChoice(parallel=several)
        case "none":
            return ToolChoice("none", parallel=several)
        case "required":
            if not tools:
                raise _bad_choice("is 'required', but there are no tools to call")
            return ToolChoice("required", parallel=several)
        case str():
            raise _bad_choice(f"must be auto, none, required or an object, not {given[:64]!r}")
    ignored.unknown(given, CHOICE_FIELDS, "tool_choice")
    _named_keys(given, "tool_choice", ignored)
    if given.get("type") == "allowed_tools":
        inner = given.get("allowed_tools", given)  # Why: Responses has no inner object.
        allowed = to_struct(inner, AllowedTools, at="tool_choice.allowed_tools")
        _allowed_keys(given, ignored)
        names = tuple(_name(tool, tools) for tool in allowed.tools)
        if not names:
            raise _bad_choice("allows no tool: name at least one, or send 'none'")
        return ToolChoice("allowed", names, required=allowed.mode == "required", parallel=several)
    return ToolChoice(
        "named", (_name(to_struct(given, Tool, at="tool_choice"), tools),), parallel=several
    )


def _named_keys(given: dict[str, object], at: str, ignored: Ignored) -> None:
    for name in ("function", "custom"):
        if isinstance(one := given.get(name), dict):
            ignored.unknown(one, NAME_FIELD, f"{at}.{name}")


def _allowed_keys(given: dict[str, object], ignored: Ignored) -> None:
    at = "tool_choice"
    inner: Any = given
    if isinstance(allowed := given.get("allowed_tools"), dict):
        inner, at = allowed, f"{at}.allowed_tools"
        ignored.unknown(allowed, ALLOWED_FIELDS, at)
    for tool in inner["tools"]:
        ignored.unknown(tool, TOOL_FIELDS, f"{at}.tools[]")
        _named_keys(tool, f"{at}.tools[]", ignored)


def _name(tool: Tool, tools: tuple[ToolSpec, ...]) -> str:
    named = tool.function or tool.custom
    if named is None:
        raise _bad_choice("must name a function or a custom tool")
    if all(spec.name != named.name for spec in tools):
        raise _bad_choice(f"names {named.name[:64]!r}, which is not among the tools")
    return named.name


def _bad_choice(reason: str) -> RequestError:
    return RequestError(f"tool_choice {reason}", param="tool_choice", code="invalid_tool_choice")
