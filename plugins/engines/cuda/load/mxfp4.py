"""Weights of four bits as float32: MXFP4 of the OCP Microscaling Formats (MX) specification v1.0.

32 numbers share a scale: e2m1 elements (5.3.3), two a byte, the first in the low half; the scale is
e8m0 (5.4.1), a power of two, with 255 for NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("BLOCK", "dequantised")

BLOCK = 32
"""Numbers that share a scale; half as many bytes."""
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Of the codes 0 to 7; 8 more are the same below zero."""
AT_ONCE = 1 << 13
"""Blocks: what is worked on stays in the cache."""


def dequantised(blocks: Tensor, scales: Tensor) -> Tensor:
    """uint8 blocks [..., G, 16] and scales [..., G] -> float32 [..., G * 32].

    Every product is exact, but what float32 cannot hold is infinite."""
    packed, exponents = blocks.reshape(-1, BLOCK // 2), scales.reshape(-1)
    found = torch.empty(len(packed), BLOCK // 2, 2)
    pairs = _pairs()
    for start in range(0, len(packed), AT_ONCE):
        codes = packed[start : start + AT_ONCE].int()
        powers = _powers(exponents[start : start + AT_ONCE])
        found[start : start + AT_ONCE] = pairs[codes] * powers[:, None, None]
    return found.view(*scales.shape[:-1], -1)


def _pairs() -> Tensor:
    """[256, 2]: the two numbers of every byte."""
    values = torch.tensor([*MAGNITUDES, *(-each for each in MAGNITUDES)])
    byte = torch.arange(256)
    return torch.stack((values[byte & 15], values[byte >> 4]), dim=-1)


def _powers(exponents: Tensor) -> Tensor:
    """2 ** (e - 127), float32, by its bits: the lowest is below what float32 has normal numbers
    for."""
    bits = exponents.int() << 23
    bits[exponents == 0] = 1 << 22
    bits[exponents == 255] = 0x7FC00000
    return bits.view(torch.float32)
