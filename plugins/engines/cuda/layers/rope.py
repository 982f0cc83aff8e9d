"""Tables of cosines and sines for rotary positions, for every kind of scaling. Knows no model.

The frequencies: RoFormer (arXiv:2104.09864, 3.2.2); linear: arXiv:2306.15595; dynamic: the base
that is aware of NTK; YaRN: arXiv:2309.00071, 3.2 to 3.4; llama3: the interpolation between
wavelengths of Llama 3.1's model card.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.models.config import Rope

__all__ = ("cos_sin", "frequencies")


def cos_sin(rope: Rope, positions: int, device: torch.device) -> Tensor:
    """[positions, dim] float32: the cosines of the dim / 2 angles, then their sines."""
    # Why float32 throughout: checkpoints were trained on angles of just that precision.
    places = torch.arange(positions, dtype=torch.float32)
    angles = torch.outer(places, frequencies(rope, positions))
    table = torch.cat((angles.cos(), angles.sin()), dim=-1) * rope.attention_factor
    return table.to(device)


def frequencies(rope: Rope, positions: int) -> Tensor:
    """[dim / 2] float32, in radians a position. `positions`: how many will be served."""
    plain = _plain(rope.dim, rope.theta)
    match rope.kind:
        case "linear":
            found = plain / rope.factor
        case "dynamic":
            found = _dynamic(rope, positions)
        case "llama3":
            found = _llama3(rope, plain)
        case "yarn":
            found = _yarn(rope, plain)
        case _:
            found = plain
    return found / torch.tensor(rope.divisors) if rope.divisors else found


def _plain(dim: int, theta: float) -> Tensor:
    return 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))


def _dynamic(rope: Rope, positions: int) -> Tensor:
    """The base grows with the served context, once and for all sequences: a base that grew while
    a sequence does would disagree with the keys that are in the cache."""
    longest = max(positions, rope.original_context)
    stretch = rope.factor * longest / rope.original_context - (rope.factor - 1)
    return _plain(rope.dim, rope.theta * stretch ** (rope.dim / (rope.dim - 2)))


def _llama3(rope: Rope, plain: Tensor) -> Tensor:
    """Short wavelengths stay, long ones are divided by the factor, those between are blended."""
    turns = rope.original_context * plain / (2 * math.pi)
    low, high = rope.low_freq_factor, rope.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return kept * plain + (1 - kept) * plain / rope.factor


def _yarn(rope: Rope, plain: Tensor) -> Tensor:
    """Dimensions that turn often stay, those that turn seldom are divided, with a ramp between."""

    def dimension(turns: float) -> float:
        """Which dimension turns so often over the original context."""
        context = rope.original_context / (turns * 2 * math.pi)
        return rope.dim * math.log(context) / (2 * math.log(rope.theta))

    first, last = dimension(rope.beta_fast), dimension(rope.beta_slow)
    if rope.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rope.dim - 1)
    width = last - first if last != first else 0.001
    ramp = (torch.arange(rope.dim // 2, dtype=torch.float32) - first) / width
    divided = ramp.clamp(0.0, 1.0)
    return divided * plain / rope.factor + (1 - divided) * plain
