"""Tools, the choice among them, and the format of the answer. Knows no items, no sampling.

Tools that a host would run itself (web search, code interpreter, MCP, ...) are not run here: they
are left out of the prompt, listed as ignored, and stay in the response's own list of tools. Those
of a namespace are told to the model one by one (namespaces.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tokenwire.core.dialogue import Grammar, ResponseFormat, ToolChoice, ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import to_struct
from tokenwire.plugins.protocols.responses.namespaces import flat_name
from tokenwire.plugins.protocols.responses.schema import Json, TextFormat
from tokenwire.plugins.protocols.responses.tool_search import OUTPUT, SEARCH, by_client

__all__ = ("ToolReader", "brings_tools", "may_bring_tools", "read_choice", "read_format")

BRINGING: Final = frozenset(("additional_tools", OUTPUT))
"""Kinds of items that bring more tools."""
DEFERRED: Final = "defer_loading"
NAMESPACE: Final = frozenset(("type", "name", "description", "tools"))

FUNCTION: Final = frozenset(("type", "name", "description", "parameters", "strict"))
CUSTOM: Final = frozenset(("type", "name", "description", "format"))
SEARCHING: Final = frozenset(("type", "execution", "description", "parameters"))
GRAMMAR: Final = frozenset(("type", "syntax", "definition"))
FORMAT: Final = frozenset(("type", "name", "description", "schema", "strict"))
NAMED: Final = frozenset(("type", "name"))
ALLOWED: Final = frozenset(("type", "mode", "tools"))
SYNTAXES: Final = ("lark", "regex")

_raw_tools: Final = msgspec.json.Decoder(list[dict[str, Raw]])
_raw_text: Final = msgspec.json.Decoder(dict[str, Raw])


def brings_tools(item: Json) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in BRINGING and (kind != OUTPUT or by_client(item))


def may_bring_tools(data: bytes) -> bool:
    """Of an item's JSON: False where it brings none, without reading it."""
    return any(kind.encode() in data for kind in BRINGING)


@final
class ToolReader:
    """`read` the request's list, then `read_item` each item; `offered` is what the model gets."""

    def __init__(self, ignored: Ignored) -> None:
        self.namespaces: dict[str, tuple[str, str]] = {}
        """Of each name that is told for a tool of a namespace: that, and the tool's own name."""
        self.searches = False
        """The client runs the search for deferred tools."""
        self._ignored = ignored
        self._declared: list[ToolSpec] = []
        self._brought: dict[str, ToolSpec] = {}
        self._is_item = False

    def read(self, given: object, raw: bytes | Raw, at: str, within: str | None = None) -> None:
        """`raw`: the same list as it was written, for schemas to stay as they are."""
        if not isinstance(given, list) or not all(isinstance(tool, dict) for tool in given):
            raise RequestError(f"{at} must be a list of tools", param=at, code="invalid_type")
        for k, (tool, written) in enumerate(zip(given, _raw_tools.decode(raw), strict=True)):
            self._tool(cast(Json, tool), written, f"{at}[{k}]", within)

    def read_item(self, item: Json, written: bytes | Raw, at: str) -> None:
        """The tools that an item brings, if any; `written`: that item as it was written."""
        if brings_tools(item):
            tools = msgspec.json.decode(written, type=dict[str, Raw]).get("tools")
            self._is_item = True
            self.read(item.get("tools"), tools or b"[]", f"{at}.tools")
            self._is_item = False

    def offered(self) -> tuple[ToolSpec, ...]:
        """In the order in which they came. Of a name that an item brings again the first stays; one
        that is deferred, for a search to find, is left out until an item brings it."""
        first = [spec for spec in self._declared if not (self.searches and _is_deferred(spec))]
        if not self.searches and any(map(_is_deferred, first)):
            self._ignored.add(f"tools[].{DEFERRED}")
        names = {spec.name for spec in first}
        return (*first, *(spec for name, spec in self._brought.items() if name not in names))

    def _tool(self, tool: Json, written: Mapping[str, Raw], at: str, within: str | None) -> None:
        match tool.get("type"):
            case "function":
                self._add(_function(tool, written, at, self._ignored), within)
            case "custom":
                self._add(_custom(tool, at, self._ignored), within)
            case "namespace" if within is None:
                name = _name(tool, at)
                if _description(tool, at):
                    self._ignored.add("tools[].namespace.description")
                self._ignored.unknown(tool, NAMESPACE, "tools[].namespace")
                self.read(tool.get("tools"), written.get("tools", b"[]"), f"{at}.tools", name)
            case "tool_search" if within is None and by_client(tool):
                self.searches = True
                self._ignored.unknown(tool, SEARCHING, "tools[]")
                description, parameters = _description(tool, at), _parameters(tool, written, at)
                self._add(ToolSpec(SEARCH, description, parameters), None)
            case str() as kind:
                self._ignored.add(f"tools[].{kind[:64]}")
            case _:
                raise RequestError(
                    f"{at}.type must name a kind of tool",
                    param=f"{at}.type",
                    code="missing_field",
                )

    def _add(self, spec: ToolSpec, within: str | None) -> None:
        if within is not None:
            flat = flat_name(within, spec.name)
            self.namespaces[flat] = (within, spec.name)
            spec = replace(spec, name=flat)
        if not self._is_item:
            self._declared.append(spec)
        elif spec.name not in self._brought:
            # Why without: it has been found, and some templates leave out what is deferred.
            extra = {key: value for key, value in spec.extra.items() if key != DEFERRED}
            self._brought[spec.name] = replace(spec, extra=extra)


def _is_deferred(spec: ToolSpec) -> bool:
    return spec.extra.get(DEFERRED) is True


def _function(tool: Json, written: Mapping[str, Raw], at: str, ignored: Ignored) -> ToolSpec:
    strict = tool.get("strict")
    if not isinstance(strict, bool | None):
        raise RequestError(f"{at}.strict must be true or false", param=f"{at}.strict")
    return ToolSpec(
        _name(tool, at),
        _description(tool, at),
        _parameters(tool, written, at),
        strict=strict,
        extra=_extra(tool, FUNCTION, ignored),
    )


def _parameters(tool: Json, written: Mapping[str, Raw], at: str) -> str | None:
    """As they were written."""
    parameters = tool.get("parameters")
    if not isinstance(parameters, dict | bool | None):
        raise RequestError(
            f"{at}.parameters must be a JSON Schema object", param=f"{at}.parameters"
        )
    return None if parameters is None else bytes(written["parameters"]).decode()


def _extra(tool: Json, known: frozenset[str], ignored: Ignored) -> Json:
    """Its other fields; what becomes of one that is deferred is seen once all are read."""
    extra = ignored.unknown(tool, known | {DEFERRED}, "tools[]")
    return extra | {DEFERRED: tool[DEFERRED]} if DEFERRED in tool else extra


def _custom(tool: Json, at: str, ignored: Ignored) -> ToolSpec:
    given = tool.get("format")
    grammar: Grammar | None = None
    extra = _extra(tool, CUSTOM, ignored)
    match given:
        case None:
            pass
        case {"type": "text"}:
            extra["format"] = given
        case {"type": "grammar", "syntax": str(syntax), "definition": str(definition)}:
            if syntax not in SYNTAXES:
                raise RequestError(
                    f"{at}.format.syntax must be lark or regex, not {syntax[:64]!r}",
                    param=f"{at}.format.syntax",
                )
            grammar = Grammar(syntax, definition)  # type: ignore[arg-type]
            ignored.unknown(cast(Json, given), GRAMMAR, "tools[].format")
        case _:
            raise RequestError(
                f"{at}.format must be of type text, or of type grammar with syntax and definition",
                param=f"{at}.format",
            )
    return ToolSpec(
        _name(tool, at), _description(tool, at), custom=True, extra=extra, grammar=grammar
    )


def _name(tool: Json, at: str) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise RequestError(f"{at}.name is missing", param=f"{at}.name", code="missing_field")
    return name


def _description(tool: Json, at: str) -> str | None:
    text = tool.get("description")
    if not isinstance(text, str | None):
        raise RequestError(f"{at}.description must be a string", param=f"{at}.description")
    return text


def read_choice(
    given: str | Json | None, parallel: bool | None, tools: tuple[ToolSpec, ...], ignored: Ignored
) -> ToolChoice:
    """Refused when it calls for a tool that is not there, or that a host would run."""
    several = parallel is not False
    names = {tool.name for tool in tools}
    match given:
        case None | "auto":
            return ToolChoice(parallel=several)
        case "none":
            return ToolChoice("none", parallel=several)
        case "required":
            if not tools:
                raise _bad("is 'required', but there are no functions or custom tools to call")
            return ToolChoice("required", parallel=several)
        case str():
            raise _bad(f"must be auto, none, required or an object, not {given[:64]!r}")
        case {"type": "function" | "custom", "name": str(name)}:
            if name not in names:
                raise _bad(f"names {name[:64]!r}, which is not among the tools")
            ignored.unknown(given, NAMED, "tool_choice")
            return ToolChoice("named", (name,), parallel=several)
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list(listed)}:
            allowed = tuple(
                tool["name"]
                for tool in listed
                if isinstance(tool, dict) and isinstance(tool.get("name"), str)
            )
            here = tuple(name for name in allowed if name in names)
            if not here:
                raise _bad("allows none of the functions and custom tools that there are")
            ignored.unknown(given, ALLOWED, "tool_choice")
            if len(here) < len(listed):
                ignored.add("tool_choice.tools[]")
            return ToolChoice("allowed", here, required=mode == "required", parallel=several)
    kind = str(given.get("type"))[:64]
    raise _bad(f"of type {kind!r} calls for a tool that this server does not run")


def _bad(reason: str) -> RequestError:
    return RequestError(f"tool_choice {reason}", param="tool_choice", code="invalid_tool_choice")


def read_format(given: Json | None, raw: bytes, ignored: Ignored) -> ResponseFormat:
    """`text.format`; `raw`: `text` as it was written."""
    if given is None:
        return ResponseFormat()
    wanted = to_struct(given, TextFormat, at="text.format")
    ignored.unknown(given, FORMAT, "text.format")
    if given.get("description") is not None:
        ignored.add("text.format.description")
    if wanted.type != "json_schema":
        return ResponseFormat(wanted.type)
    if wanted.schema is None:
        param = "text.format.schema"
        raise RequestError(f"{param} is missing", param=param, code="missing_field")
    written = _raw_text.decode(_raw_text.decode(raw)["format"])["schema"]
    return ResponseFormat(
        "json_schema", bytes(written).decode(), name=wanted.name, strict=wanted.strict
    )
