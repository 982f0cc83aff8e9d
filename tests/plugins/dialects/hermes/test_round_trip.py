"""What a published template writes of an answer, the parser reads as that answer again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.dialects.reading import call, read, reasoning, template_source, text
from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolSpec, Turn
from tokenwire.plugins.dialects.hermes.template import ChatmlTemplate
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

SCHEMA = '{"type": "object", "properties": {"a": {"type": "string", "description": "any"}}}'
TOOLS = (ToolSpec("f", "Does it.", SCHEMA),)
QUESTION = Turn("user", (Text("Do it."),))
MARKERS = (
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "\n",
    '"',
    "\\",
    "}",
    "{",
    "<",
    "é🌊",
)

letters = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
strings = st.lists(st.sampled_from(MARKERS) | letters, max_size=4).map("".join)
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | strings
values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    lambda name, arguments: ToolCall("c1", name, json.dumps(arguments, ensure_ascii=False)),
    st.sampled_from(("f", "get_tide", "Über-Funktion.2")),
    st.dictionaries(strings, values, max_size=3),
)


def without_markers(text: str) -> bool:
    return not any(marker in text for marker in MARKERS[:4])


# Text that is visible, begins with no newline (templates trim it), and spells no marker.
plain = st.lists(letters | st.sampled_from(("\n", "<", ">", " ", "{}", "</")), max_size=5).map(
    "".join
)
texts = plain.filter(lambda t: t.strip() != "" and t[0] != "\n" and without_markers(t))
thoughts = texts.map(lambda t: t.strip("\n")).filter(bool)

TEMPLATES = {
    # name: whether it shows reasoning, and text beside calls
    "chatml": (True, True),
    "Qwen-Qwen3-0.6B": (True, True),
    "Qwen-Qwen2.5-7B-Instruct": (False, True),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": (False, False),
}


def template(name: str):
    return (
        ChatmlTemplate() if name == "chatml" else JinjaTemplate(template_source(name), Settings())
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    own = template(name)
    thinks, speaks = TEMPLATES[name]

    def render(*turns: Turn) -> str:
        return own.render(Dialogue(turns=(QUESTION, *turns), tools=TOOLS), 0.0).text

    prompt = render()

    @given(
        st.none() | thoughts if thinks else st.none(),
        st.none() | texts,
        st.lists(calls, max_size=4),
    )
    def check(thought, said, called) -> None:
        if called and not speaks:
            said = None
        parts = [
            *([Reasoning(thought)] if thought else []),
            *([Text(said)] if said else []),
            *called,
        ]
        whole = render(Turn("assistant", tuple(parts)))
        assert whole.startswith(prompt)
        answer = whole[len(prompt) : whole.rindex("<|im_end|>")]
        wanted = [
            *([reasoning(thought)] if thought else []),
            *([text(said)] if said else []),
            *(call(part.name, part.arguments) for part in called),
        ]
        assert read(answer) == wanted

    check()


@given(st.lists(calls, min_size=1, max_size=3), st.integers(0, 400))
def test_a_cut_answer_gives_a_beginning_of_it(called, end) -> None:
    own = ChatmlTemplate()
    whole = own.render(Dialogue(turns=(Turn("assistant", tuple(called)),)), 0.0).text
    answer = whole[len("<|im_start|>assistant\n") : whole.rindex("<|im_end|>")]
    parts = [part for part in read(answer[:end]) if part.kind == "tool_call"]
    for read_call, made in zip(parts, called, strict=False):
        assert made.arguments.startswith(read_call.text)
        assert read_call.complete == (read_call.text == made.arguments) or not read_call.text
