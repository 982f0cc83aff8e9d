"""The search for deferred tools that the client runs: to the model a function, on the wire a kind
of item of its own. Knows no other items.

Facts of the wire (types of OpenAI's SDK): `arguments` is a JSON value and not its text, it comes
whole with the item, and the output has no text but definitions of tools.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tokenwire.core.dialogue import Text, ToolCall, ToolResult
from tokenwire.core.errors import RequestError
from tokenwire.plugins.protocols.responses.namespaces import flat_name
from tokenwire.plugins.protocols.responses.schema import Json

__all__ = ("CALL", "OUTPUT", "SEARCH", "by_client", "read_call", "read_output", "value_of")

SEARCH: Final = "tool_search"
"""The kind of the tool, and the name that the model knows it by."""
CALL: Final = "tool_search_call"
OUTPUT: Final = "tool_search_output"
NOTHING: Final = "No tools were found."

_any: Final = msgspec.json.Decoder()


def by_client(tool_or_item: Json) -> bool:
    """Whether the client runs this search; what a host runs is not run here."""
    return tool_or_item.get("execution") == "client"


def value_of(arguments: str) -> object:
    """What the item says of a call's arguments: their value; the text itself where it is none."""
    if not arguments:
        return {}
    try:
        return _any.decode(arguments)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return arguments


def read_call(item: Json, at: str) -> ToolCall:
    """Its `extra` holds all other fields, `arguments` among them. Raises RequestError."""
    given = item.get("arguments") or {}
    arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    extra = {key: value for key, value in item.items() if key != "call_id"}
    return ToolCall(_call_id(item, at), SEARCH, arguments, extra=extra)


def read_output(item: Json, at: str) -> ToolResult:
    """To the model the names of what was found; the definitions join its tools."""
    extra = {key: value for key, value in item.items() if key != "call_id"}
    names = _names(item.get("tools"), None)
    text = "\n".join(("Found these tools:", *names)) if names else NOTHING
    return ToolResult(_call_id(item, at), (Text(text),), name=SEARCH, extra=extra)


def _names(tools: object, within: object) -> list[str]:
    """As the model is told them. What is no list of tools is refused where tools are read."""
    names: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        match tool:
            case {"type": "namespace", "name": name, "tools": inner}:
                names += _names(inner, name)
            case {"type": "function" | "custom", "name": str(name)}:
                names.append(flat_name(within, name))
    return names


def _call_id(item: Json, at: str) -> str:
    id_ = item.get("call_id")
    if not isinstance(id_, str) or not id_:
        param = f"{at}.call_id"
        raise RequestError(f"{param} must be a string", param=param, code="missing_field")
    return id_
