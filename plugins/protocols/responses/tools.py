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

__all__ = ("MORE", "ToolReader", "read_choice", "read_format")

MORE: Final = "additional_tools"
"""The kind of an item of the input that brings more tools."""
NAMESPACE: Final = frozenset(("type", "name", "description", "tools"))

FUNCTION: Final = frozenset(("type", "name", "description", "parameters", "strict"))
CUSTOM: Final = frozenset(("type", "name", "description", "format"))
GRAMMAR: Final = frozenset(("type", "syntax", "definition"))
FORMAT: Final = frozenset(("type", "name", "description", "schema", "strict"))
NAMED: Final = frozenset(("type", "name"))
ALLOWED: Final = frozenset(("type", "mode", "tools"))
SYNTAXES: Final = ("lark", "regex")

_raw_tools: Final = msgspec.json.Decoder(list[dict[str, Raw]])
_raw_items: Final = msgspec.json.Decoder(list[Raw])
_raw_text: Final = msgspec.json.Decoder(dict[str, Raw])


@final
class ToolReader:
    """`read` each list of tools; then `specs` is what the model is told, and `namespaces` says of
    each name that it is told for a tool of a namespace: that namespace, and the tool's own name."""

    def __init__(self, ignored: Ignored) -> None:
        self.specs: list[ToolSpec] = []
        self.namespaces: dict[str, tuple[str, str]] = {}
        self._ignored = ignored

    def read(self, given: object, raw: bytes | Raw, at: str, within: str | None = None) -> None:
        """`raw`: the same list as it was written, for schemas to stay as they are."""
        if not isinstance(given, list) or not all(isinstance(tool, dict) for tool in given):
            raise RequestError(f"{at} must be a list of tools", param=at, code="invalid_type")
        for k, (tool, written) in enumerate(zip(given, _raw_tools.decode(raw), strict=True)):
            self._tool(cast(Json, tool), written, f"{at}[{k}]", within)

    def read_items(self, items: list[Json], raw: bytes) -> None:
        """The tools that items of the input bring; `raw`: those items as they were written."""
        for k, (item, written) in enumerate(zip(items, _raw_items.decode(raw), strict=True)):
            if item.get("type") == MORE:
                tools = msgspec.json.decode(written, type=dict[str, Raw]).get("tools")
                self.read(item.get("tools"), tools or b"[]", f"input[{k}].tools")

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
        self.specs.append(spec)


def _function(tool: Json, written: Mapping[str, Raw], at: str, ignored: Ignored) -> ToolSpec:
    parameters = tool.get("parameters")
    if not isinstance(parameters, dict | bool | None):
        raise RequestError(
            f"{at}.parameters must be a JSON Schema object", param=f"{at}.parameters"
        )
    strict = tool.get("strict")
    if not isinstance(strict, bool | None):
        raise RequestError(f"{at}.strict must be true or false", param=f"{at}.strict")
    return ToolSpec(
        _name(tool, at),
        _description(tool, at),
        None if parameters is None else bytes(written["parameters"]).decode(),
        strict=strict,
        extra=ignored.unknown(tool, FUNCTION, "tools[]"),
    )


def _custom(tool: Json, at: str, ignored: Ignored) -> ToolSpec:
    given = tool.get("format")
    grammar: Grammar | None = None
    extra = ignored.unknown(tool, CUSTOM, "tools[]")
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
