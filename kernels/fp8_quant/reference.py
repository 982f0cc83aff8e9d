"""Quantisation to float8_e4m3fn by groups, in torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = ("SMALLEST", "fp8_quant")

SMALLEST = 1e-10
"""The least amax of a group: a group of zeros has a scale too."""


def fp8_quant(x: Tensor, group: int = 128) -> tuple[Tensor, Tensor]:
    """x[T, K] -> (q[T, K] float8_e4m3fn, scales[T, ceil(K / group)] float32): x is about q * scale.

    A group's scale takes its largest magnitude to 448. The last group may be shorter.
    """
    limit = torch.finfo(torch.float8_e4m3fn).max
    rows, width = x.shape
    groups = -(-width // group)
    wide = pad(x.float(), (0, groups * group - width)).view(rows, groups, group)
    scales = wide.abs().amax(-1).clamp_min(SMALLEST) / limit
    q = (wide / scales.unsqueeze(-1)).clamp(-limit, limit).to(torch.float8_e4m3fn)
    return q.view(rows, groups * group)[:, :width].contiguous(), scales
