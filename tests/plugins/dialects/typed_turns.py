"""Turns whose arguments have the types that their tools declare: what tagged formats can say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial

from hypothesis import strategies as st
from msgspec.structs import replace

from tests.plugins.dialects.laws import Covered, turn_of
from tokenwire.core.dialogue import ToolCall, ToolSpec
from tokenwire.core.ports.dialect import ParserMaker
from tokenwire.plugins.dialects._shared.tag_spelling import TagSpelling

__all__ = ("TOOLS", "typed")

SCHEMA = json.dumps({
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "any"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "map": {"$ref": "#/$defs/map"},
    },
    "$defs": {"map": {"type": "object", "properties": {
        "name": {"type": "string"}, "sizes": {"type": "array", "items": {"type": "number"}},
    }}},
})  # fmt: skip
TOOLS = (ToolSpec("f", "Does it.", SCHEMA), ToolSpec("get_tide.2", "Other.", SCHEMA))
BITS = ("\n", "\n\n", '"', "\\", "}", "{", "<", ">", "</", "é🌊", "007", " ", "<b>", "null", "True",
        "]]>", "&amp;", "'")  # fmt: skip


def letters(markers: Iterable[str], *, values: bool = False) -> st.SearchStrategy[str]:
    """Texts that spell none of the markers; `values` may."""
    plain = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
    bits = (*BITS, *markers) if values else BITS
    joined = st.lists(st.sampled_from(bits) | plain, max_size=5).map("".join)
    return joined if values else joined.filter(lambda t: not any(m in t for m in markers))


def ending(spelling: TagSpelling) -> re.Pattern[str]:
    """What ends a value wherever it stands: no reader can tell it from text of the value."""

    def any_of(*patterns: str) -> str:
        return "|".join(filter(None, patterns))

    key = r"\s*".join(map(re.escape, spelling.key_end))
    param = rf"{re.escape(spelling.param)}[^<\n]*?{key}"
    follow = any_of(param, re.escape(spelling.end), re.escape(spelling.close))
    after = any_of(*map(re.escape, spelling.after))
    closing, end = re.escape(spelling.value_end), re.escape(spelling.end)
    return re.compile(rf"{closing}\s*(?:{follow})|{end}\s*(?:{after})")


def arguments(
    inside: Iterable[str], spelling: TagSpelling | None, *, nulls: bool
) -> st.SearchStrategy[dict[str, object]]:
    strings = letters(inside, values=True)
    if spelling is not None:
        ends = ending(spelling)
        strings = strings.filter(lambda text: ends.search(text) is None)
    numbers = st.integers(-(2**70), 2**70)
    floats = st.floats(allow_nan=False, allow_infinity=False, width=32)
    maps = st.fixed_dictionaries(
        {"name": strings}, optional={"sizes": st.lists(floats, min_size=1, max_size=2)}
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "text": strings,
            "maybe": strings.filter(lambda t: t.strip() not in ("null", "None"))
            | (st.none() if nulls else st.nothing()),
            "count": numbers,
            "share": floats,
            "flag": st.booleans(),
            "list": st.lists(numbers, max_size=3),
            "map": maps,
        },
    )


def typed(
    maker: ParserMaker,
    covered: Covered,
    *,
    inside: Iterable[str] = (),
    spelling: TagSpelling | None = None,
    nulls: bool = True,
) -> Covered:
    """`covered` with such turns. `inside`: spellings that may stand in argument strings, but not
    such that end a value of `spelling`."""
    texts = letters(maker.markers)
    said = texts.map(lambda text: text.strip(covered.trims)).filter(str.strip)
    thought = texts.map(lambda text: text.strip(covered.thought_trims)).filter(str.strip)
    called = st.builds(
        lambda tool, given: ToolCall("call00001", tool, json.dumps(given, ensure_ascii=False)),
        st.sampled_from([tool.name for tool in TOOLS]),
        arguments(inside, spelling, nulls=nulls),
    )
    made = st.builds(
        partial(turn_of, covered),
        st.none() | thought,
        st.none() | said,
        st.lists(called, max_size=3),
    )
    return replace(covered, turns=made, tools=TOOLS, exact=False)
