"""Which reader reads the calls of a region, from its content and its transform.

A transform says where in the region a call's name and arguments are: in a named group of the
opening pattern, or in the content. Whatever else it says of a call ("type": "function") is not
needed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.dialects._shared.call_reader import CallReader
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.python_call import PythonCall
from tokenwire.plugins.dialects.generic.body import Body
from tokenwire.plugins.dialects.generic.named_call import NamedCall
from tokenwire.plugins.dialects.generic.pattern import compile_pattern
from tokenwire.plugins.dialects.generic.spec import Field

__all__ = ("RegionReader", "region_reader")

RegionReader: TypeAlias = Callable[[Mapping[str, str], tuple[ToolSpec, ...]], CallReader]
"""From the groups of the opening pattern and the tools."""
PLACE: Final = re.compile(r"\{(\w+(?:\.\w+)*)\}")
CONTENT: Final = "content"


def region_reader(field: Field) -> RegionReader:
    """Raises ConfigError for a field whose calls cannot be read while they come."""
    if field.open is None:
        raise ConfigError(f"response_template: {field.name} has no open anchor")
    function = _function(field)
    is_plain_json = field.content == "json" and not (
        field.args.get("string_delims") or field.args.get("unquoted_keys")
    )
    end = next(iter(field.close.texts), "") if field.close else ""
    if field.content == "python-call-list":
        return lambda groups, tools: PythonCall(tools)
    name = _place(field, function.get("name"), "name")
    arguments = _place(field, function.get("arguments"), "arguments")
    is_named = name in field.open.names
    if is_plain_json and not is_named and name and arguments and name != CONTENT:
        shape = JsonShape(
            end=end,
            names=(name,),
            arguments=(arguments,),
            ids=tuple(filter(None, (_place(field, function.get("id"), "id"),))),
            wraps=() if field.transform else ("function",),
        )
        make = json_calls(shape)
        return lambda groups, tools: make(tools)
    if not is_named or arguments != CONTENT:
        raise ConfigError(
            f"response_template: the transform of {field.name} puts a call together in a way that"
            " the dialect 'generic' cannot read; another dialect or parser can be configured"
        )
    tag = None
    if field.content == "xml-inline":
        tag = compile_pattern(str(field.args.get("tag_pattern", "")))
        if not {"key", "value"} <= set(tag.groups):
            raise ConfigError("response_template: xml-inline wanted a tag_pattern with key, value")
    body = None if is_plain_json else Body(field.content, field.args, tag)
    return lambda groups, tools: NamedCall(groups[name], tools, field.close, body)


def _function(field: Field) -> Mapping[str, Any]:
    """{name, arguments, id}, each a place in the region."""
    transform = field.transform
    if transform is None:
        return {"name": "{name}", "arguments": "{arguments}", "id": "{id}"}
    if isinstance(transform, list) and len(transform) == 1:
        transform = transform[0]
    if isinstance(transform, Mapping):
        function = transform.get("function", transform)
        if function == "{content}":
            return {"name": "{content.name}", "arguments": "{content.arguments}"}
        if isinstance(function, Mapping):
            return {**function, "id": transform.get("id", function.get("id"))}
    elif transform == "{content}":
        return {"name": "{name}", "arguments": "{arguments}", "id": "{id}"}
    raise ConfigError(f"response_template: the transform of {field.name} makes no calls")


def _place(field: Field, value: object, what: str) -> str:
    """The group or the key that holds it; "" where nothing does."""
    if value is None and what == "id":
        return ""
    found = PLACE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return ""
    path = found[1].removeprefix(f"{CONTENT}.")
    return "" if "." in path else path
