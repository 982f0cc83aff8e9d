"""Weights laid out as this device multiplies by them fastest. Knows no layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from tokenwire.kernels import panels
from tokenwire.kernels.matmul import OPS
from tokenwire.kernels.op import Signature
from tokenwire.kernels.registry import choose

__all__ = ("GroupedProduct", "Product", "choose_product", "settle", "settle_stack")

Product: TypeAlias = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""(x [T, K], weight [N, K], bias [N] or None) -> [T, N], as the op matmul."""
GroupedProduct: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(x [R, K], weight [E, N, K], offsets [E + 1]) -> [R, N], as the op grouped_matmul."""


def choose_product(device: torch.device, dtype: torch.dtype) -> Product:
    """The fastest of the op matmul, for networks that are given no ops."""
    [op] = OPS
    found: Callable[..., Any] = choose(op, Signature(device=device.type, dtype=dtype))[0]
    return found


def settle(weight: Tensor, product: Product) -> Product:
    """Lay a filled weight out as this machine multiplies by it fastest, in its own memory; gives
    what reads it so: `product`, where it stays as it is. The panels' bits are those of the op's
    cpu_native."""
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
