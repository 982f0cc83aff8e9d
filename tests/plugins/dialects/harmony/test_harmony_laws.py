"""The laws of every family, with the published gpt-oss template and with our own."""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from tests.plugins.dialects import laws
from tokenwire.core.dialogue import Reasoning, Text, ToolCall, Turn
from tokenwire.core.testing.dialect_kit import run_dialect_kit
from tokenwire.core.testing.dialect_probe import ANSWERS
from tokenwire.plugins.dialects.harmony.maker import HarmonyMaker
from tokenwire.plugins.dialects.harmony.markers import ALL
from tokenwire.plugins.dialects.harmony.template import HarmonyTemplate

END = "<|call|><|start|>assistant"
OUTSIDE = laws.strings(()).filter(lambda text: text.strip() != "")
CALLS = st.builds(
    lambda name, given: ToolCall("c1", name, json.dumps(given, ensure_ascii=False)),
    st.sampled_from(("f", "get_tide")),
    st.dictionaries(laws.strings(ALL), laws.strings(ALL) | st.integers() | st.none(), max_size=3),
)
PUBLISHED = st.one_of(
    OUTSIDE.map(lambda text: Turn("assistant", (Text(text),))),
    CALLS.map(lambda call: Turn("assistant", (call,))),
    st.builds(lambda text, call: Turn("assistant", (Reasoning(text), call)), OUTSIDE, CALLS),
)
"""It shows one call, behind reasoning or a text that it takes for reasoning."""
OURS = st.builds(
    lambda thought, text, calls: Turn("assistant", (*(thought if calls else ()), *text, *calls)),
    st.lists(OUTSIDE.map(Reasoning), max_size=1),
    st.lists(OUTSIDE.map(Text), min_size=1, max_size=1),
    st.lists(CALLS, max_size=3),
)
"""It shows no reasoning of an answer that calls nothing."""


class Ours(laws.Covered, frozen=True):
    """Our own template, where the others have a published one."""


COVERED = [
    laws.Covered("openai-gpt-oss-120b", calls=1, trims="", end=END, turns=PUBLISHED),
    Ours("ours", trims="", end=END, turns=OURS),
]


@pytest.mark.parametrize("covered", COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, covered: laws.Covered, monkeypatch) -> None:
    if isinstance(covered, Ours):
        monkeypatch.setattr(laws, "template_of", lambda covered: HarmonyTemplate())
    law(HarmonyMaker(), covered)


def test_harmony_conforms() -> None:
    run_dialect_kit(HarmonyTemplate(), HarmonyMaker(), answers=ANSWERS)
