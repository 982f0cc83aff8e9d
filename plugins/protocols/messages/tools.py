"""`tools` and `tool_choice`. Knows no turns."""

from __future__ import annotations

from typing import Final

from tokenwire.core.call import CacheMarker
from tokenwire.core.dialogue import ToolChoice, ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import to_struct
from tokenwire.plugins.protocols.messages import schema
from tokenwire.plugins.protocols.messages.raw import RawFields
from tokenwire.plugins.protocols.messages.turns import cache_ttl

__all__ = ("read_choice", "read_tools")

KNOWN: Final = frozenset((*schema.ToolParam.__struct_fields__, "eager_input_streaming"))
"""Arguments always stream as they are written, so eager_input_streaming has what it asks for."""


def read_tools(
    tools: list[schema.Json], ignored: Ignored, raw: RawFields
) -> tuple[tuple[ToolSpec, ...], list[CacheMarker], list[schema.Json]]:
    """The tools a model can be offered, the cache markers on them, and the tools kept aside:
    typed ones without a schema, which the protocol's own servers run."""
    specs: dict[str, ToolSpec] = {}
    aside: list[schema.Json] = []
    markers: list[CacheMarker] = []
    for k, tool in enumerate(tools):
        kind = tool.get("type")
        if "input_schema" not in tool and isinstance(kind, str) and kind != "custom":
            ignored.add(f"tools[][type={kind}]")
            aside.append(tool)
            continue
        given = to_struct(tool, schema.ToolParam, at=f"tools[{k}]")
        if given.name in specs:
            param = f"tools[{k}].name"
            raise RequestError(
                f"{param} must be unique, but {given.name[:64]!r} came before", param=param
            )
        specs[given.name] = ToolSpec(
            given.name,
            description=given.description,
            parameters=raw.tool_schema(k),
            strict=given.strict,
            extra=_extra(tool, ignored),
        )
        if given.cache_control is not None:
            ttl_s = cache_ttl(given.cache_control, "tools[].cache_control", ignored)
            markers.append(CacheMarker(-1, len(specs) - 1, ttl_s))
    return tuple(specs.values()), markers, aside


def _extra(tool: schema.Json, ignored: Ignored) -> schema.Json:
    extra = ignored.unknown(tool, KNOWN, "tools[]")
    for key in ("type", "eager_input_streaming"):
        if key in tool:
            extra[key] = tool[key]
    return extra


def read_choice(given: schema.ToolChoiceParam, tools: tuple[ToolSpec, ...]) -> ToolChoice:
    parallel = not given.disable_parallel_tool_use
    match given.type:
        case "auto":
            return ToolChoice("auto", parallel=parallel)
        case "none":
            return ToolChoice("none", parallel=parallel)
        case "any" if tools:
            return ToolChoice("required", parallel=parallel)
        case "any":
            raise RequestError(
                "tool_choice.type any needs at least one tool with an input_schema in tools",
                param="tool_choice.type",
            )
        case "tool" if given.name is not None and any(t.name == given.name for t in tools):
            return ToolChoice("named", (given.name,), parallel=parallel)
        case "tool":
            name = given.name and given.name[:64]
            raise RequestError(
                f"tool_choice.name must name a tool of `tools`, not {name!r}",
                param="tool_choice.name",
            )
    raise RequestError(
        f"tool_choice.type must be auto, any, tool or none, not {given.type[:64]!r}",
        param="tool_choice.type",
    )
