"""The laws of every family, with the published templates of models that write calls as Python."""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from tests.plugins.dialects import laws
from tokenwire.core.dialogue import Reasoning, Text, ToolCall, Turn
from tokenwire.plugins.dialects.pythonic.families import FAMILIES

# Why so plain: the template escapes nothing in its strings.
words = st.from_regex(r"[a-zé🌊 <>/|.]{1,9}", fullmatch=True).filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(
    lambda given: ToolCall("call00001", "f", json.dumps(given, ensure_ascii=False)),
    st.dictionaries(st.sampled_from(("text", "any", "x_1")), values, max_size=3),
)
TURNS = st.builds(
    lambda thought, said, calls: Turn("assistant", (*thought, *said, *calls)),
    st.just(()) | st.tuples(words.map(Reasoning)),
    st.tuples(words.map(Text)),
    st.lists(calls, max_size=4),
)
COVERED = [
    ("lfm2", laws.Covered("LFM2-8B-A1B", thinks=False, calls=0)),
    ("lfm2", laws.Covered("LFM2.5-Instruct", thinks=False, calls=0)),
    ("lfm2", laws.Covered("LFM2.5-8B-A1B", exact=False, turns=TURNS)),
]


@pytest.mark.parametrize(("family", "covered"), COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, family: str, covered: laws.Covered) -> None:
    law(FAMILIES[family].maker("auto"), covered)
