"""Writes keys and values of a batch into the paged cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.kv_write.reference import kv_write

    return kv_write


OPS = (Op("kv_write", (Implementation(REFERENCE, _reference, traits=Traits(in_place=True)),)),)
