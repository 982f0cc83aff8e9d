"""The gated activation of a feed-forward layer: gelu(gate) * up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.gelu_mul.reference import gelu_mul

    return gelu_mul


OPS = (Op("gelu_mul", (Implementation(REFERENCE, _reference),)),)
