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
AT_ONCE = 1 << 13
"""Blocks: what is worked on stays in the cache."""
HALF = 2.0**14
"""e2m1's bits, put where float16 has its lowest exponent bits and highest mantissa bit, are the
number over this: 2 to the power of the difference of the biases. Its subnormals are float16's."""


def dequantised(blocks: Tensor, scales: Tensor) -> Tensor:
    """uint8 blocks [..., G, 16] and scales [..., G] -> float32 [..., G * 32].

    Every product is exact, but what float32 cannot hold is infinite."""
    packed, exponents = blocks.reshape(-1, BLOCK // 2), scales.reshape(-1)
    found = torch.empty(len(packed), BLOCK // 2, 2)
    for start in range(0, len(packed), AT_ONCE):
        some = packed[start : start + AT_ONCE].to(torch.int16)
        powers = _powers(exponents[start : start + AT_ONCE])[:, None]
        for half, codes in enumerate((some & 15, some >> 4)):
            bits = ((codes & 7) << 9).bitwise_or_((codes & 8) << 12)
            values = bits.view(torch.float16).float().mul_(HALF)
            torch.mul(values, powers, out=found[start : start + AT_ONCE, :, half])
    return found.view(*scales.shape[:-1], -1)


def _powers(exponents: Tensor) -> Tensor:
    """2 ** (e - 127), float32, by its bits: the lowest is below what float32 has normal numbers
    for."""
    bits = exponents.int() << 23
    bits[exponents == 0] = 1 << 22
    bits[exponents == 255] = 0x7FC00000
    return bits.view(torch.float32)
