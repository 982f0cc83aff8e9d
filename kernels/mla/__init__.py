"""Attention over a compressed cache (MLA): its writes, absorbed decode, unabsorbed prefill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op

__all__ = ("OPS",)


def _write() -> Callable[..., Any]:
    from tokenwire.kernels.mla.reference import mla_write

    return mla_write


def _decode() -> Callable[..., Any]:
    from tokenwire.kernels.mla.reference import mla_decode

    return mla_decode


def _prefill() -> Callable[..., Any]:
    from tokenwire.kernels.mla.reference import mla_prefill

    return mla_prefill


OPS = (
    Op("mla_write", (Implementation(REFERENCE, _write),)),
    Op("mla_decode", (Implementation(REFERENCE, _decode),)),
    Op("mla_prefill", (Implementation(REFERENCE, _prefill),)),
)
