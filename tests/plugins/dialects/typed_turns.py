"""Answers with arguments of declared types, as published templates write them, read again."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from tests.plugins.dialects.reading import call, reasoning, template_source, text
from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolSpec, Turn
from tokenwire.core.events import Started
from tokenwire.core.fold import Part, fold
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects._shared.family import Family
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

__all__ = ("TOOLS", "Shown", "check_answers")

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
QUESTION = Turn("user", (Text("Do it."),))
BITS = ("\n", "\n\n", '"', "\\", "}", "{", "<", ">", "</", "é🌊", "007", " ", "<b>", "null", "True",
        "]]>", "&amp;", "'")  # fmt: skip


class Shown(Struct, frozen=True):
    """What a template does with answers."""

    head: str
    """What opens an assistant's turn."""
    end: str
    """What closes it."""
    thinks: bool = True
    """Whether it shows reasoning."""
    speaks: bool = True
    """Whether it shows text beside calls."""
    nulls: bool = True
    """Whether it writes nulls."""
    strips: str | None = "\n"
    """What it takes off the ends of text and reasoning; None: white space of every kind."""


def letters(markers: Iterable[str], *, values: bool = False) -> st.SearchStrategy[str]:
    """Texts that spell none of the markers; `values` may."""
    plain = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
    bits = (*BITS, *markers) if values else BITS
    joined = st.lists(st.sampled_from(bits) | plain, max_size=5).map("".join)
    return joined if values else joined.filter(lambda t: not any(m in t for m in markers))


def arguments(inside: Iterable[str], *, nulls: bool) -> st.SearchStrategy[dict[str, object]]:
    strings = letters(inside, values=True)
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


def check_answers(
    family: Family, name: str, shown: Shown, *, inside: Iterable[str] = (), examples: int = 25
) -> None:
    """What the template `name` writes of an answer is read as that answer. `inside`: spellings of
    the family that may stand in argument strings."""
    setup = ParserSetup(tools=TOOLS)
    own = JinjaTemplate(template_source(name), Settings())
    maker = family.maker("auto")
    texts = letters(maker.markers)

    def visible(said: str) -> bool:
        return said.strip(shown.strips) == said and bool(said.strip())

    texts = texts.filter(visible)
    called = st.builds(
        lambda tool, given: ToolCall("c1", tool, json.dumps(given, ensure_ascii=False)),
        st.sampled_from([tool.name for tool in TOOLS]),
        arguments(inside, nulls=shown.nulls),
    )

    def answer(parts: tuple[Reasoning | Text | ToolCall, ...]) -> str:
        turns = (QUESTION, Turn("assistant", parts))
        whole = own.render(Dialogue(turns=turns, tools=TOOLS), 0.0).text
        rest = whole[whole.index(shown.head) + len(shown.head) :]
        return rest[: rest.rindex(shown.end)] if shown.end in rest else rest

    @settings(derandomize=True, max_examples=examples, deadline=None)
    @given(
        st.none() | texts if shown.thinks else st.none(),
        st.none() | texts,
        st.lists(called, max_size=3),
        st.integers(0, 300),
    )
    def check(thought, said, calls, place) -> None:
        if calls and not shown.speaks:
            said = None
        parts = (
            *([Reasoning(thought)] if thought else []),
            *([Text(said)] if said else []),
            *calls,
        )
        if not said and not calls:
            return
        wanted = [
            *([reasoning(thought)] if thought else []),
            *([text(said)] if said else []),
            *(call(part.name, part.arguments) for part in calls),
        ]
        written = answer(parts)
        for pieces in ([written], list(written), [written[:place], written[place:]]):
            got = run(maker, setup, map(Piece, pieces), saves=len(pieces) == 2)
            assert _values(got) == _values(wanted)

    check()


def run(
    maker: ParserMaker, setup: ParserSetup, pieces: Iterable[Piece], *, saves: bool
) -> list[Part]:
    """The parts; with `saves`, the parser is saved and restored behind each piece."""
    parser, events = maker.parser(setup), [Started(0)]
    for piece in pieces:
        events += parser.push(piece)
        if saves:
            state = msgspec.msgpack.decode(msgspec.msgpack.encode(parser.save()))
            parser = maker.parser(setup)
            parser.restore(state)
    return list(fold([*events, *parser.flush()]).choices[0].parts)


def _values(parts):
    """Calls by their values: numbers are compared as numbers."""
    return [
        (part.kind, part.name, json.loads(part.text), part.complete)
        if part.kind == "tool_call"
        else (part.kind, part.text)
        for part in parts
    ]
