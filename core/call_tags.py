"""A call's arguments as structural tags, where no style of the engines' own spells them. Pure.

Each property of the tool's schema is a tag of its own, in the schema's order, optional ones or not.
Knows no family: how parameters are written is a `ParamSpelling`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from tokenwire.core.ports.dialect import ParamSpelling

__all__ = ("allows_object", "parameters", "schema_of")

Format: TypeAlias = dict[str, object]

ANY_TEXT: Final[Format] = {"type": "any_text"}
NOTHING: Final[Format] = {"type": "const_string", "value": ""}
QUOTED: Final[Format] = {"type": "regex", "pattern": r"'([^'\\\x00-\x1f]|\\[nt'\\])*'"}
WORDS: Final[Format] = {"type": "regex", "pattern": "true|false|True|False"}
JSON_KINDS: Final = ("integer", "number", "array", "object")
DEFINITIONS: Final = ("$defs", "definitions")


def schema_of(text: str | None) -> Any:
    """A tool's parameters; {} where it has none, or they are no JSON."""
    try:
        return msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeError):
        return {}


def allows_object(schema: Any) -> bool:
    """Whether some JSON object may fit: False only where `type`, `const` or `enum` say that none
    does."""
    if not isinstance(schema, dict):
        return schema is not False
    kinds = schema.get("type", "object")
    if kinds != "object" and "object" not in (kinds if isinstance(kinds, list) else ()):
        return False
    if "const" in schema and not isinstance(schema["const"], dict):
        return False
    choices = schema.get("enum")
    if isinstance(choices, list) and not any(isinstance(each, dict) for each in choices):
        return False
    every, some = schema.get("allOf", []), schema.get("anyOf", schema.get("oneOf", []))
    if isinstance(every, list) and not all(map(allows_object, every)):
        return False
    return not (isinstance(some, list) and some) or any(map(allows_object, some))


def parameters(schema: Any, spelling: ParamSpelling, excludes: Sequence[str] = ()) -> Format:
    """What a call's arguments look like. Any text, where the schema names no properties.
    `excludes`: see CallSpelling."""
    members = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(members, dict) or not members:
        is_closed = isinstance(schema, dict) and schema.get("additionalProperties") is False
        return NOTHING if is_closed or members == {} else ANY_TEXT
    wanted = schema.get("required", [])
    needed = [isinstance(wanted, list) and name in wanted for name in members]
    shared = {key: schema[key] for key in DEFINITIONS if key in schema}
    tags = [
        _parameter(
            name, {**shared, **member} if isinstance(member, dict) else shared, spelling, excludes
        )
        for name, member in members.items()
    ]
    if not spelling.separator:
        return _sequence([_maybe(tag, need) for tag, need in zip(tags, needed, strict=True)])
    return _separated(tags, needed, spelling.separator)


def _separated(tags: list[Format], needed: list[bool], separator: str) -> Format:
    """A separator stands before each parameter but the first that is there."""
    joined = [
        _maybe(_sequence([{"type": "const_string", "value": separator}, tag]), need)
        for tag, need in zip(tags, needed, strict=True)
    ]
    ways: list[Format] = []
    for at, tag in enumerate(tags):
        ways.append(_sequence([tag, *joined[at + 1 :]]))
        if needed[at]:
            break
    else:
        ways.append(NOTHING)
    return ways[0] if len(ways) == 1 else {"type": "or", "elements": ways}


def _parameter(
    name: str, member: dict[str, Any], spelling: ParamSpelling, excludes: Sequence[str]
) -> Format:
    begin = spelling.begin.replace("{}", name)
    return {
        "type": "tag",
        "begin": begin,
        "content": _value(member, spelling, excludes),
        "end": spelling.end,
    }


def _value(member: dict[str, Any], spelling: ParamSpelling, excludes: Sequence[str]) -> Format:
    kind = member.get("type")
    if kind == "boolean" and spelling.has_python_words and "enum" not in member:
        return WORDS
    if spelling.is_bare and kind not in (*JSON_KINDS, "boolean"):
        choices = member.get("enum")
        if isinstance(choices, list) and choices and all(isinstance(c, str) for c in choices):
            return {
                "type": "or",
                "elements": [{"type": "const_string", "value": choice} for choice in choices],
            }
        return {**ANY_TEXT, "excludes": [*excludes]} if excludes else ANY_TEXT
    format: Format = {"type": "json_schema", "json_schema": member}
    if kind == "string" and spelling.has_python_words and "enum" not in member:
        return {"type": "or", "elements": [format, QUOTED]}
    return format


def _maybe(format: Format, is_needed: bool) -> Format:
    return format if is_needed else {"type": "or", "elements": [format, NOTHING]}


def _sequence(elements: list[Format]) -> Format:
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": elements}
