"""Loads of the last steps, mapped back to logical experts, and when they ask for a rebalance."""

from __future__ import annotations

import numpy as np
import pytest

from tokenwire.plugins.engines.cuda.policy.experts.bursty import per_step
from tokenwire.plugins.engines.cuda.policy.experts.placement import Layout, placement_of
from tokenwire.plugins.engines.cuda.policy.experts.window import LoadWindow, logical_counts

LAYOUT = Layout(3, 4, 2)
FIRST = placement_of(LAYOUT, np.array([[0, 1, 2, 0], [2, 2, 1, 0]]))
SECOND = placement_of(LAYOUT, np.array([[0, 1, 2, 1], [2, 2, 1, 0]]))
COUNTS = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])


def test_replicas_are_summed_to_their_expert() -> None:
    assert logical_counts(COUNTS, FIRST).tolist() == [[5, 2, 3], [8, 7, 11]]
    with pytest.raises(ValueError, match="wanted counts"):
        logical_counts(COUNTS[:, :3], FIRST)


def test_a_window_spans_a_change_of_placement() -> None:
    window = LoadWindow(LAYOUT, 2, steps=2)
    assert len(window) == 0
    window.push(COUNTS * 100, FIRST)
    window.push(COUNTS, FIRST)
    window.push(COUNTS, SECOND)
    assert len(window) == 2
    assert window.load()[:, 0].tolist() == [[5, 2, 3], [1, 6, 3]]
    assert window.total().tolist() == [[6, 8, 6], [16, 14, 22]]
    np.testing.assert_allclose(window.balancedness(), [[5 / 7, 13 / 15]] * 2, rtol=1e-6)
    assert per_step(window.load(), LAYOUT).layout == LAYOUT


def test_it_is_steps_that_have_to_be_even_and_not_their_sum() -> None:
    window = LoadWindow(LAYOUT, 2, steps=4, interval=4, bar=0.9)
    for step in range(4):
        window.push(np.roll([[8, 0, 0, 0]] * 2, 2 * step, axis=1), FIRST)
    verdict = window.verdict()
    assert verdict.wants_rebalance
    assert verdict.balancedness == pytest.approx(0.5)
    assert "unbalanced: 0.500 of at least 0.900" in verdict.reason


def test_when_it_looks() -> None:
    """First after a quarter of the interval, then after a whole one, whatever it found."""
    uneven, even = np.array([[4, 0, 0, 0]] * 2), np.ones((2, 4), dtype=np.int64)
    window = LoadWindow(LAYOUT, 2, steps=1, interval=8, bar=0.9)
    looked = []
    assert window.verdict().balancedness == 1
    for step in range(1, 20):
        window.push(even if step < 9 else uneven, FIRST)
        verdict = window.verdict()
        if not verdict.reason.startswith("next look"):
            looked.append((step, verdict.wants_rebalance))
    assert looked == [(2, False), (10, True), (18, True)]


def test_what_does_not_fit() -> None:
    window = LoadWindow(LAYOUT, 2)
    with pytest.raises(ValueError, match="wanted a placement for"):
        window.push(COUNTS[:1], placement_of(LAYOUT, FIRST.physical_to_logical[:1]))
    with pytest.raises(ValueError, match="wanted counts"):
        window.push(COUNTS[:, :3], FIRST)
    for wrong in ({"steps": 0}, {"interval": 0}, {"bar": 1.5}):
        with pytest.raises(ValueError, match="wanted a window"):
            LoadWindow(LAYOUT, 2, **wrong)
