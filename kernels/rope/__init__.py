"""Rotary position embedding of queries and keys, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.rope.reference import rope

    return rope


OPS = (Op("rope", (Implementation(REFERENCE, _reference, traits=Traits(in_place=True)),)),)
