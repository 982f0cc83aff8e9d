"""RMS norm, alone and fused with the residual sum before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.reference import rms_norm

    return rms_norm


def _add_reference() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.reference import add_rms_norm

    return add_rms_norm


OPS = (
    Op("rms_norm", (Implementation(REFERENCE, _reference),)),
    Op("add_rms_norm", (Implementation(REFERENCE, _add_reference, traits=Traits(in_place=True)),)),
)
