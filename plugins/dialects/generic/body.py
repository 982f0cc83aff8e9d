"""Reads a region's body that is no streamed JSON: all of it at once, when its end has come.

Arguments are typed by the tool's schema. What cannot be read is no call: the region is text then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.schema import Schema
from tokenwire.plugins.dialects._shared.typed_value import TypedValue, quoted
from tokenwire.plugins.dialects.generic.pattern import Program
from tokenwire.plugins.dialects.generic.search import search

__all__ = ("Body", "arguments_of")

STRING_OR_KEY: Final = re.compile(r'"(?:\\.|[^"\\])*"|(?<=[{,])(\s*)(\w+)(\s*):', re.DOTALL)


class Body(Struct, frozen=True):
    """How a region's arguments are written. `tag`: of xml-inline, the pattern of a pair."""

    content: str
    args: Mapping[str, Any]
    tag: Program | None = None


def arguments_of(text: str, body: Body, name: str, tools: tuple[ToolSpec, ...]) -> str | None:
    """JSON text of the arguments of a call of `name`; None for a text that is none."""
    args = body.args
    if body.content == "json":
        return _lax_json(text, args)
    if body.content == "xml-inline":
        assert body.tag is not None
        pairs = _tagged(text, body.tag)
    elif body.content == "kv-lines":
        pairs = _lines(text, str(args.get("line_sep", "\n")), str(args.get("kv_sep", ":")))
    else:
        return quoted(text)
    return None if pairs is None else _object(pairs, args, Schema.of(tools, name))


def _object(pairs: list[tuple[str, str]], args: Mapping[str, Any], schema: Schema) -> str:
    parser = args.get("value_parser")
    inner = parser.get("args") or {} if isinstance(parser, Mapping) else {}
    is_json = isinstance(parser, Mapping) and parser.get("name") == "json"
    values: dict[str, list[str]] = {}
    for key, raw in pairs:
        written = _lax_json(raw, inner) if is_json else None
        values.setdefault(key, []).append(written or _typed(raw, schema, key))
    members = []
    for key, found in values.items():
        is_merged = len(found) > 1 and bool(args.get("merge_duplicates"))
        members.append(f"{quoted(key)}: " + (f"[{', '.join(found)}]" if is_merged else found[-1]))
    return "{" + ", ".join(members) + "}"


def _lax_json(text: str, args: Mapping[str, Any]) -> str | None:
    """JSON with other string marks (`string_delims`) or bare keys (`unquoted_keys`) as JSON; None
    for what is not even that."""
    text = text.strip()
    for begin, end in args.get("string_delims") or ():
        parts = text.split(begin)
        found = [parts[0]]
        for part in parts[1:]:
            inside, mark, rest = part.partition(end)
            if not mark:
                return None
            found.append(quoted(inside) + rest)
        text = "".join(found)
    if args.get("unquoted_keys"):
        text = STRING_OR_KEY.sub(_keyed, text)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return text


def _keyed(match: re.Match[str]) -> str:
    if match[2] is None:
        return match[0]
    return f'{match[1]}"{match[2]}"{match[3]}:'


def _typed(raw: str, schema: Schema, key: str) -> str:
    value = TypedValue(schema.member(key).kinds)
    return value.push(raw) + value.end()


def _tagged(body: str, tag: Program) -> list[tuple[str, str]] | None:
    """None where something stands between the pairs."""
    pairs: list[tuple[str, str]] = []
    at = 0
    while found := search(tag, body, at, is_final=True):
        if body[at : found.start].strip() or found.end == found.start:
            return None
        pairs.append((found.groups.get("key", ""), found.groups.get("value", "")))
        at = found.end
    return None if body[at:].strip() else pairs


def _lines(body: str, line_end: str, between: str) -> list[tuple[str, str]] | None:
    pairs: list[tuple[str, str]] = []
    for line in body.split(line_end):
        key, mark, value = line.strip().partition(between)
        if line.strip() and not mark:
            return None
        if mark:
            pairs.append((key.strip(), value.strip()))
    return pairs
