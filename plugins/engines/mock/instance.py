"""A small JSON value that a JSON Schema (draft 2020-12) takes. Knows no engine and no ids.

Schemas are merged along allOf, anyOf, oneOf and $ref until one plain object of keywords is left; a
value is made for that, and checked against the whole: what the schema does not take is never given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, final

from tokenwire.plugins.engines.mock.merging import Unmade, kinds_of, merged
from tokenwire.plugins.engines.mock.pattern import Unmatched, matching
from tokenwire.plugins.engines.mock.validity import find, same, takes

__all__ = ("Unmade", "instance")

Schema: TypeAlias = Mapping[str, Any]

DEEPEST: Final = 40
MOST_TRIES: Final = 2000
COMBINING: Final = ("$ref", "allOf", "anyOf", "oneOf")
OTHER_KINDS: Final = ("string", "integer", "boolean", "null", "array", "object")
HINTS: Final[Mapping[str, str]] = {
    "properties": "object",
    "required": "object",
    "minProperties": "object",
    "patternProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "contains": "array",
    "pattern": "string",
    "minLength": "string",
    "format": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}
"""Of a schema without a type: which type its keywords speak of."""
FORMATS: Final[Mapping[str, str]] = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "http://example.com/",
    "uri-reference": "/a",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "json-pointer": "/a",
    "regex": "a",
}


def instance(schema: object) -> object:
    """A value that `schema` (decoded JSON) takes: the smallest that is easy to find, or Unmade."""
    try:
        return _Maker(schema).make(schema, 0)
    except LookupError as error:
        raise Unmade(str(error)) from None
    except (AttributeError, TypeError, ArithmeticError, RecursionError, re.error) as error:
        raise Unmade(f"it is no JSON Schema: {error}") from None


@final
class _Maker:
    def __init__(self, root: object) -> None:
        self._root = root
        self._left = MOST_TRIES

    def make(self, schema: object, depth: int) -> object:
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise Unmade(f"wanted a value within {MOST_TRIES} tries and {DEEPEST} levels, got none")
        reason: Exception = Unmade("false takes no value")
        for plain in self._plain(schema, depth):
            for kind in ("", *OTHER_KINDS):
                try:
                    value = self._value(plain, depth, kind)
                    if takes(schema, value, self._root):
                        return value
                    reason = Unmade("found no value that the whole schema takes")
                except (Unmade, Unmatched, LookupError, RecursionError) as error:
                    reason = reason if kind else error
        raise Unmade(str(reason))

    # --- one schema to plain ones ----------------------------------------------------------------

    def _plain(self, schema: object, depth: int) -> Iterator[Schema]:
        """The ways to take `schema`, each without combining keywords."""
        if schema is True:
            yield {}
            return
        if not isinstance(schema, Mapping):
            return
        if depth > DEEPEST:
            raise Unmade("a $ref goes in circles")
        own = {key: value for key, value in schema.items() if key not in COMBINING}
        parts: list[list[object]] = [[each] for each in schema.get("allOf", ())]
        if "$ref" in schema:
            parts.append([find(self._root, schema["$ref"])])
        parts += [
            sorted(schema[name], key=_refers) for name in ("anyOf", "oneOf") if name in schema
        ]
        yield from self._combined(own, parts, depth + 1)

    def _combined(self, own: Schema, parts: list[list[object]], depth: int) -> Iterator[Schema]:
        if not parts:
            yield own
            return
        for option in parts[0]:
            for plain in self._plain(option, depth):
                both = merged(own, plain)
                if both is not None:
                    yield from self._combined(both, parts[1:], depth)

    # --- a plain one to a value ------------------------------------------------------------------

    def _value(self, schema: Schema, depth: int, kind: str = "") -> object:
        """`kind`: another than the likeliest, where several are taken."""
        if "const" in schema or "enum" in schema:
            if kind:
                raise Unmade("no value of enum is taken")
            named = [schema["const"]] if "const" in schema else schema["enum"]
            for value in named:
                if takes(schema, value, self._root):
                    return value
            raise Unmade("no value of enum is taken")
        kinds = kinds_of(schema)
        if kind and kinds and kind not in kinds:
            raise Unmade(f"{kind} is not among its types")
        match kind or _likeliest(schema, kinds):
            case "null":
                return None
            case "boolean":
                return False
            case "string":
                return _string(schema)
            case "array":
                return self._array(schema, depth)
            case "object":
                return self._object(schema, depth)
            case kind:
                return _number(schema, is_whole=kind == "integer")

    def _object(self, schema: Schema, depth: int) -> dict[str, object]:
        known: Mapping[str, object] = schema.get("properties", {})
        required = list(dict.fromkeys(schema.get("required", ())))
        value = {name: self.make(self._member(schema, name), depth + 1) for name in required}
        least = schema.get("minProperties", 0)
        for name in (*known, *(f"key{k}" for k in range(least))):
            if len(value) >= least:
                break
            if name not in value:
                value[name] = self.make(self._member(schema, name), depth + 1)
        if len(value) > schema.get("maxProperties", math.inf) or len(value) < least:
            raise Unmade("minProperties, maxProperties and required do not meet")
        return value

    def _member(self, schema: Schema, name: str) -> object:
        wanted = []
        if name in schema.get("properties", {}):
            wanted.append(schema["properties"][name])
        for pattern, inner in schema.get("patternProperties", {}).items():
            if re.search(pattern, name):
                wanted.append(inner)
        if not wanted:
            wanted.append(schema.get("additionalProperties", True))
        return wanted[0] if len(wanted) == 1 else {"allOf": wanted}

    def _array(self, schema: Schema, depth: int) -> list[object]:
        prefix = schema.get("prefixItems", [])
        items = schema.get("items", True)
        least = schema.get("minItems", 0)
        if "contains" in schema:
            wanted = schema.get("minContains", 1)
            items = {"allOf": [items, schema["contains"]]} if wanted else items
            least = max(least, len(prefix) + wanted)
        if least > schema.get("maxItems", math.inf):
            raise Unmade("minItems and maxItems do not meet")
        values = [
            self.make(prefix[k] if k < len(prefix) else items, depth + 1) for k in range(least)
        ]
        if schema.get("uniqueItems") and len(values) > 1:
            return self._distinct(values, items)
        return values

    def _distinct(self, values: list[object], items: object) -> list[object]:
        """Equal values made different, where their schema lists or counts."""
        found: list[object] = []
        for value in values:
            for fresh in (value, *self._others(items)):
                if not any(same(fresh, other) for other in found):
                    found.append(fresh)
                    break
            else:
                raise Unmade("found too few different values for uniqueItems")
        return found

    def _others(self, items: object) -> Iterator[object]:
        for plain in self._plain(items, 0):
            if "enum" in plain:
                yield from (value for value in plain["enum"] if takes(plain, value, self._root))
                continue
            kind = _likeliest(plain, kinds_of(plain))
            for k in range(64):
                more = {
                    "string": {"minLength": k},
                    "array": {"minItems": k},
                    "integer": {"minimum": k},
                    "number": {"minimum": k},
                }.get(kind)
                longer = merged(plain, more) if more is not None else None
                if longer is None:
                    break
                try:
                    yield self._value(longer, 0)
                except (Unmade, Unmatched):
                    break


def _refers(option: object) -> bool:
    """Sorts what may lead round again behind what ends."""
    return isinstance(option, Mapping) and "$ref" in option


def _likeliest(schema: Schema, kinds: list[str]) -> str:
    """The type that its keywords speak of, else the first it names, else an object."""
    hinted = [kind for key, kind in HINTS.items() if key in schema]
    for kind in hinted:
        if not kinds or kind in kinds:
            return kind
    return kinds[0] if kinds else "object"


def _string(schema: Schema) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" in schema:
        return matching(schema["pattern"], least=least, most=most)
    text = FORMATS.get(schema.get("format", ""), "")
    text = text or "a" * least
    if len(text) < least or (most is not None and len(text) > most):
        raise Unmade("minLength, maxLength and format do not meet")
    return text


def _bounds(schema: Schema) -> tuple[float, float]:
    """Inclusive; an exclusive bound is moved to the next number (the next integer, if it must)."""
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if (above := schema.get("exclusiveMinimum")) is not None:
        low = max(low, math.nextafter(above, math.inf))
    if (below := schema.get("exclusiveMaximum")) is not None:
        high = min(high, math.nextafter(below, -math.inf))
    return low, high


def _number(schema: Schema, *, is_whole: bool) -> int | float:
    low, high = _bounds(schema)
    step = schema.get("multipleOf")
    if step is None:
        step = 1
        if not is_whole and max(low, math.ceil(low) if low != -math.inf else 0) > high:
            if low > high:
                raise Unmade("minimum and maximum do not meet")
            return (low + high) / 2
    start = 0 if low <= 0 <= high else low if low > 0 else high
    at = math.ceil(start / step) if start == low else math.floor(start / step)
    for k in (at, at + 1, at - 1):
        value = k * step
        if low <= value <= high and (not is_whole or value == int(value)):
            return int(value) if value == int(value) else value
    if not is_whole and schema.get("multipleOf") is None and low <= high:
        return low if low != -math.inf else high
    raise Unmade("minimum, maximum and multipleOf do not meet")
