"""A grammar's bitmask applied to logits, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.token_mask.reference import token_mask

    return token_mask


OPS = (Op("token_mask", (Implementation(REFERENCE, _reference, traits=Traits(in_place=True)),)),)
