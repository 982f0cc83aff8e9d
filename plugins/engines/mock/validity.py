"""Whether a JSON value is one that a JSON Schema (draft 2020-12) takes: the keywords of assertions.

Small on purpose: the instance maker checks its own work with it. Formats are not checked, and
references lead within the schema alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

__all__ = ("find", "is_kind", "same", "takes")

DEEPEST: Final = 64


def takes(schema: object, value: object, root: object, depth: int = 0) -> bool:
    """Raises LookupError for a reference that leads nowhere, RecursionError for one in circles."""
    if not isinstance(schema, Mapping):
        return schema is not False
    if depth > DEEPEST:
        raise RecursionError("a schema is nested too deep, or refers to itself")
    return _combined(schema, value, root, depth + 1) and _plain(schema, value, root, depth + 1)


def same(one: object, two: object) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    return one == two


def is_kind(value: object, kind: str) -> bool:
    """Whether it is of one of JSON Schema's seven types."""
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int():
            return kind in ("integer", "number")
        case float():
            return kind == "number" or (kind == "integer" and value.is_integer())
        case str():
            return kind == "string"
        case list():
            return kind == "array"
        case _:
            return kind == "object"


def find(root: object, reference: object) -> object:
    """What a `$ref` within the schema names. Raises LookupError."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise LookupError(f"the reference {str(reference)[:100]!r} is not into the schema itself")
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(name)] if isinstance(found, list) else found[name]
        except (LookupError, TypeError, ValueError):
            raise LookupError(f"the reference {reference[:100]!r} leads nowhere") from None
    return found


def _combined(schema: Mapping[str, Any], value: object, root: object, depth: int) -> bool:
    def holds(inner: object) -> bool:
        return takes(inner, value, root, depth)

    if "$ref" in schema and not holds(find(root, schema["$ref"])):
        return False
    if not all(map(holds, schema.get("allOf", ()))):
        return False
    if "anyOf" in schema and not any(map(holds, schema["anyOf"])):
        return False
    if "oneOf" in schema and sum(map(holds, schema["oneOf"])) != 1:
        return False
    if "not" in schema and holds(schema["not"]):
        return False
    if "if" in schema:
        return holds(schema.get("then" if holds(schema["if"]) else "else", True))
    return True


def _plain(schema: Mapping[str, Any], value: object, root: object, depth: int) -> bool:
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_kind(value, kind) for kind in kinds):
        return False
    if "const" in schema and not same(schema["const"], value):
        return False
    if "enum" in schema and not any(same(each, value) for each in schema["enum"]):
        return False
    match value:
        case bool() | None:
            return True
        case int() | float():
            return _number(schema, value)
        case str():
            return _string(schema, value)
        case list():
            return _array(schema, value, root, depth)
        case dict():
            return _object(schema, value, root, depth)
    return False


def _number(schema: Mapping[str, Any], value: float) -> bool:
    step = schema.get("multipleOf")
    if step is not None and Fraction(str(value)) % Fraction(str(step)):
        return False
    return (
        ("minimum" not in schema or value >= schema["minimum"])
        and ("maximum" not in schema or value <= schema["maximum"])
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    )


def _string(schema: Mapping[str, Any], value: str) -> bool:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    return "pattern" not in schema or re.search(schema["pattern"], value) is not None


def _array(schema: Mapping[str, Any], value: list[object], root: object, depth: int) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    prefix = schema.get("prefixItems", ())
    for k, item in enumerate(value):
        inner = prefix[k] if k < len(prefix) else schema.get("items", True)
        if not takes(inner, item, root, depth):
            return False
    if "contains" in schema:
        count = sum(takes(schema["contains"], item, root, depth) for item in value)
        if not schema.get("minContains", 1) <= count <= schema.get("maxContains", count):
            return False
    if schema.get("uniqueItems"):
        return not any(same(value[j], value[k]) for k in range(len(value)) for j in range(k))
    return True


def _object(schema: Mapping[str, Any], value: dict[str, Any], root: object, depth: int) -> bool:
    count = len(value)
    if not schema.get("minProperties", 0) <= count <= schema.get("maxProperties", count):
        return False
    if any(name not in value for name in schema.get("required", ())):
        return False
    for name, others in schema.get("dependentRequired", {}).items():
        if name in value and any(other not in value for other in others):
            return False
    for name, inner in schema.get("dependentSchemas", {}).items():
        if name in value and not takes(inner, value, root, depth):
            return False
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, item in value.items():
        inners = [properties[name]] if name in properties else []
        inners += [inner for pattern, inner in patterns.items() if re.search(pattern, name)]
        if not inners:
            inners = [schema.get("additionalProperties", True)]
        if not all(takes(inner, item, root, depth) for inner in inners):
            return False
        if not takes(schema.get("propertyNames", True), name, root, depth):
            return False
    return True
