"""Experts' rows on their way home, and a token's sum there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _return_reference() -> Callable[..., Any]:
    from tokenwire.kernels.ep_combine.reference import ep_return

    return ep_return


def _return_triton() -> Callable[..., Any]:
    from tokenwire.kernels.ep_combine.triton import ep_return

    return ep_return


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.ep_combine.reference import ep_combine

    return ep_combine


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.ep_combine.cpu import ep_combine

    return ep_combine


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.moe import moe_reason

    return moe_reason(signature)


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.ep_combine.triton import ep_combine

    return ep_combine


OPS = (
    Op(
        "ep_return",
        (
            Implementation(REFERENCE, _return_reference),
            Implementation("triton", _return_triton, triton_reason, FAST, 20),
        ),
    ),
    Op(
        "ep_combine",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
