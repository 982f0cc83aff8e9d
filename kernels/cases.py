"""What an op is proven and measured with: arguments made from a seed. Runs nothing.

An op's folder has `cases.py` with CASES and BENCHES, each op name -> a tuple of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tokenwire.kernels.op import Signature

__all__ = ("Arguments", "Bench", "Case", "noise", "permuted_rows")

Arguments = tuple[Any, ...]


def permuted_rows(arguments: Arguments, rows: tuple[int, ...], order: Tensor) -> Arguments:
    """The arguments with the first dimension of those in `rows` in another order."""
    return tuple(
        value[order].clone() if place in rows else value for place, value in enumerate(arguments)
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison with the reference."""

    name: str
    """Unique in its op: shapes and what is odd about them."""
    signature: Signature
    """Without device: the check fills it in."""
    make: Callable[[], Arguments]
    """Positional arguments on the CPU, the same at each call; moved to the device by the check."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments, moved alike."""
    written: tuple[int, ...] = ()
    """Arguments that the op writes into: compared too."""
    rows: tuple[int, ...] = ()
    """Arguments whose first dimension is the batch, for the permutation; (): not permuted."""
    permute: Callable[[Arguments, Tensor], Arguments] | None = None
    """Where the batch is no first dimension: the arguments in another order of the batch."""
    order_of: Callable[[Arguments, Tensor], Tensor] | None = None
    """Where a result's rows are no batch rows: their order for an order of the batch."""
    bound: float | None = None
    """Of the metric; None: by the dtype of the result."""
    interpretable: bool = True
    """False: the interpreter is known to round it wrongly."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One measurement, with the least the op must move and compute."""

    name: str
    signature: Signature
    make: Callable[[torch.device], Arguments]
    """Arguments on the device."""
    bytes: int
    keywords: Mapping[str, Any] = field(default_factory=dict)
    flops: int = 0
    fp8: bool = False
    """The operations are of 8-bit floats."""


def noise(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Normal numbers that depend on the shape and the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)
