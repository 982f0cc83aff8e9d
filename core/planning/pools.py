"""Prefill and decode apart: how many GPUs of each keep one another busy, and what tokens cost.

With r requests/s of one GPU, p of the prefill pool and d of the decode pool: balance is at p/d
decode GPUs for each prefill GPU, where all together serve p*d/(p+d) a GPU; 1:1 serves min(p, d)/2.
"""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct

from tokenwire.core.cost.exchange import kv_transfer_seconds
from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.prefill import prefill_rate
from tokenwire.core.cost.weights import sequence_bytes
from tokenwire.core.planning.fit import candidates, room
from tokenwire.core.planning.points import Point
from tokenwire.core.planning.request import PlanRequest

__all__ = ("STEP_TOKENS", "Costs", "Pools", "Split", "balanced")


STEP_TOKENS: Final = 8192
"""Of a prefill step, for each part: short prompts go together."""


class Split(Struct, frozen=True):
    """Whole groups of both pools within the GPUs that there are."""

    prefill_groups: int
    decode_groups: int
    requests_per_s: float


class Costs(Struct, frozen=True):
    """Of a million tokens, in the prices' currency."""

    input: float
    output: float
    blended: float
    """Of prompts and answers together, at the request's lengths."""


class Pools(Struct, frozen=True):
    """Both pools at the request's lengths."""

    prefill_layout: Layout
    prefill_per_gpu: float
    """Prompt tokens/s."""
    decode_per_prefill: float
    """GPUs of the decode pool for each GPU of the prefill pool, at balance."""
    requests_balanced: float
    """Requests/s of all GPUs, at exactly that ratio."""
    requests_even: float
    """Requests/s of all GPUs at 1:1."""
    split: Split | None
    """None: one group of each takes more GPUs than there are."""
    prefill_groups_beside: int
    """That feed all the GPUs, where all of them decode."""
    kv_bytes: float
    """Of a prompt."""
    kv_seconds: float
    """To hand a prompt's KV over, by all GPUs that hold a part of it, each over its own network."""
    costs: Costs | None
    """None: no prices were said."""


def balanced(request: PlanRequest, decode: Point) -> Pools | None:
    """Around a decode layout. None where no layout of the prefill pool holds the model."""
    found = _prefill(request)
    if found is None:
        return None
    layout, rate = found
    prompts, answers = rate / request.input, decode.per_gpu / request.output
    kept = request.shape, request.kv_dtype, request.input
    nic = min(request.prefill.cluster.nic, request.decode.cluster.nic)
    return Pools(
        layout,
        rate,
        decode_per_prefill=prompts / answers,
        requests_balanced=request.gpus * prompts * answers / (prompts + answers),
        requests_even=request.gpus * min(prompts, answers) / 2,
        split=_split(request.gpus, layout.gpus, prompts, decode.layout.gpus, answers),
        prefill_groups_beside=math.ceil(
            request.gpus
            // decode.layout.gpus
            * decode.layout.gpus
            * answers
            / (layout.gpus * prompts)
        ),
        kv_bytes=sequence_bytes(*kept),
        kv_seconds=kv_transfer_seconds(sequence_bytes(*kept, layout), nic),
        costs=_costs(request, rate, decode.per_gpu),
    )


def _prefill(request: PlanRequest) -> tuple[Layout, float] | None:
    """The layout that takes most prompt tokens/s a GPU; of equals the smallest."""
    domain = request.prefill.cluster.domain
    rates = [
        (_rate(request, layout), layout)
        for layout in candidates(request.shape, request.gpus, domain)
        if room(request, layout, request.prefill) > 0
    ]
    if not rates:
        return None
    rate, layout = max(rates, key=lambda each: (each[0], -each[1].gpus))
    return layout, rate


def _rate(request: PlanRequest, layout: Layout) -> float:
    bound = prefill_rate(
        request.shape,
        request.prefill.cluster,
        layout,
        prompt=request.input,
        prompts=max(1, STEP_TOKENS // request.input),
        precision=request.precision,
    )
    return bound * request.efficiency


def _split(gpus: int, prefill: int, prompts: float, decode: int, answers: float) -> Split | None:
    """Of all divisions into whole groups the one that serves most; of equals the fewest GPUs."""
    best: tuple[tuple[float, int], Split] | None = None
    for first in range(1, (gpus - decode) // prefill + 1):
        offered = first * prefill * prompts
        # Why not more: what prefill cannot feed only stands idle.
        needed = max(1, math.ceil(offered / (decode * answers)))
        second = min(needed, (gpus - first * prefill) // decode)
        serves = min(offered, second * decode * answers)
        key = serves, -first * prefill - second * decode
        if best is None or key > best[0]:
            best = key, Split(first, second, serves)
    return None if best is None else best[1]


def _costs(request: PlanRequest, prompts: float, answers: float) -> Costs | None:
    """Price an hour / tokens an hour; busy GPUs alone."""
    if request.prefill.price is None or request.decode.price is None:
        return None
    input = request.prefill.price / (prompts * 3600) * 1e6
    output = request.decode.price / (answers * 3600) * 1e6
    both = request.input + request.output
    return Costs(input, output, (input * request.input + output * request.output) / both)
