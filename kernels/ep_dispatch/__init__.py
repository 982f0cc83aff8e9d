"""Tokens' rows made ready for the ranks that hold their experts, and put in order there.

The exchange itself is not here: these ops say what is sent and read what came (`wire.py` has the
form of a row on its way).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import triton_reason, vendor_reason

__all__ = ("DEEP_EP", "OPS", "deep_ep_reason")

FAST = Traits(graph_safe=True)
DEEP_EP = ("sgl-deep-ep", "deep_ep")
"""Its name on PyPI and its module."""


def deep_ep_reason(signature: Signature) -> str:
    """Why sgl-deep-ep cannot carry rows of this signature, or "". It packs, sends and unpacks in
    one, so it takes the place of a whole dispatcher (`deep_ep.py`), and of no single op here."""
    import torch

    return vendor_reason(*DEEP_EP, signature, dtypes=(torch.bfloat16,), minimum=(9, 0))


def _plan_reference() -> Callable[..., Any]:
    from tokenwire.kernels.ep_dispatch.reference import ep_plan

    return ep_plan


def _plan_triton() -> Callable[..., Any]:
    from tokenwire.kernels.ep_dispatch.triton import ep_plan

    return ep_plan


def _pack_reference() -> Callable[..., Any]:
    from tokenwire.kernels.ep_dispatch.reference import ep_pack

    return ep_pack


def _pack_triton() -> Callable[..., Any]:
    from tokenwire.kernels.ep_dispatch.triton import ep_pack

    return ep_pack


def _unpack_reference() -> Callable[..., Any]:
    from tokenwire.kernels.ep_dispatch.reference import ep_unpack

    return ep_unpack


def _unpack_triton() -> Callable[..., Any]:
    from tokenwire.kernels.ep_dispatch.triton import ep_unpack

    return ep_unpack


def _op(name: str, reference: Callable[..., Any], triton: Callable[..., Any]) -> Op:
    return Op(
        name,
        (
            Implementation(REFERENCE, reference),
            Implementation("triton", triton, triton_reason, FAST, 20),
        ),
    )


OPS = (
    _op("ep_plan", _plan_reference, _plan_triton),
    _op("ep_pack", _pack_reference, _pack_triton),
    _op("ep_unpack", _unpack_reference, _unpack_triton),
)
