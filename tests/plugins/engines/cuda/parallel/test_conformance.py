"""The front under the engine kit: mock engines in groups, over real sockets."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.parallel.stubs import Plan, groups
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit
from tokenwire.plugins.engines.mock.settings import MockSettings

WAYS = {
    "two instances": ({}, {}, {"instance_count": 2}),
    "two parts": ({}, {"parts": 2}, {}),
    "followers": ({}, {"followers": 1}, {}),
    "a small cap": ({"credit_cap": 4, "context_length": 512}, {"parts": 2}, {}),
}
SLOW = 30.0
"""Milliseconds a token, where steps are counted until a word crosses two threads and a socket."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("law", LAWS)
def test_it_conforms(law: str, way: str) -> None:
    mock, shape, fields = WAYS[way]
    pace = SLOW if law == "an_abort_ends" else 0.1
    plan = Plan(MockSettings(token_ms=pace, **mock), **shape)
    run_engine_kit(lambda: groups(plan, **fields), laws=(law,), jobs=100)
