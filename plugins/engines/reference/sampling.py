"""From logits to an id, as pure functions over one row: what faster samplers must equal.

The order is fixed: masks and bias, penalties, temperature, top_k, top_p, min_p, then the draw.
Noise is a function of (seed, position, id) alone, so that no other job, batch or machine changes
what is drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from tokenwire.core.seeds import splitmix64
from tokenwire.core.tokens import JobSampling

__all__ = ("choose", "filtered", "gumbel", "penalised", "permitted", "scored")

NEVER = float("-inf")
MASK = (1 << 64) - 1


def choose(logits: Tensor, sampling: JobSampling, *, seed: int, position: int) -> int:
    """The id of one position, from logits [V] after `permitted` and `penalised`.

    Temperature 0: the likeliest, the lowest id where several are. Else Gumbel-max: the argmax of
    log p + Gumbel noise is a draw from p (Gumbel 1954; Maddison et al., A* Sampling, 2014).
    """
    if sampling.temperature == 0:
        return int(torch.argmax(logits))
    logprobs = filtered(logits, sampling)
    noise = gumbel(seed, position, logprobs.shape[0]).to(logprobs.device)
    return int(torch.argmax(logprobs.double() + noise))


def permitted(logits: Tensor, sampling: JobSampling, masked: Collection[int]) -> Tensor:
    """Bias added; masked ids, and all but the allowed ones, impossible.

    Where nothing would be left, the masks give way in favour of the allowed ids.
    """
    result = logits.float().clone()
    size = result.shape[0]
    for id, bias in sampling.logit_bias.items():
        if id < size:
            result[id] += bias
    if len(sampling.allowed_ids):
        allowed = [id for id in sampling.allowed_ids if id < size]
        kept = torch.full_like(result, NEVER)
        kept[allowed] = result[allowed]
        result = kept
    ids = [id for id in masked if id < size]
    if ids:
        rest = result.clone()
        rest[ids] = NEVER
        result = rest if bool((rest > NEVER).any()) else result
    return result


def penalised(
    logits: Tensor, sampling: JobSampling, *, prompt: Sequence[int], output: Sequence[int]
) -> Tensor:
    """Repetition over prompt and output (Keskar et al., CTRL, 2019: divide positive logits,
    multiply negative ones); frequency and presence over the output (as OpenAI's API has them)."""
    result = logits.clone()
    if sampling.repetition_penalty != 1:
        seen = torch.tensor(sorted({*prompt, *output}), device=logits.device)
        seen = seen[seen < logits.shape[0]]
        values = result[seen]
        factor = sampling.repetition_penalty
        result[seen] = torch.where(values > 0, values / factor, values * factor)
    if len(output) and (sampling.frequency_penalty or sampling.presence_penalty):
        ids = torch.tensor(list(output), device=logits.device)
        counts = torch.bincount(ids, minlength=logits.shape[0])[: logits.shape[0]]
        result = result - sampling.frequency_penalty * counts
        result = result - sampling.presence_penalty * (counts > 0)
    return result


def filtered(logits: Tensor, sampling: JobSampling) -> Tensor:
    """Log probabilities [V] of the draw: temperature, then top_k, top_p, min_p, each over what the
    one before left. At least one id always stays."""
    temperature = sampling.temperature or 1.0
    scaled = logits.float() / temperature
    if 0 < sampling.top_k < scaled.shape[0]:
        lowest = torch.topk(scaled, sampling.top_k).values[-1]
        scaled = scaled.masked_fill(scaled < lowest, NEVER)
    if sampling.top_p < 1:
        probabilities, order = torch.sort(torch.softmax(scaled, 0), descending=True, stable=True)
        before = torch.cumsum(probabilities, 0) - probabilities
        drop = before >= sampling.top_p
        drop[0] = False
        scaled = scaled.index_fill(0, order[drop], NEVER)
    if sampling.min_p > 0:
        probabilities = torch.softmax(scaled, 0)
        least = sampling.min_p * probabilities.max()
        scaled = scaled.masked_fill(probabilities < least, NEVER)
    return torch.log_softmax(scaled, 0)


def scored(logprobs: Tensor, id: int, top: int) -> tuple[float, int, list[tuple[int, float]]]:
    """Of logprobs [V]: the id's own, its rank (1: the likeliest), and the `top` likeliest."""
    chosen = logprobs[id]
    rank = int((logprobs > chosen).sum()) + 1
    if not top:
        return float(chosen), rank, []
    values, ids = torch.topk(logprobs, min(top, logprobs.shape[0]))
    return float(chosen), rank, list(zip(ids.tolist(), values.tolist(), strict=True))


def gumbel(seed: int, position: int, size: int) -> Tensor:
    """Standard Gumbel noise [size], float64: -log(-log(u)), where u is made from the 53 high bits
    of SplitMix64(key + id), key = SplitMix64(seed + SplitMix64(position)). All in uint64."""
    key = splitmix64((seed + splitmix64(position)) & MASK)
    state = torch.arange(size, dtype=torch.int64) + _signed(key)
    bits = _shift_right(_mixed(state), 11)
    uniform = (bits.double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def _mixed(state: Tensor) -> Tensor:
    """SplitMix64 (see seeds.py) of int64 values read as uint64; products wrap, as they must."""
    z = state + _signed(0x9E3779B97F4A7C15)
    z = (z ^ _shift_right(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift_right(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shift_right(z, 31)


def _shift_right(value: Tensor, bits: int) -> Tensor:
    """A logical shift: int64's own copies the sign."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
