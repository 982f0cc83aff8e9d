"""The laws of every family, with the published Gemma templates."""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from tests.plugins.dialects import laws
from tokenwire.core.dialogue import Reasoning, Text, ToolCall, Turn
from tokenwire.plugins.dialects.gemma.maker import gemma3_maker, gemma4_maker

QUOTE = '<|"|>'
MARKERS = gemma4_maker().markers
INSIDE = laws.strings(tuple(m for m in MARKERS if m not in (QUOTE, "<|", '"'))).filter(
    lambda text: QUOTE not in text
)
OUTSIDE = laws.strings(()).map(str.strip).filter(bool)
NUMBERS = st.integers(-(2**70), 2**70)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ANY = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | INSIDE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(("a", "b c", "d_1")), inner, max_size=2
    ),
    max_leaves=6,
)  # fmt: skip
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "text": INSIDE,
        "count": NUMBERS,
        "share": FLOATS,
        "flag": st.booleans(),
        "list": st.lists(NUMBERS, max_size=3),
        "map": st.fixed_dictionaries({"name": INSIDE}),
        "any": ANY,
    },
)
CALLS = st.builds(
    lambda name, given: ToolCall("c1", name, json.dumps(given, ensure_ascii=False, sort_keys=True)),
    st.sampled_from(("f", "get_tide")),
    ARGUMENTS,
)
TURNS = st.one_of(
    OUTSIDE.map(lambda text: Turn("assistant", (Text(text),))),
    st.builds(
        lambda thought, calls: Turn("assistant", (*thought, *calls)),
        st.lists(OUTSIDE.map(Reasoning), max_size=1),
        st.lists(CALLS, min_size=1, max_size=3),
    ),
)
"""It shows reasoning before calls only, and sorts the keys of objects."""
COVERED = [
    laws.Covered(
        name, trims=None, exact=False, head="<|turn>model\n", end=end, turns=TURNS, speaks=False
    )
    for name, end in (
        ("google-gemma-4-31B-it", "<|tool_response>"),
        ("google-gemma-4-31B-it-interleaved", "<turn|>"),
    )
]
GEMMA2 = laws.Covered("google-gemma-2-2b-it", thinks=False, speaks=False, calls=0, trims=None)


@pytest.mark.parametrize("covered", COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, covered: laws.Covered) -> None:
    law(gemma4_maker(), covered)


@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold_without_calls(law: laws.Law) -> None:
    law(gemma3_maker(), GEMMA2)
