"""The laws of every family, over Muse's published template; and headers as models write them."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tests.plugins.dialects.reading import call, read, reasoning, text
from tests.plugins.dialects.typed_turns import typed
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.muse.maker import MuseMaker
from tokenwire.plugins.dialects.muse.markers import SPELLING

COVERED = laws.Covered(
    "muse-glimmer", speaks=False, trims="", thought_trims="", head="<|start|>assistant",
    end="<|eot|>",
)  # fmt: skip
INSIDE = ("</atem:parameter>", "</atem:invoke>", '<atem:parameter name="', "</atem:function_calls>")
F = (
    '<atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="a">x</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls>"
)
X = call("f", '{"a": "x"}')


@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law) -> None:
    law(MuseMaker(), typed(MuseMaker(), COVERED, inside=INSIDE, spelling=SPELLING))


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (" to=user<|message|>Hi", [text("Hi")]),
        ("<|message|>Hi", [text("Hi")]),
        ("Hi to=user", [text("Hi to=user")]),
        (" to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>Hi",
         [reasoning("hm"), text("Hi")]),
        (f" to=f<|message|>{F}<|eom|><|start|>assistant to=f<|message|>{F}<|eot|>", [X, X]),
        (f" to=user<|message|>I look. {F}", [text("I look. "), X]),
        (" to=f<|message|>well", [text("well")]),
        (" to=use", []),
        (f" to=f<|message|>{F[:75]}", [call("f", '{"a": "x', complete=False)]),
    ],
)  # fmt: skip
def test_headers_say_who_a_message_is_for(answer: str, wanted: list) -> None:
    tools = (ToolSpec("f", None, '{"properties": {"a": {"type": "string"}}}'),)
    assert read(answer, maker=MuseMaker(), tools=tools) == wanted
