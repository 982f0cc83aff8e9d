"""The ops of moe.cpp: hands it addresses, and copies what does not lie as it needs.

On the CPU. See each op's reference.py for shapes and meaning.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from tokenwire.kernels.moe_route.reference import LEAST, Scoring
from tokenwire.kernels.native import compiler_reason, library
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import cpu_reason

__all__ = ("moe_combine", "moe_permute", "moe_reason", "moe_route")

SOURCE = Path(__file__).with_name("moe.cpp")
KINDS = {torch.float32: 0, torch.bfloat16: 1}
ADDRESS, WHOLE, REAL, KIND = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int32


def moe_reason(signature: Signature) -> str:
    """Why moe.cpp cannot serve this signature, or ""."""
    if reason := cpu_reason(signature):
        return reason
    if signature.dtype not in KINDS:
        return "takes float32 or bfloat16"
    return compiler_reason(SOURCE)


def moe_route(
    logits: Tensor,
    top_k: int,
    scoring: Scoring = "softmax",
    renormalise: bool = True,
    *,
    bias: Tensor | None = None,
    groups: int = 1,
    groups_kept: int = 1,
    group_top: int = 2,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor]:
    tokens, count = logits.shape
    wide = logits.float().contiguous()
    added = None if bias is None else bias.float().contiguous()
    weights = torch.empty((tokens, top_k), dtype=torch.float32)
    experts = torch.empty((tokens, top_k), dtype=torch.int32)
    _functions().moe_route_rows(
        wide.data_ptr(), tokens, count, None if added is None else added.data_ptr(),
        scoring == "softmax", renormalise, groups, groups_kept, group_top, scale, LEAST, top_k,
        weights.data_ptr(), experts.data_ptr(),
    )  # fmt: skip
    return weights, experts


def moe_permute(x: Tensor, experts: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    (tokens, top_k), width = experts.shape, x.shape[1]
    x, experts = x.contiguous(), experts.contiguous()
    rows = torch.empty((tokens * top_k, width), dtype=x.dtype)
    offsets = torch.empty(count + 1, dtype=torch.int32)
    inverse = torch.empty_like(experts)
    _functions().moe_permute_rows(
        x.data_ptr(), width * x.element_size(), experts.data_ptr(), tokens, top_k, count,
        rows.data_ptr(), offsets.data_ptr(), inverse.data_ptr(),
    )  # fmt: skip
    return rows, offsets, inverse


def moe_combine(rows: Tensor, inverse: Tensor, weights: Tensor) -> Tensor:
    (tokens, top_k), width = inverse.shape, rows.shape[1]
    rows, inverse, weights = rows.contiguous(), inverse.contiguous(), weights.contiguous()
    y = torch.empty((tokens, width), dtype=rows.dtype)
    _functions().moe_combine_rows(
        KINDS[rows.dtype], rows.data_ptr(), inverse.data_ptr(), weights.data_ptr(), tokens, top_k,
        width, torch.get_num_threads(), y.data_ptr(),
    )  # fmt: skip
    return y


@lru_cache(maxsize=1)
def _functions() -> ctypes.CDLL:
    functions = library(SOURCE)
    functions.moe_route_rows.argtypes = [
        ADDRESS, WHOLE, WHOLE, ADDRESS, KIND, KIND, WHOLE, WHOLE, WHOLE, REAL, REAL, WHOLE,
        ADDRESS, ADDRESS,
    ]  # fmt: skip
    functions.moe_permute_rows.argtypes = [
        ADDRESS, WHOLE, ADDRESS, WHOLE, WHOLE, WHOLE, ADDRESS, ADDRESS, ADDRESS,
    ]  # fmt: skip
    functions.moe_combine_rows.argtypes = [
        KIND, ADDRESS, ADDRESS, ADDRESS, WHOLE, WHOLE, WHOLE, WHOLE, ADDRESS,
    ]  # fmt: skip
    for name in ("moe_route_rows", "moe_permute_rows", "moe_combine_rows"):
        getattr(functions, name).restype = None
    return functions
