"""Layouts and loads that the tests of expert balance share."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Layout,
    Placement,
    placement_of,
)

EXAMPLE = np.array(
    [
        [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
        [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
    ],
    dtype=np.float32,
)[None]
"""[1 step, 2 layers, 12 experts]: the example that the published algorithm comes with."""


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    nodes = draw(st.integers(1, 3))
    ranks = nodes * draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, nodes, 2 * nodes]))
    experts = groups * draw(st.integers(1, 4))
    if groups % nodes:
        experts *= nodes
    room = -(-experts // ranks) + draw(st.integers(0, 2))
    return Layout(experts, ranks * room, ranks, nodes, groups)


@st.composite
def loads(draw: st.DrawFn, layout: Layout, layers: int | None = None) -> Floats:
    """From quiet to bursty, with steps and experts that get nothing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.integers(1, 12)), layers or draw(st.integers(1, 3)), layout.experts)
    mean = rng.gamma(draw(st.sampled_from([0.05, 1.0, 50.0])), 1, shape)
    if draw(st.booleans()):
        mean[rng.integers(0, shape[0])] = 0
    return rng.poisson(mean * 20).astype(np.float32)


@st.composite
def placements(draw: st.DrawFn, layout: Layout, layers: int) -> Placement:
    """Any that fits, not only what a policy would make."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    more = rng.integers(0, layout.experts, (layers, layout.slots - layout.experts))
    table = np.concatenate([np.tile(np.arange(layout.experts), (layers, 1)), more], axis=1)
    return placement_of(layout, rng.permuted(table, axis=1))
