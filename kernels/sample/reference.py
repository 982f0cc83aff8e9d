"""From logits to one id a row: the ids that every other sampler must give, exactly.

Temperature, top_k, top_p, min_p, each over what the one before left; then Gumbel-max. Noise is a
function of (seed, position, id) alone, so that no other row, batch or machine changes what is
drawn. Knows nothing of masks, bias and penalties: they are in the logits already.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("filtered", "gumbel", "sample")

NEVER = float("-inf")


def sample(
    logits: Tensor,
    temperature: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
) -> Tensor:
    """One id a row of logits [R, V] fp32 -> [R] int64.

    temperature [R] (0: the likeliest id, the lowest of equals), top_k [R] int32 (0: all),
    top_p [R] (1: all), min_p [R] (0: all), seeds and positions [R] int64. At least one id of a
    row always stays.
    """
    ids = torch.argmax(logits, -1)
    for row in torch.nonzero(temperature).flatten().tolist():
        logprobs = filtered(
            logits[row],
            float(temperature[row]),
            int(top_k[row]),
            float(top_p[row]),
            float(min_p[row]),
        )
        every = torch.arange(logits.shape[1], device=logits.device)
        noise = gumbel(seeds[row], positions[row], every)
        ids[row] = torch.argmax(logprobs.double() + noise)
    return ids


def filtered(logits: Tensor, temperature: float, top_k: int, top_p: float, min_p: float) -> Tensor:
    """Log probabilities [V] of the draw, from logits [V]; -inf: the id was filtered out."""
    scaled = logits / temperature
    if 0 < top_k < scaled.shape[0]:
        lowest = torch.topk(scaled, top_k).values[-1]
        scaled = scaled.masked_fill(scaled < lowest, NEVER)
    if top_p < 1:
        probabilities, order = torch.sort(torch.softmax(scaled, 0), descending=True, stable=True)
        before = torch.cumsum(probabilities, 0) - probabilities
        drop = before >= top_p
        drop[0] = False
        # Why not by a mask as an index: that would wait for the device.
        scaled = scaled.masked_fill(torch.empty_like(drop).scatter(0, order, drop), NEVER)
    if min_p > 0:
        probabilities = torch.softmax(scaled, 0)
        scaled = scaled.masked_fill(probabilities < min_p * probabilities.max(), NEVER)
    return torch.log_softmax(scaled, 0)


def gumbel(seeds: Tensor, positions: Tensor, ids: Tensor) -> Tensor:
    """Standard Gumbel noise, float64, of int64 tensors that broadcast: -log(-log(u)), where u is
    made from the 53 high bits of SplitMix64(key + id), key = SplitMix64(seed +
    SplitMix64(position)). All in uint64, as int64 that wraps."""
    key = _splitmix64(seeds + _splitmix64(positions))
    bits = _shift_right(_splitmix64(key + ids), 11)
    uniform = (bits.double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def _splitmix64(state: Tensor) -> Tensor:
    """One step of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
    OOPSLA 2014; constants of Vigna's public-domain splitmix64.c)."""
    z = state + _signed(0x9E3779B97F4A7C15)
    z = (z ^ _shift_right(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift_right(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shift_right(z, 31)


def _shift_right(value: Tensor, bits: int) -> Tensor:
    """A logical shift: int64's own copies the sign."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
