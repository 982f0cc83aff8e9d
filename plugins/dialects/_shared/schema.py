"""Which JSON types a schema allows, followed through references and unions. Validates nothing.

Bounded: cyclic references end, and a schema is looked at up to MAX_NODES nodes. A reference that
is not into the schema itself is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias, TypeGuard, final

import msgspec

from tokenwire.core.dialogue import ToolSpec

__all__ = ("ANY", "Kind", "Kinds", "Schema")

Kind: TypeAlias = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
Kinds: TypeAlias = frozenset[Kind]
Node: TypeAlias = Mapping[str, object]

ANY: Final[Kinds] = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
"""Of a schema that says nothing."""
MAX_NODES: Final = 200
UNIONS: Final = ("anyOf", "oneOf", "allOf")
OF_VALUES: Final[tuple[tuple[type, Kind], ...]] = (
    (bool, "boolean"), (str, "string"), (int, "number"), (float, "number"),
    (type(None), "null"), (dict, "object"), (list, "array"),
)  # fmt: skip
"""In this order: Python's booleans are integers."""


@final
class Schema:
    """A node of a JSON Schema, beside the root that references lead into."""

    __slots__ = ("_node", "_root")

    def __init__(self, node: object, root: object) -> None:
        self._node = node
        self._root = root

    @classmethod
    def of(cls, tools: tuple[ToolSpec, ...], name: str) -> Schema:
        """Of the arguments of the tool `name`; one that says nothing for an unknown tool."""
        for tool in tools:
            if tool.name == name and tool.parameters:
                try:
                    root = msgspec.json.decode(tool.parameters)
                except (msgspec.DecodeError, UnicodeError, RecursionError):
                    break
                return cls(root, root)
        return cls(None, None)

    @property
    def kinds(self) -> Kinds:
        """Types of the values that it allows; ANY where it says nothing."""
        found: set[Kind] = set()
        for node in self._nodes():
            found |= _kinds(node)
        return frozenset(found) or ANY

    @property
    def members(self) -> frozenset[str]:
        """The names under `properties`."""
        return frozenset(
            name for node in self._nodes() for name in _mapping(node.get("properties"))
        )

    def member(self, name: str) -> Schema:
        """Of an object's member."""
        for node in self._nodes():
            properties = _mapping(node.get("properties"))
            if name in properties:
                return Schema(properties[name], self._root)
        for node in self._nodes():
            for pattern in _mapping(node.get("patternProperties")).values():
                return Schema(pattern, self._root)
            if _is_node(rest := node.get("additionalProperties")):
                return Schema(rest, self._root)
        return Schema(None, self._root)

    def item(self) -> Schema:
        """Of an array's items."""
        for node in self._nodes():
            if _is_node(items := node.get("items")):
                return Schema(items, self._root)
        return Schema(None, self._root)

    def _nodes(self) -> Iterator[Node]:
        """This node and what it refers to or is a union of, each once."""
        waiting: list[object] = [self._node]
        seen: set[int] = set()
        while waiting and len(seen) < MAX_NODES:
            node = waiting.pop(0)
            if not _is_node(node) or id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if isinstance(reference := node.get("$ref"), str):
                waiting.append(self._target(reference))
            for key in UNIONS:
                branches = node.get(key)
                waiting += branches if isinstance(branches, list) else ()

    def _target(self, reference: str) -> object:
        if not reference.startswith("#"):
            return None
        node = self._root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and name.isascii() and name.isdigit():
                node = node[int(name)] if int(name) < len(node) else None
            else:
                node = _mapping(node).get(name)
        return node


def _is_node(value: object) -> TypeGuard[Node]:
    return isinstance(value, dict)


def _mapping(value: object) -> Node:
    return value if _is_node(value) else {}


def _kinds(node: Node) -> set[Kind]:
    """What this node says by itself."""
    stated = node.get("type")
    names = stated if isinstance(stated, list) else [stated]
    kinds: set[Kind] = {kind for kind in ANY if kind in names}
    if kinds:
        if node.get("nullable") is True:
            kinds.add("null")
        return kinds
    values = node.get("enum")
    if not isinstance(values, list):
        values = [node["const"]] if "const" in node else []
    kinds = {kind for value in values if (kind := _kind(value)) is not None}
    if "properties" in node:
        kinds.add("object")
    if "items" in node:
        kinds.add("array")
    return kinds


def _kind(value: object) -> Kind | None:
    return next((kind for type_, kind in OF_VALUES if isinstance(value, type_)), None)
