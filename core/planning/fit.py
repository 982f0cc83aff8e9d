"""Which layouts there are, which hold the model, and how few GPUs do. Knows bytes, and no time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.shape import ModelShape
from tokenwire.core.cost.weights import kv_room, sequence_bytes, weight_bytes
from tokenwire.core.planning.request import PlanRequest, Pool

__all__ = ("SEARCHED", "candidates", "room", "smallest")

SEARCHED: Final = 1024
"""How far the search for the smallest number goes."""


def candidates(shape: ModelShape, gpus: int, domain: int) -> tuple[Layout, ...]:
    """Every layout that is worth a row: powers of two; what is cut stays in a domain; each GPU has
    whole heads and whole experts."""
    cuts = [cut for cut in _powers(min(gpus, domain)) if _can_cut(shape, cut)]
    found = [Layout(cut) for cut in cuts]
    if shape.moe is None:
        return tuple(found)
    for cut in cuts:
        parts = _powers(gpus // cut)
        found += [Layout(cut, n) for n in parts if n > 1 and shape.moe.experts % n == 0]
    return tuple(found)


def room(request: PlanRequest, layout: Layout, pool: Pool | None = None) -> int:
    """Sequences of the request's context that each part holds beside the weights."""
    memory = (pool or request.decode).cluster.gpu.memory * request.fraction
    weights = weight_bytes(request.shape, request.precision, layout)
    each = sequence_bytes(request.shape, request.kv_dtype, request.context, layout)
    return kv_room(memory, weights, each)


def smallest(request: PlanRequest) -> Layout | None:
    """The layout of fewest GPUs that holds the weights and one sequence; None up to SEARCHED."""
    every = candidates(request.shape, SEARCHED, request.decode.cluster.domain)
    for layout in sorted(every, key=lambda each: (each.gpus, -each.tensor)):
        if room(request, layout) > 0:
            return layout
    return None


def _can_cut(shape: ModelShape, cut: int) -> bool:
    width = shape.moe.width if shape.moe else shape.dense_width
    return shape.attention.heads % cut == 0 and width % cut == 0


def _powers(most: int) -> Iterator[int]:
    """1, 2, 4, ... up to `most`."""
    return (1 << power for power in range(most.bit_length()))
