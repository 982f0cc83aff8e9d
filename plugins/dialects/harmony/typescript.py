"""Tools as the TypeScript that harmony prompts declare them in. Knows no dialogue.

A JSON Schema says more than a type can: what has no word here is left out, and what no type fits is
`any`. Bounded in depth, for a schema is a client's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.errors import RequestError

__all__ = ("declaration",)

Schema: TypeAlias = Mapping[str, object]
WORDS: Final = {
    "string": "string", "number": "number", "integer": "number", "boolean": "boolean",
    "null": "null",
}  # fmt: skip
INDENT: Final = "    "
MAX_DEPTH: Final = 32
FREE_TEXT: Final[Schema] = {"properties": {"input": {"type": "string"}}, "required": ["input"]}
"""What a custom tool takes."""


def declaration(tool: ToolSpec) -> str:
    """Of one tool, without a newline at its end. Raises RequestError for a schema that is none."""
    schema = FREE_TEXT if tool.custom else _schema(tool)
    lines = [*_comment(tool.description, "")]
    if not _mapping(schema.get("properties")):
        return "\n".join([*lines, f"type {tool.name} = () => any;"])
    lines.append(f"type {tool.name} = (_: {{")
    lines += _members(schema, "", 0)
    return "\n".join([*lines, "}) => any;"])


def _schema(tool: ToolSpec) -> Schema:
    try:
        return _mapping(json.loads(tool.parameters or "{}"))
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"tool {tool.name!r}: wanted a JSON Schema in parameters, got text that is not JSON"
        ) from error


def _members(schema: Schema, indent: str, depth: int) -> Iterator[str]:
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    for name, member in _mapping(schema.get("properties")).items():
        node = _mapping(member)
        yield from _comment(node.get("description"), indent)
        optional = "" if name in needed else "?"
        default = f" // default: {_default(node)}" if "default" in node else ""
        yield f"{indent}{name}{optional}: {_type(node, indent, depth)},{default}"


def _comment(text: object, indent: str) -> Iterator[str]:
    if isinstance(text, str) and text:
        yield from (f"{indent}// {line}" for line in text.split("\n"))


def _default(node: Schema) -> str:
    value = node["default"]
    # Why bare: a default among named values is written as one of the names.
    if isinstance(value, str) and node.get("enum"):
        return value
    return json.dumps(value, ensure_ascii=False)


def _type(node: Schema, indent: str, depth: int) -> str:
    names = node.get("type")
    is_null = node.get("nullable") is True
    if isinstance(names, list):
        kinds = [_one(node, name, indent, depth) for name in names]
    elif names is not None:
        kinds = [_one(node, names, indent, depth)]
    else:
        kinds = [_type(_mapping(way), indent, depth + 1) for way in _ways(node, depth)]
    kinds = list(dict.fromkeys(kinds)) or [_values(node) or "any"]
    return " | ".join([*kinds, "null"] if is_null and "null" not in kinds else kinds)


def _ways(node: Schema, depth: int) -> list[object]:
    for key in ("oneOf", "anyOf"):
        ways = node.get(key)
        if isinstance(ways, list) and depth < MAX_DEPTH:
            return ways
    return []


def _one(node: Schema, name: object, indent: str, depth: int) -> str:
    if name == "string":
        return _values(node) or "string"
    if name == "object" and depth < MAX_DEPTH:
        inner = indent + INDENT
        return "\n".join(["{", *_members(node, inner, depth + 1), f"{inner}}}"])
    if name == "array":
        items = node.get("items")
        item = _type(_mapping(items), indent, depth + 1) if depth < MAX_DEPTH else "any"
        return f"({item})[]" if " | " in item else f"{item}[]"
    return WORDS.get(name, "any") if isinstance(name, str) else "any"


def _values(node: Schema) -> str:
    values = node.get("enum")
    if not isinstance(values, list):
        return ""
    return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _mapping(value: object) -> Schema:
    return value if isinstance(value, dict) else {}
