"""Two JSON Schemas without combining keywords to one that takes what both take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenwire.plugins.engines.mock.validity import same

__all__ = ("Unmade", "kinds_of", "merged")


class Unmade(ValueError):
    """No value was found for a schema; the message says why."""


def kinds_of(schema: Mapping[str, Any]) -> list[str]:
    """Its types; none named: any."""
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def merged(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any] | None:
    """None where no value can be taken. Raises Unmade for what is beyond this."""
    both = dict(one)
    for key, value in two.items():
        if key not in both or both[key] == value:
            both[key] = value
        elif key == "type":
            kinds = [
                kind
                for kind in kinds_of(one)
                if kind in kinds_of(two) or (kind == "integer" and "number" in kinds_of(two))
            ]
            kinds += [
                kind for kind in kinds_of(two) if kind == "integer" and "number" in kinds_of(one)
            ]
            if not kinds:
                return None
            both[key] = list(dict.fromkeys(kinds))
        elif key == "enum":
            both[key] = [each for each in both[key] if any(same(each, v) for v in value)]
        elif key == "const":
            return None
        elif key == "properties":
            members = dict(both[key])
            for name, inner in value.items():
                members[name] = {"allOf": [members[name], inner]} if name in members else inner
            both[key] = members
        elif key == "required":
            both[key] = [*both[key], *value]
        elif key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
            both[key] = max(both[key], value)
        elif key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
            both[key] = min(both[key], value)
        elif key in ("items", "additionalProperties", "contains"):
            both[key] = {"allOf": [both[key], value]}
        elif key in ("pattern", "multipleOf", "patternProperties", "prefixItems"):
            raise Unmade(f"two values of {key!r} for one place are beyond this engine")
        else:
            both[key] = value  # Why: title, description and their like say nothing of values.
    return both
