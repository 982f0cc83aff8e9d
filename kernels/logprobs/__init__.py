"""Log probability and rank of the chosen ids, and the likeliest ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits
from tokenwire.kernels.support import triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.logprobs.reference import logprobs

    return logprobs


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.logprobs.triton import logprobs

    return logprobs


OPS = (
    Op(
        "logprobs",
        (
            Implementation(REFERENCE, _reference),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
