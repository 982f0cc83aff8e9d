"""The reference's ids on the CPU, sooner: what a row does not need is not computed.

Every number that decides is computed by the same torch call on the same row as in the reference,
so that the ids are equal and not merely close. Saved are: all of it for greedy rows, the sort of a
whole vocabulary for top_p, and the noise of ids that were filtered out.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tokenwire.kernels.sample.reference import gumbel

__all__ = ("drawn", "filtered_rows", "likeliest", "sample")

NEVER = float("-inf")
CHUNK = 256
"""Ids whose maximum is taken first: torch's amax is many times faster than its argmax."""
SHARE = 1e-3
"""Of the likeliest id's probability: below it, ids matter to top_p in flat distributions alone."""
ROUNDING = 1e-5
"""More than a float32 sum of probabilities is off, over any vocabulary."""


def sample(
    logits: Tensor,
    temperature: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
) -> Tensor:
    """See reference.sample."""
    ids = likeliest(logits)
    for row, logprobs in filtered_rows(logits, temperature, top_k, top_p, min_p):
        ids[row] = drawn(logprobs, seeds[row], positions[row])
    return ids


def filtered_rows(
    logits: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, min_p: Tensor
) -> Iterator[tuple[int, Tensor]]:
    """The rows that are drawn and not greedy, each with its log probabilities [V]."""
    heats = temperature.tolist()
    rows = [row for row, heat in enumerate(heats) if heat]
    if rows:
        counts, masses, least = top_k.tolist(), top_p.tolist(), min_p.tolist()
        for row in rows:
            scaled = _filtered(logits[row] / heats[row], counts[row], masses[row], least[row])
            yield row, torch.log_softmax(scaled, 0)


def drawn(logprobs: Tensor, seed: Tensor, position: Tensor) -> Tensor:
    """The id of the largest log probability plus noise."""
    kept = (logprobs != NEVER).nonzero().flatten()
    noise = gumbel(seed, position, kept)
    return kept[torch.argmax(logprobs[kept].double() + noise)]


def likeliest(logits: Tensor) -> Tensor:
    """argmax of each row of [R, V], the lowest id of equals: first of chunks, then in one."""
    vocabulary = logits.shape[1]
    if vocabulary < 2 * CHUNK:
        return torch.argmax(logits, -1)
    whole = vocabulary // CHUNK * CHUNK
    peaks = logits[:, :whole].unflatten(1, (-1, CHUNK)).amax(-1)
    if whole < vocabulary:
        peaks = torch.cat((peaks, logits[:, whole:].amax(-1, keepdim=True)), 1)
    starts = (torch.argmax(peaks, -1) * CHUNK).clamp(max=vocabulary - CHUNK)
    # Why clamp: the last chunk is short; the ids before it that come along are lower than its
    # maximum, for the first chunk that holds the maximum was chosen.
    places = starts[:, None] + torch.arange(CHUNK)
    return starts + torch.argmax(logits.gather(1, places), -1)


def _filtered(scaled: Tensor, top_k: int, top_p: float, min_p: float) -> Tensor:
    """One row [V] after temperature; -inf where an id was filtered out."""
    if 0 < top_k < scaled.shape[0]:
        lowest = torch.topk(scaled, top_k).values[-1]
        scaled = scaled.masked_fill(scaled < lowest, NEVER)
    if top_p < 1:
        kept = _nucleus(torch.softmax(scaled, 0), top_p)
        scaled = torch.full_like(scaled, NEVER).index_copy_(0, kept, scaled[kept])
    if min_p > 0:
        probabilities = torch.softmax(scaled, 0)
        scaled = scaled.masked_fill(probabilities < min_p * probabilities.max(), NEVER)
    return scaled


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """The ids that top_p keeps. Sorted are those alone that can be among them: first those not far
    below the likeliest, and if they have too little, all but the ids that together have less than
    1 - top_p."""
    near_peak = float(probabilities.max()) * SHARE
    tail = (1 - top_p - ROUNDING) / probabilities.shape[0]
    for least in (max(near_peak, tail), tail):
        near = (~(probabilities < least)).nonzero().flatten()
        falling, order = torch.sort(probabilities[near], descending=True, stable=True)
        before = torch.cumsum(falling, 0) - falling
        if before[-1] >= top_p + ROUNDING:
            break
    keep = before < top_p
    keep[0] = True
    return near[order[keep]]
