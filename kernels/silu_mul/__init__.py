"""The gated activation of a feed-forward layer: silu(gate) * up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.silu_mul.reference import silu_mul

    return silu_mul


OPS = (Op("silu_mul", (Implementation(REFERENCE, _reference),)),)
