"""Repetition, frequency and presence penalties, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.penalties.reference import penalties

    return penalties


OPS = (Op("penalties", (Implementation(REFERENCE, _reference, traits=Traits(in_place=True)),)),)
