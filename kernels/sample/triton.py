"""Sampling in Triton: a program reads a row as often as its filters need. Sorts nothing.

Thresholds of top_k and top_p are found by quartering the range of float32, read as integers of the
same order. Noise is the reference's, in uint64 and float64, and computed for blocks alone in which
an id was left. Sums of weights are float64, so that their order decides nothing.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "sample")

BLOCK = 4096


@triton.jit
def scaled_block(row, start, vocabulary, heat, BLOCK: tl.constexpr):
    """(ids, which exist, logits over temperature, the same as integers of one order)."""
    id = start + tl.arange(0, BLOCK)
    there = id < vocabulary
    scaled = tl.div_rn(tl.load(row + id, mask=there, other=float("-inf")), heat)
    scaled = tl.where(scaled == 0.0, 0.0, scaled)  # -0 is 0
    bits = scaled.to(tl.int32, bitcast=True)
    return id, there, scaled, tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def amount_of(there, scaled, peak, keys, key, floor, COUNT: tl.constexpr):
    """1 (COUNT) or the weight exp(scaled - peak), float64, of each id above `key` and not below
    `floor`; 0 of the others."""
    above = there & (keys > key) & (keys >= floor)
    weight = above.to(tl.float32)
    if not COUNT:
        weight = tl.where(above, tl.exp(scaled - peak), 0.0)
    return weight.to(tl.float64)


@triton.jit
def amount_above(row, vocabulary, heat, peak, key, floor, BLOCK: tl.constexpr):
    """What weight the ids above `key` have."""
    amount = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, vocabulary, BLOCK):
        _, there, scaled, keys = scaled_block(row, start, vocabulary, heat, BLOCK)
        amount += amount_of(there, scaled, peak, keys, key, floor, False)
    return tl.sum(amount, 0)


@triton.jit
def least_key(
    row, vocabulary, heat, peak, floor, limit, COUNT: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The lowest int32 with less than `limit` above it: an id's, for amounts change there alone.
    A pass over the row looks at three keys, so that 16 passes do."""
    low, high = tl.full((), -2147483648, tl.int64), tl.full((), 2147483647, tl.int64)
    while low < high:
        quarter = (high - low) >> 2
        middle = (low + high) >> 1
        under, over = low + quarter, middle + quarter
        first = tl.zeros((BLOCK,), dtype=tl.float64)
        second = tl.zeros((BLOCK,), dtype=tl.float64)
        third = tl.zeros((BLOCK,), dtype=tl.float64)
        for start in range(0, vocabulary, BLOCK):
            _, there, scaled, keys = scaled_block(row, start, vocabulary, heat, BLOCK)
            first += amount_of(there, scaled, peak, keys, under.to(tl.int32), floor, COUNT)
            second += amount_of(there, scaled, peak, keys, middle.to(tl.int32), floor, COUNT)
            third += amount_of(there, scaled, peak, keys, over.to(tl.int32), floor, COUNT)
        if tl.sum(first, 0) < limit:
            high = under
        elif tl.sum(second, 0) < limit:
            low, high = under + 1, middle
        elif tl.sum(third, 0) < limit:
            low, high = middle + 1, over
        else:
            low = over + 1
    return low.to(tl.int32)


@triton.jit
def mixed(state):
    """SplitMix64, see reference.py; uint64 wraps."""
    z = state + 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit
def sample_kernel(
    logits, temperature, top_k, top_p, min_p, seeds, positions, ids, row_stride, vocabulary,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """A program: one row."""
    index = tl.program_id(0)
    row = logits + index.to(tl.int64) * row_stride
    peak = tl.full((), float("-inf"), tl.float32)
    chosen = tl.full((), 0, tl.int32)
    for start in range(0, vocabulary, BLOCK):
        id = start + tl.arange(0, BLOCK)
        value = tl.load(row + id, mask=id < vocabulary, other=float("-inf"))
        top = tl.max(value, 0)
        if top > peak:
            peak = top
            chosen = tl.min(tl.where(value == top, id, vocabulary), 0)
    heat = tl.load(temperature + index)
    if heat > 0.0:
        peak = tl.div_rn(peak, heat)
        floor = tl.full((), -2147483648, tl.int32)
        ties = vocabulary
        count = tl.load(top_k + index)
        if (count > 0) & (count < vocabulary):
            floor = least_key(row, vocabulary, heat, peak, floor, count, True, BLOCK)
        mass = tl.load(top_p + index)
        if mass < 1.0:
            nothing = tl.full((), -2147483648, tl.int32)
            whole = amount_above(row, vocabulary, heat, peak, nothing, floor, BLOCK)
            limit = mass.to(tl.float64) * whole
            bits = peak.to(tl.int32, bitcast=True)
            highest = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
            key = least_key(row, vocabulary, heat, peak, floor, limit, False, BLOCK)
            key = tl.minimum(key, highest)
            above = amount_above(row, vocabulary, heat, peak, key, floor, BLOCK)
            bits = tl.where(key < 0, key ^ 0x7FFFFFFF, key)
            weight = tl.exp(bits.to(tl.float32, bitcast=True) - peak).to(tl.float64)
            room = tl.ceil((limit - above) / tl.maximum(weight, 1e-300))
            ties = tl.minimum(tl.maximum(room, 1.0), 2147483647.0).to(tl.int32)
            floor = tl.maximum(floor, key)
        least = tl.load(min_p + index)
        state = mixed(tl.load(positions + index).to(tl.uint64))
        state = mixed(tl.load(seeds + index).to(tl.uint64) + state)
        best = tl.full((), float("-inf"), tl.float64)
        met = 0
        for start in range(0, vocabulary, BLOCK):
            id, there, scaled, keys = scaled_block(row, start, vocabulary, heat, BLOCK)
            equal = (there & (keys == floor)).to(tl.int32)
            kept = there & ((keys > floor) | ((keys == floor) & (met + tl.cumsum(equal) <= ties)))
            kept = kept & (tl.exp(scaled - peak) >= least)
            met += tl.sum(equal, 0)
            if tl.max(kept.to(tl.int32), 0) > 0:
                bits = (mixed(state + id.to(tl.uint64)) >> 11).to(tl.int64)
                uniform = (bits.to(tl.float64) + 0.5) * 1.1102230246251565e-16
                noise = -tl.log(-tl.log(uniform))
                score = tl.where(kept, (scaled - peak).to(tl.float64) + noise, float("-inf"))
                top = tl.max(score, 0)
                if top > best:
                    best = top
                    chosen = tl.min(tl.where(score == top, id, vocabulary), 0)
    tl.store(ids + index, chosen.to(tl.int64))


def sample(
    logits: Tensor,
    temperature: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
) -> Tensor:
    """See reference.sample. The ids are the reference's but where rounding decides: sums here are
    more exact than float32's."""
    rows, vocabulary = logits.shape
    ids = torch.empty(rows, dtype=torch.int64, device=logits.device)
    if rows:
        block = min(BLOCK, triton.next_power_of_2(vocabulary))
        sample_kernel[(rows,)](
            logits, temperature, top_k, top_p, min_p, seeds, positions, ids, logits.stride(0),
            vocabulary, BLOCK=block, num_warps=max(4, block // 512),
        )  # fmt: skip
    return ids


def _launch(vocabulary: int) -> None:
    reals, wholes = meta(64, dtype=torch.float32), meta(64, dtype=torch.int64)
    logits, counts = meta(64, vocabulary, dtype=torch.float32), meta(64, dtype=torch.int32)
    sample(logits, reals, counts, reals, reals, wholes, wholes)


SPECIALISATIONS = (Specialisation("vocabulary of 151936", lambda: _launch(151936)),)
