"""Which way to multiply by a weight on this device. Knows no layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from tokenwire.kernels import panels
from tokenwire.kernels.support import multiplies

__all__ = ("GroupedProduct", "Product", "choose_product", "settle", "settle_stack", "widened")

Product: TypeAlias = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""(x [T, K], weight [N, K], bias [N] or None) -> [T, N], as torch's `linear`."""
GroupedProduct: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(x [R, K], weight [E, N, K], offsets [E + 1]) -> [R, N], as the op grouped_matmul."""

FEW = 4
"""Tokens up to which a weight is read so seldom that widening it costs more than it saves."""
CHUNK = 1 << 19
"""Elements of a weight that are widened at a time: they stay in the cache, and need no memory."""


def choose_product(device: torch.device, dtype: torch.dtype) -> Product:
    """torch's own, but on CPUs that have no instructions for 16-bit floats."""
    half = dtype in (torch.bfloat16, torch.float16)
    return widened if half and device.type == "cpu" and not multiplies(dtype) else F.linear


def settle(weight: Tensor, product: Product) -> Product:
    """Lay a filled weight out as this machine multiplies by it fastest, in its own memory; gives
    what reads it so: `product`, where it stays as it is."""
    if weight.shape[0] % panels.PANEL or panels.panels_reason(weight.device, weight.dtype):
        return product
    panels.pack(weight)
    return panels.linear


def settle_stack(weight: Tensor, product: GroupedProduct) -> GroupedProduct:
    """As `settle`, for the weights [E, N, K] of several experts."""
    if weight.shape[1] % panels.PANEL or panels.panels_reason(weight.device, weight.dtype):
        return product
    panels.pack(weight.flatten(0, 1))
    return panels.grouped


def widened(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """In float32, a part of the weight at a time, where there are tokens enough to share it.

    On an EPYC with AVX2, one thread, 64 tokens and a weight of [3072, 768] in bfloat16: 5.5 ms,
    where `linear` takes 19.2.
    """
    if x.shape[0] < FEW:
        return F.linear(x, weight, bias)
    outputs, inputs = weight.shape
    wide, rows = x.float(), max(64, CHUNK // inputs)
    y = torch.empty(x.shape[0], outputs, dtype=torch.float32)
    for start in range(0, outputs, rows):
        part = weight[start : start + rows].float()
        torch.mm(wide, part.t(), out=y[:, start : start + rows])
    if bias is not None:
        y += bias
    return y.to(x.dtype)
