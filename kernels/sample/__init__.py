"""From logits to ids, by noise that depends on seed, position and id alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import cpu_reason, triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.sample.reference import sample

    return sample


def _cpu() -> Callable[..., Any]:
    from tokenwire.kernels.sample.cpu import sample

    return sample


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.sample.native import sample

    return sample


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.native import compiler_reason
    from tokenwire.kernels.sample.native import SOURCE

    return cpu_reason(signature) or compiler_reason(SOURCE)


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.sample.triton import sample

    return sample


OPS = (
    Op(
        "sample",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu", _cpu, cpu_reason, priority=10),
            Implementation("cpu_native", _native, _compiled, priority=15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
