"""Lines of `tokenwire kernels list`: what each op would run here, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tokenwire.kernels.aot.arch import capability_of
from tokenwire.kernels.op import Signature
from tokenwire.kernels.ops import all_ops
from tokenwire.kernels.registry import preferred

__all__ = ("listed", "signature_of")


def signature_of(arch: str | None, dtype: str) -> Signature:
    """A model of usual sizes on a GPU of that architecture, or on this machine. Raises ValueError
    for a name that is none."""
    known = getattr(torch, dtype, None)
    if not isinstance(known, torch.dtype):
        raise ValueError(f"'{dtype}' is no dtype of torch; float32, bfloat16 and float16 are")
    capability = None
    if arch is not None:
        capability = capability_of(arch)
    elif torch.cuda.is_available():
        capability = torch.cuda.get_device_capability()
    return Signature(
        device="cpu" if capability is None else "cuda",
        capability=capability,
        dtype=known,
        head_dim=128,
        heads=32,
        kv_heads=8,
        block_size=16,
    )


def listed(signature: Signature) -> Iterator[str]:
    """A line an implementation, the chosen one marked by a star. Steady: see `Traits`."""
    yield f"for {_place(signature)}, {str(signature.dtype).removeprefix('torch.')}:"
    for op in all_ops():
        _, choice = preferred(op, signature)
        for one in sorted(op.implementations, key=lambda each: -each.priority):
            mark = "*" if one.name == choice.name else " "
            reason = one.supports(signature)
            said = reason or ("chosen" if mark == "*" else "applies")
            if not reason and one.traits.is_steady:
                said += ", steady"
            yield f"{mark} {op.name:<18} {one.name:<12} {said}"


def _place(signature: Signature) -> str:
    if signature.capability is None:
        return "the CPU"
    return "a GPU of compute capability " + ".".join(map(str, signature.capability))
