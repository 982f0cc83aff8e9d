"""Log probability and rank of the chosen ids, and the likeliest ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.logprobs.reference import logprobs

    return logprobs


OPS = (Op("logprobs", (Implementation(REFERENCE, _reference),)),)
