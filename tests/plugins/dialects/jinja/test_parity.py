"""Byte for byte what transformers renders, on published templates and made-up dialogues."""

from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import share
from tests.shared_files import shared
from tokenwire.core.dialogue import (
    Dialogue,
    Reasoning,
    ReasoningSettings,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.plugins.dialects.jinja.messages import to_messages, to_tools
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate
from tokenwire.plugins.dialects.jinja.variables import reasoning_variables

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
pytestmark = pytest.mark.torch  # Why: transformers comes with the same extra.
NOW = 1_700_000_000.0

words = st.sampled_from(
    ["hi", " lead", "trail \n", "é🌊 <b>&\"'\\", "{{ x }}", "{% if %}", "a\n\nb", ""]
)
schemas = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {
            "type": "object",
            "properties": {
                "port": {"type": "string", "description": "Which é <port>?", "enum": ["a", "b"]},
                "n": {"type": "integer", "description": "how many"},
            },
            "required": ["port"],
        },
    ]
)
tools = st.builds(
    lambda name, text, schema: ToolSpec(name, text, json.dumps(schema)),
    st.sampled_from(["get_tide", "set_lamp"]), words, schemas,
)  # fmt: skip
arguments = st.sampled_from(
    ["{}", '{"port": "Fá\\nro", "n": 3}', '{"port": [1.5, null, {"x": true}]}']
)


@st.composite
def dialogues(draw) -> Dialogue:
    turns = []
    if draw(st.booleans()):
        turns.append(Turn(draw(st.sampled_from(("system", "developer"))), (Text(draw(words)),)))
    for n in range(draw(st.integers(1, 3))):
        turns.append(
            Turn("user", (Text(draw(words)), *draw(st.lists(words.map(Text), max_size=1))))
        )
        parts = draw(st.lists(st.sampled_from(["why so", "a\n"]).map(Reasoning), max_size=1))
        parts += draw(st.lists(words.map(Text), max_size=1))
        if draw(st.booleans()):
            ids = [f"callNr{n}x{k}" for k in range(draw(st.integers(1, 2)))]
            parts += [ToolCall(id, "get_tide", draw(arguments)) for id in ids]
            turns.append(Turn("assistant", tuple(parts)))
            turns += [Turn("tool", (ToolResult(id, (Text(draw(words)),)),)) for id in ids]
            if draw(st.booleans()):
                continue
            parts = [Text("done")]
        turns.append(Turn("assistant", tuple(parts)))
    if turns[-1].role == "assistant" and draw(st.booleans()):
        turns.append(Turn("user", (Text(draw(words)),)))
    return Dialogue(
        turns=tuple(turns),
        tools=tuple(draw(st.lists(tools, max_size=2))),
        reasoning=ReasoningSettings(draw(st.sampled_from([None, "on", "off"]))),
    )


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(NOW, datetime.UTC)


@pytest.fixture
def reference(monkeypatch):
    """transformers' renderer, at a fixed time."""
    utils = pytest.importorskip("transformers.utils.chat_template_utils")
    monkeypatch.setattr(utils, "datetime", Fixed)

    def render(template: JinjaTemplate, dialogue: Dialogue) -> str | None:
        variables = reasoning_variables(dialogue.reasoning, template.variables)
        try:
            texts, _ = utils.render_jinja_template(
                [to_messages(dialogue, template.habits)],
                tools=to_tools(dialogue.tools, template.habits),
                chat_template=template.source,
                continue_final_message=dialogue.continue_final,
                add_generation_prompt=not dialogue.continue_final,
                **TOKENS,
                **variables,
            )
        except Exception:
            return None
        return texts[0]

    return render


def own(template: JinjaTemplate, dialogue: Dialogue) -> str | None:
    try:
        return template.render(dialogue, NOW).text
    except RequestError:
        return None


def test_every_published_template_renders_as_the_reference_does(reference) -> None:
    paths = sorted(shared("templates").glob("*.jinja"))
    assert paths
    templates = {
        path.name: JinjaTemplate(path.read_text(encoding="utf-8"), Settings(), TOKENS)
        for path in paths
    }
    rendered = set()

    @share(15)
    @given(dialogues())
    def check(dialogue: Dialogue) -> None:
        for name, template in templates.items():
            wanted = reference(template, dialogue)
            if wanted is not None:
                rendered.add(name)
                assert own(template, dialogue) == wanted, name

    check()
    assert len(rendered) >= len(paths) - 1


@pytest.mark.parametrize("final", ["The answer", " padded \n", "a\n\nb  "])
def test_a_final_message_is_continued_as_the_reference_does(reference, final: str) -> None:
    turns = (Turn("user", (Text("hi"),)), Turn("assistant", (Text(final),)))
    dialogue = Dialogue(turns=turns, continue_final=True)
    compared = 0
    for path in sorted(shared("templates").glob("*.jinja")):
        template = JinjaTemplate(path.read_text(encoding="utf-8"), Settings(), TOKENS)
        wanted = reference(template, dialogue)
        if wanted is not None:
            compared += 1
            assert own(template, dialogue) == wanted, path.name
    assert compared > 40


@pytest.mark.parametrize(
    "source",
    [
        "{% if tools is defined and tools %}T{% else %}N{% endif %}",
        "{% if tools is not none %}T{% else %}N{% endif %}",
        "{% if tools %}T{% endif %}|{{ documents is none }}",
        "{% for m in messages %}\n  {% if m.role == 'user' %}\nU:{{ m.content }}\n  {% endif %}\n"
        "{% endfor %}",
        "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
        "{{ pad_token }}",
        "{{ strftime_now('%d %b %Y') }}{{ messages | tojson(indent=2) }}{{ messages[0] | tojson }}",
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
        "{{ messages | length }}{% for m in messages %}{% continue %}{% endfor %}",
    ],
)
def test_globals_filters_and_trimming_are_the_reference_s(reference, source: str) -> None:
    template = JinjaTemplate(source, Settings(), TOKENS)
    dialogue = Dialogue(turns=(Turn("user", (Text("hi <é> \"q\" 'a'"),)),))
    assert own(template, dialogue) == reference(template, dialogue)
