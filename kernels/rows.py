"""The ops of rows.cpp: hands it addresses and strides, and copies what does not lie as it needs.

On the CPU, float32 or bfloat16. See each op's reference.py for shapes and meaning.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tokenwire.kernels.native import compiler_reason, library
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import cpu_reason

__all__ = (
    "add_rms_norm",
    "gelu_mul",
    "kv_write",
    "rms_norm",
    "rope",
    "rows_reason",
    "silu_mul",
    "swiglu_clamped",
)

SOURCE = Path(__file__).with_name("rows.cpp")
KINDS = {torch.float32: 0, torch.bfloat16: 1}
ADDRESS, WHOLE, REAL, KIND = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int32


def rows_reason(signature: Signature) -> str:
    """Why rows.cpp cannot serve this signature, or ""."""
    if reason := cpu_reason(signature):
        return reason
    if signature.dtype not in KINDS:
        return "takes float32 or bfloat16"
    return compiler_reason(SOURCE)


def rms_norm(x: Tensor, weight: Tensor, eps: float, offset: float = 0.0) -> Tensor:
    rows = x if x.dim() <= 3 and x.stride(-1) == 1 else x.reshape(-1, x.shape[-1])
    while rows.dim() < 3:
        rows = rows.unsqueeze(-2)
    outer, inner, width = rows.shape
    y = torch.empty(x.shape, dtype=x.dtype)
    _functions().rms_norm_rows(
        KINDS[x.dtype], rows.data_ptr(), _like(weight, x).data_ptr(), y.data_ptr(), outer * inner,
        inner, rows.stride(0), rows.stride(1), width, eps, offset, torch.get_num_threads(),
    )  # fmt: skip
    return y


def add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, eps: float, offset: float = 0.0
) -> tuple[Tensor, Tensor]:
    rows, width = residual.shape
    x = _like(x, residual)
    y = torch.empty((rows, width), dtype=x.dtype)
    _functions().add_rms_norm_rows(
        KINDS[x.dtype], x.data_ptr(), residual.data_ptr(), _like(weight, x).data_ptr(),
        y.data_ptr(), rows, x.stride(0), residual.stride(0), width, eps, offset,
        torch.get_num_threads(),
    )  # fmt: skip
    return y, residual


def rope(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> tuple[Tensor, Tensor]:
    tokens, q_heads, _ = q.shape
    positions = positions.contiguous()
    _functions().rope_rows(
        KINDS[q.dtype], q.data_ptr(), k.data_ptr(), positions.data_ptr(), cos_sin.data_ptr(),
        tokens, q_heads, q.stride(0), q.stride(1), k.shape[1], k.stride(0), k.stride(1),
        cos_sin.stride(0), cos_sin.shape[1] // 2, torch.get_num_threads(),
    )  # fmt: skip
    return q, k


def silu_mul(x: Tensor) -> Tensor:
    return _gated(x, _functions().silu_mul_rows)


def gelu_mul(x: Tensor) -> Tensor:
    return _gated(x, _functions().gelu_mul_rows)


def swiglu_clamped(x: Tensor, alpha: float = 1.702, limit: float = 7.0) -> Tensor:
    return _gated(x, _functions().swiglu_clamped_rows, alpha, limit)


def kv_write(
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
) -> None:
    if k_cache.stride() != v_cache.stride() or k_cache.stride(3) != 1:
        raise ValueError("kv_write: both caches need one layout, a head's elements side by side")
    tokens, kv_heads, head = k.shape
    k, v, slots, size = _like(k, k_cache), _like(v, v_cache), slots.contiguous(), k.element_size()
    strides = (*k.stride()[:2], *v.stride()[:2])
    _functions().kv_write_rows(
        k.data_ptr(), v.data_ptr(), k_cache.data_ptr(), v_cache.data_ptr(), slots.data_ptr(),
        tokens, kv_heads, head * size, *(each * size for each in strides), k_cache.shape[1],
        *(each * size for each in k_cache.stride()[:3]),
    )  # fmt: skip


def _gated(x: Tensor, function: Any, *constants: float) -> Tensor:
    rows, width = x.shape[0], x.shape[1] // 2
    y = torch.empty((rows, width), dtype=x.dtype)
    function(
        KINDS[x.dtype], x.data_ptr(), y.data_ptr(), rows, x.stride(0), width,
        torch.get_num_threads(), *constants,
    )  # fmt: skip
    return y


def _like(value: Tensor, other: Tensor) -> Tensor:
    """In the other's dtype, the elements of its rows side by side."""
    value = value.to(other.dtype)
    return value if value.stride(-1) == 1 else value.contiguous()


@lru_cache(maxsize=1)
def _functions() -> ctypes.CDLL:
    functions = library(SOURCE)
    norm = [WHOLE] * 5 + [REAL, REAL, KIND]
    gated = [KIND, ADDRESS, ADDRESS, WHOLE, WHOLE, WHOLE, KIND]
    takes = {
        "rms_norm_rows": [KIND, *[ADDRESS] * 3, *norm],
        "add_rms_norm_rows": [KIND, *[ADDRESS] * 4, *norm[1:]],
        "rope_rows": [KIND, *[ADDRESS] * 4, *[WHOLE] * 9, KIND],
        "silu_mul_rows": gated,
        "gelu_mul_rows": gated,
        "swiglu_clamped_rows": [*gated, REAL, REAL],
        "kv_write_rows": [*[ADDRESS] * 5, *[WHOLE] * 11],
    }
    for name, arguments in takes.items():
        function = getattr(functions, name)
        function.argtypes, function.restype = arguments, None
    return functions
