"""Repetition, frequency and presence penalties, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits
from tokenwire.kernels.support import cpu_reason, triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.penalties.reference import penalties

    return penalties


def _cpu() -> Callable[..., Any]:
    from tokenwire.kernels.penalties.cpu import penalties

    return penalties


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.penalties.triton import penalties

    return penalties


OPS = (
    Op(
        "penalties",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu", _cpu, cpu_reason, Traits(), 10),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
