"""Blocks of the commonest GGUF types as float32, by whole tensors: bit by bit what gguf gives.

Formats: ggml's block_q4_0, block_q4_1, block_q8_0, block_q4_K and block_q6_K (ggml-common.h).
Each function takes uint8 [blocks, bytes of a block] and gives float32 [blocks, values of a block].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor

__all__ = ("BLOCKS", "dequantised")

Dequantise: TypeAlias = Callable[[Tensor], Tensor]

AT_ONCE = 1 << 18
"""Values: what is worked on stays in the cache."""


def dequantised(raw: Tensor, kind: str, shape: tuple[int, ...]) -> Tensor:
    """`raw`: uint8, any shape, whole blocks of a kind in BLOCKS. Returns float32 of `shape`."""
    width, size, function = BLOCKS[kind]
    blocks = raw.reshape(-1, width)
    found = torch.empty(len(blocks), size)
    step = AT_ONCE // size
    for start in range(0, len(blocks), step):
        found[start : start + step] = function(blocks[start : start + step])
    return found.view(shape)


def _float(halves: Tensor) -> Tensor:
    return halves.contiguous().view(torch.float16).float()


def _nibbles(packed: Tensor) -> Tensor:
    """[..., n] -> [..., 2, n]: the low halves of all bytes, then the high ones."""
    return torch.stack((packed & 15, packed >> 4), dim=-2)


def _q4_0(blocks: Tensor) -> Tensor:
    values = _nibbles(blocks[:, 2:]).flatten(1).float() - 8
    return values.mul_(_float(blocks[:, :2]))


def _q4_1(blocks: Tensor) -> Tensor:
    values = _nibbles(blocks[:, 4:]).flatten(1).float()
    return values.mul_(_float(blocks[:, :2])).add_(_float(blocks[:, 2:4]))


def _q8_0(blocks: Tensor) -> Tensor:
    return blocks[:, 2:].view(torch.int8).float().mul_(_float(blocks[:, :2]))


def _q4_k(blocks: Tensor) -> Tensor:
    """Eight groups of 32, each with a scale and a minimum of six bits."""
    first, second, mixed = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = torch.cat((first & 63, (mixed & 15) | ((first >> 2) & 48)), dim=1)
    minima = torch.cat((second & 63, (mixed >> 4) | ((second >> 2) & 48)), dim=1)
    scale = (_float(blocks[:, :2]) * scales).unsqueeze(2)
    minimum = (_float(blocks[:, 2:4]) * minima).unsqueeze(2)
    values = _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32).float()
    return values.mul_(scale).sub_(minimum).flatten(1)


def _q6_k(blocks: Tensor) -> Tensor:
    """Sixteen groups of 16: four low bits apart from two high ones, and a scale of eight bits."""
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 8, 32)
    packed = blocks[:, 128:192].reshape(-1, 2, 1, 32)
    shifts = torch.tensor([0, 2, 4, 6], dtype=torch.uint8).view(1, 1, 4, 1)
    high = ((packed >> shifts) & 3).reshape(-1, 8, 32)
    values = (low | (high << 4)).reshape(-1, 16, 16).float() - 32
    scales = blocks[:, 192:208].view(torch.int8).float() * _float(blocks[:, 208:210])
    return values.mul_(scales.unsqueeze(2)).flatten(1)


BLOCKS: Mapping[str, tuple[int, int, Dequantise]] = {
    "Q4_0": (18, 32, _q4_0),
    "Q4_1": (20, 32, _q4_1),
    "Q8_0": (34, 32, _q8_0),
    "Q4_K": (144, 256, _q4_k),
    "Q6_K": (210, 256, _q6_k),
}
"""Type -> bytes of a block, values of a block, what dequantises it."""
