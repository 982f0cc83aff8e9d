"""What published templates write that show answers only in part or by further variables."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from msgspec import Struct

from tests.examples import share
from tests.plugins.dialects import laws
from tests.plugins.dialects.reading import read
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.fold import Part
from tokenwire.core.prompt import Phase
from tokenwire.plugins.dialects.prefixed.families import FAMILIES


class Written(Struct, frozen=True):
    """What a template does with answers."""

    family: str
    head: str
    """What opens an assistant's turn."""
    end: str
    """What closes it."""
    phase: Phase = "content"
    """Where prompts of answers with reasoning end; `content`: it shows none."""
    after: str = ""
    """What it writes between text and a call, beside the marker."""
    next_turn: tuple[Turn, ...] = ()
    """What has to follow an answer that is written so."""
    args: Mapping[str, object] = {}
    """Further variables that it needs."""


TEMPLATES = {
    # In an answer's own prompt the reasoning is open; the same answer as history opens none.
    "Apriel-1.6-15b-Thinker-fixed": Written("apriel", "<|begin_assistant|>\n", "", "reasoning"),
    "NVIDIA-Nemotron-Nano-v2": Written(
        "nemotron_nano_v2",
        "<SPECIAL_11>Assistant\n",
        "\n<SPECIAL_12>\n",
        next_turn=(Turn("user", (Text("And then?"),)),),
    ),
    "fireworks-ai-llama-3-firefunction-v2": Written(
        "firefunction",
        "assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
        after=" ",
        args={"functions": "[]", "datetime": "today"},
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    shown = TEMPLATES[name]
    maker = FAMILIES[shown.family].maker("auto")
    covered = laws.Covered(
        name, thinks=shown.phase == "reasoning", calls=3, trims=None, thought_trims=None
    )
    template = laws.template_of(covered)

    @share(25)
    @given(laws.turns(maker, covered))
    def check(turn: Turn) -> None:
        turns = (laws.QUESTION, turn, *shown.next_turn)
        dialogue = Dialogue(turns, tools=laws.TOOLS, template_args=shown.args)
        text = template.render(dialogue, laws.NOW).text
        text = text[text.rindex(laws.ASKED) :]
        text = text[text.index(shown.head) + len(shown.head) : text.rindex(shown.end)]
        wanted = laws.wanted_of(turn)
        phase = shown.phase if wanted[0].kind == "reasoning" else "content"
        for k, part in enumerate(wanted[:-1]):
            if part.kind == "text":
                wanted[k] = Part("text", part.text + shown.after)
        assert read(text, maker=maker, tools=laws.TOOLS, phase=phase) == wanted

    check()
