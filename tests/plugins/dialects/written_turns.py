"""Answers with JSON arguments, as published templates write them, read again as those answers."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tests.examples import share
from tests.plugins.dialects.reading import call, read, reasoning, template_source, text
from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolSpec, Turn
from tokenwire.core.prompt import Phase
from tokenwire.plugins.dialects._shared.family import Family
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

__all__ = ("TOOLS", "Written", "check_written")

SCHEMA = json.dumps({
    "type": "object",
    "properties": {"a": {"type": "string", "description": "any"}, "b": {"type": "object"}},
})  # fmt: skip
TOOLS = (ToolSpec("f", "Does it.", SCHEMA), ToolSpec("get_tide.2", "Other.", SCHEMA))
QUESTION = Turn("user", (Text("Do it."),))
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
BITS = ("\n", "\n\n", '"', "\\", "}", "{", "[", "<", "</", "é🌊", " ", "null", "'", ", ", "]")


class Written(Struct, frozen=True):
    """What a template does with answers."""

    head: str
    """What opens an assistant's turn."""
    end: str
    """What closes it."""
    thinks: bool = False
    """Whether it shows reasoning."""
    speaks: bool = True
    """Whether it shows text beside calls."""
    calls: int = 3
    """How many it can show."""
    phase: Phase = "content"
    """Where its prompts end."""
    strips: str | None = "\n"
    """What it takes off the ends of text and reasoning; None: white space of every kind."""
    exact: bool = True
    """Whether it writes strings so that they can be read again, whatever is in them."""
    after: str = ""
    """What it writes between text and a call, beside the marker."""
    follows: bool = False
    """Whether it writes answers so only where another question follows."""
    args: tuple[tuple[str, str], ...] = ()
    """Further variables that it needs."""


def letters(markers: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Texts that spell none of the markers and begin no call that has no marker."""
    plain = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
    joined = st.lists(st.sampled_from(BITS) | plain, max_size=5).map("".join)
    return joined.filter(lambda t: not any(m in t for m in markers) and t.strip()[:1] not in "{[")


def arguments(markers: tuple[str, ...], *, exact: bool) -> st.SearchStrategy[dict[str, object]]:
    """With markers inside strings. Not `exact`: strings without quotes and escapes."""
    plain = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
    strings = st.lists(st.sampled_from((*BITS, *markers)) | plain, max_size=4).map("".join)
    if not exact:
        strings = st.from_regex(r"[a-zé🌊 <>/|]{0,9}", fullmatch=True)
    values = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | strings
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
        max_leaves=5,
    )  # fmt: skip
    keys = strings if exact else st.sampled_from(("a", "b", "c_1"))
    return st.dictionaries(keys, values, max_size=3)


def check_written(family: Family, name: str, shown: Written) -> None:
    """What the template `name` writes of an answer is read as that answer, arguments to the
    letter (to the value where it does not write JSON)."""
    own = JinjaTemplate(template_source(name), Settings(), TOKENS)
    maker = family.maker("auto")
    markers = (*maker.markers, shown.end, *maker.stop_strings)
    texts = letters(markers).filter(lambda t: t.strip(shown.strips) == t and bool(t.strip()))
    called = st.builds(
        lambda tool, given: ToolCall("abcdefgh1", tool, json.dumps(given, ensure_ascii=False)),
        st.sampled_from([tool.name for tool in TOOLS]),
        arguments(markers, exact=shown.exact),
    )

    def answer(parts: tuple[Reasoning | Text | ToolCall, ...]) -> str:
        next_turn = (Turn("user", (Text("And then?"),)),) * shown.follows
        turns = (QUESTION, Turn("assistant", parts), *next_turn)
        dialogue = Dialogue(turns=turns, tools=TOOLS, template_args=dict(shown.args))
        whole = own.render(dialogue, 0.0).text
        whole = whole[whole.rindex("Do it.") :]
        whole = whole[: whole.rindex(shown.end)]
        return whole[whole.index(shown.head) + len(shown.head) :]

    @share(25)
    @given(
        st.none() | texts if shown.thinks else st.none(),
        st.none() | texts,
        st.lists(called, max_size=shown.calls),
    )
    def check(thought, said, calls) -> None:
        if calls and not shown.speaks:
            said = None
        if not said and not calls:
            return
        parts = (
            *([Reasoning(thought)] if thought else []),
            *([Text(said)] if said else []),
            *calls,
        )
        wanted = [
            *([reasoning(thought)] if thought else []),
            *([text(said + shown.after * bool(calls))] if said else []),
            *(call(part.name, part.arguments) for part in calls),
        ]
        phase = shown.phase if thought else "content"
        found = read(answer(parts), maker=maker, tools=TOOLS, phase=phase)
        assert _told(found, exact=shown.exact) == _told(wanted, exact=shown.exact)

    check()


def _told(parts, *, exact: bool):
    return [
        (part.kind, part.name, part.text if exact else json.loads(part.text), part.complete)
        if part.kind == "tool_call"
        else (part.kind, part.text)
        for part in parts
    ]
