"""A grammar's bitmask applied to logits, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits
from tokenwire.kernels.support import cpu_reason, triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.token_mask.reference import token_mask

    return token_mask


def _cpu() -> Callable[..., Any]:
    from tokenwire.kernels.token_mask.cpu import token_mask

    return token_mask


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.token_mask.triton import token_mask

    return token_mask


OPS = (
    Op(
        "token_mask",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu", _cpu, cpu_reason, Traits(), 10),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
