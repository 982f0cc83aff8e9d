"""Tokens' rows put into the order of their experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.moe_permute.reference import moe_permute

    return moe_permute


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.moe import moe_permute

    return moe_permute


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.moe import moe_reason

    return moe_reason(signature)


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.moe_permute.triton import moe_permute

    return moe_permute


OPS = (
    Op(
        "moe_permute",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
