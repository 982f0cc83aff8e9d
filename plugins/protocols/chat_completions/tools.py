"""Tools, the choice among them, and the format of the answer. Knows no messages, no sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tokenwire.core.dialogue import Grammar, ResponseFormat, ToolChoice, ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import to_struct
from tokenwire.plugins.protocols.chat_completions.schema import (
    AllowedTools,
    CustomTool,
    Function,
    RawRequest,
    Request,
    ResponseFormatField,
    StructuredOutputs,
    Tool,
)

__all__ = ("BESIDE", "SHAPES", "RawText", "read_choice", "read_format", "read_tools")

CHOICE_FIELDS: Final = frozenset(("type", "function", "custom", "allowed_tools", "mode", "tools"))
NAME_FIELD: Final = frozenset(("name",))
FORMAT_FIELDS: Final = frozenset(("type", "json_schema"))
SCHEMA_FIELDS: Final = frozenset(("name", "description", "schema", "strict"))

BESIDE: Final = "tool"
"""Under this key a tool keeps unknown fields that stood beside its function, not in it."""
SHAPES: Final = (
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_choice",
    "guided_regex",
    "regex",
    "guided_grammar",
    "ebnf",
)
"""Fields that ask for a shape of the answer, under the names that servers have given it."""

FUNCTION_FIELDS: Final = frozenset(Function.__struct_fields__)
CUSTOM_FIELDS: Final = frozenset(CustomTool.__struct_fields__)

_raw: Final = msgspec.json.Decoder(RawRequest)
_raw_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class RawText:
    """Pieces of the body as they were sent. The body was read before, so that it is sound."""

    def __init__(self, body: bytes) -> None:
        request = _raw.decode(body.removeprefix(b"\xef\xbb\xbf"))
        self._tools = request.tools or []
        self._format = request.response_format or {}
        self._outputs = request.structured_outputs or {}
        self._guided = request.guided_json

    def parameters(self, k: int) -> str:
        return _member(self._tools[k]["function"], "parameters")

    def schema(self) -> str:
        return _member(self._format["json_schema"], "schema")

    def format(self) -> str:
        return msgspec.json.encode(self._format).decode()

    def json(self) -> str:
        return bytes(self._outputs["json"]).decode()

    def guided_json(self) -> str:
        return bytes(self._guided).decode()


def _member(raw: msgspec.Raw, name: str) -> str:
    return bytes(_raw_object.decode(raw)[name]).decode()


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
    if tool.format is not None and tool.format.type == "grammar":
        given = tool.format.grammar
        if given is None:
            raise _no_format(f"{at}.custom.format.grammar")
        grammar = Grammar(given.syntax, given.definition)
    elif tool.format is not None:
        extra["format"] = {"type": "text"}
    return ToolSpec(tool.name, tool.description, custom=True, extra=extra, grammar=grammar)


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
    for name in ("function", "custom"):
        if isinstance(one := given.get(name), dict):
            ignored.unknown(one, NAME_FIELD, f"tool_choice.{name}")
    if given.get("type") == "allowed_tools":
        inner = given.get("allowed_tools", given)  # Why: Responses has no inner object.
        allowed = to_struct(inner, AllowedTools, at="tool_choice.allowed_tools")
        names = tuple(_name(tool, tools) for tool in allowed.tools)
        if not names:
            raise _bad_choice("allows no tool: name at least one, or send 'none'")
        return ToolChoice("allowed", names, required=allowed.mode == "required", parallel=several)
    return ToolChoice(
        "named", (_name(to_struct(given, Tool, at="tool_choice"), tools),), parallel=several
    )


def _name(tool: Tool, tools: tuple[ToolSpec, ...]) -> str:
    named = tool.function or tool.custom
    if named is None:
        raise _bad_choice("must name a function or a custom tool")
    if all(spec.name != named.name for spec in tools):
        raise _bad_choice(f"names {named.name[:64]!r}, which is not among the tools")
    return named.name


def _bad_choice(reason: str) -> RequestError:
    return RequestError(f"tool_choice {reason}", param="tool_choice", code="invalid_tool_choice")


def read_format(request: Request, raw: RawText, ignored: Ignored) -> ResponseFormat:
    """The shape of the visible answer: by the first that is set of SHAPES."""
    if (given := request.response_format) is not None:
        wanted = to_struct(given, ResponseFormatField, at="response_format")
        if wanted.type == "json_schema" and isinstance(inner := given.get("json_schema"), dict):
            ignored.unknown(given, FORMAT_FIELDS, "response_format")
            ignored.unknown(inner, SCHEMA_FIELDS, "response_format.json_schema")
            if inner.get("description") is not None:
                ignored.add("response_format.json_schema.description")
        return _response_format(wanted, raw)
    if (outputs := request.structured_outputs) is not None:
        return _structured(to_struct(outputs, StructuredOutputs, at="structured_outputs"), raw)
    if request.guided_json is not None:
        return _schema(request.guided_json, raw.guided_json, "guided_json")
    if request.guided_choice is not None:
        return ResponseFormat("choice", choices=tuple(request.guided_choice))
    if (pattern := request.guided_regex or request.regex) is not None:
        return ResponseFormat("regex", pattern)
    if (grammar := request.guided_grammar or request.ebnf) is not None:
        return ResponseFormat("grammar", grammar)
    return ResponseFormat()


def _schema(given: object, raw: Callable[[], str], param: str) -> ResponseFormat:
    """A schema as an object, or as text that holds one."""
    if not isinstance(given, str):
        return ResponseFormat("json_schema", raw())
    try:
        is_schema = isinstance(msgspec.json.decode(given), dict | bool)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        is_schema = False
    if not is_schema:
        raise RequestError(f"{param} must be a JSON Schema, or text that holds one", param=param)
    return ResponseFormat("json_schema", given)


def _response_format(wanted: ResponseFormatField, raw: RawText) -> ResponseFormat:
    match wanted.type:
        case "text" | "json_object":
            return ResponseFormat(wanted.type)
        case "json_schema":
            schema = wanted.json_schema
            if schema is None or schema.schema is None:
                raise _no_format("response_format.json_schema.schema")
            return ResponseFormat(
                "json_schema", raw.schema(), name=schema.name, strict=schema.strict
            )
        case "regex":
            return ResponseFormat("regex", _given(wanted.regex, "regex"))
        case "grammar" | "ebnf":
            return ResponseFormat("grammar", _given(wanted.grammar or wanted.ebnf, wanted.type))
        case "choice":
            if wanted.choices is None:
                raise _no_format("response_format.choices")
            return ResponseFormat("choice", choices=tuple(wanted.choices))
        case "structural_tag":
            return ResponseFormat("structural_tag", raw.format())


def _given(text: str | None, name: str) -> str:
    if text is None:
        raise _no_format(f"response_format.{name}")
    return text


def _no_format(param: str) -> RequestError:
    return RequestError(f"{param} is missing", param=param, code="missing_field")


def _structured(wanted: StructuredOutputs, raw: RawText) -> ResponseFormat:
    found: list[ResponseFormat] = []
    if wanted.json is not None:
        found.append(_schema(wanted.json, raw.json, "structured_outputs.json"))
    if wanted.regex is not None:
        found.append(ResponseFormat("regex", wanted.regex))
    if wanted.choice is not None:
        found.append(ResponseFormat("choice", choices=tuple(wanted.choice)))
    if wanted.grammar is not None:
        found.append(ResponseFormat("grammar", wanted.grammar))
    if wanted.json_object:
        found.append(ResponseFormat("json_object"))
    if wanted.structural_tag is not None:
        found.append(ResponseFormat("structural_tag", wanted.structural_tag))
    if len(found) != 1:
        raise RequestError(
            f"structured_outputs must set exactly one of its members, not {len(found)}",
            param="structured_outputs",
        )
    return found[0]
