"""KV in 8-bit floats: what is kept, how much more of it, and answers that do not depend on who
shares or finds it."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.driving import engine, job, poison, run, waves

pytestmark = pytest.mark.torch

PROMPT = [5, 17, 99, 42, 42, 7, 11, 12, 13]


@pytest.mark.parametrize("overlap", [False, True])
def test_answers_from_fp8_are_the_same_from_the_cache_and_beside_others(overlap: bool) -> None:
    alone = run(engine(kv_dtype="fp8"), job("a", PROMPT))["a", 0]
    made = engine(kv_dtype="fp8", overlap=overlap)
    poison(made)
    found = waves(made, [job("a", PROMPT), job("b", [9, 8])], [job("c", PROMPT)])
    assert found["a", 0].ids == found["c", 0].ids == alone.ids
    assert found["c", 0].counts.cached == 8
    assert len(alone.ids) == 12


def test_fp8_takes_a_quarter_of_float32_and_is_told() -> None:
    plain, small = engine().status(), engine(kv_dtype="fp8").status()
    assert small.about["kv_dtype"] == "float8_e4m3fn"
    assert small.card.kv_layout.dtype == "fp8"
    assert small.card.hash_root != plain.card.hash_root, "blocks of another dtype are others"
    # The null block aside, the same memory holds four times as many.
    assert small.kv_blocks_total + 1 == pytest.approx(4 * (plain.kv_blocks_total + 1), rel=0.02)
