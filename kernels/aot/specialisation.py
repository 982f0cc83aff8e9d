"""What is compiled ahead of time: launches of an op's own function on tensors without memory.

Knows neither Triton nor a file. Why launches and no table of signatures: what a server compiles at
its first step follows from the arguments its function passes (dtypes, divisibility by 16, constant
arguments, warps). The same function called the same way cannot drift from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ("Specialisation", "meta")


@dataclass(frozen=True, slots=True)
class Specialisation:
    """A launch. Each `triton.py` has a tuple SPECIALISATIONS of them."""

    name: str
    """Unique in its op: what differs, as "bf16 hidden 4096"."""
    launch: Callable[[], Any]
    """Calls the op's function on `meta` tensors; every kernel it launches is compiled."""
    minimum: tuple[int, int] = (8, 0)
    """The least compute capability it is made for."""
    wgmma: bool = False
    """Promises tensor cores fed from shared memory on 9.0 (wgmma) and 10.0 (tcgen05): a gate."""
    gated: bool = True
    """Built by the tests for every architecture too; the rest is built by the command alone."""


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """A tensor of no memory, contiguous, whose address counts as aligned."""
    return torch.empty(shape, dtype=dtype, device="meta")
