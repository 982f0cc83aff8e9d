"""Products by weights that panels.cpp laid out in panels: for CPUs of AVX2 without wider vectors;
and, to the same bits, by weights that are not: for those who want a row's bits whatever the batch.

There, one thread of a Zen 4 with 64 rows multiplies at 75 to 85 GFLOP/s in float32, where torch's
`linear` reaches 50 to 74; in bfloat16, which such CPUs have no instructions for, at 70 to 77 where
`linear` reaches 17.
"""

from __future__ import annotations

import ctypes
import platform
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from tokenwire.kernels.native import compiler_reason, library
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import cpu_reason

__all__ = (
    "PANEL",
    "grouped",
    "linear",
    "pack",
    "panels_reason",
    "plain_grouped",
    "plain_linear",
    "plain_reason",
)

SOURCE = Path(__file__).with_name("panels.cpp")
KINDS = {torch.float32: 0, torch.bfloat16: 1}
PANEL = 16
"""Outputs of a panel: what a weight's outputs must be a multiple of."""


def panels_reason(device: torch.device, dtype: torch.dtype) -> str:
    """Why weights of `dtype` should not lie in panels on this machine, or ""."""
    if device.type != "cpu":
        return f"needs the CPU, not '{device.type}'"
    if dtype not in KINDS:
        return "takes float32 or bfloat16"
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return f"is not measured on {platform.machine()}"
    ask = getattr(torch.cpu, "get_capabilities", None)
    features = ask() if ask is not None else {}
    if not (features.get("avx2") and features.get("fma3")):
        return "needs AVX2 and FMA, or a torch that says whether they are there"
    if features.get("avx512_f"):
        return "torch's own products use AVX-512, which is faster"
    return compiler_reason(SOURCE)


def plain_reason(signature: Signature) -> str:
    """Why `plain_linear` cannot serve this signature, or ""."""
    if reason := cpu_reason(signature):
        return reason
    if signature.dtype not in KINDS:
        return "takes float32 or bfloat16"
    return compiler_reason(SOURCE)


def pack(weight: Tensor) -> None:
    """[N, K] to N / PANEL panels of [K, PANEL], in place: afterwards only `linear` can read it."""
    outputs, inputs = weight.shape
    if outputs % PANEL or not weight.is_contiguous() or weight.dtype not in KINDS:
        raise ValueError(
            f"pack: wanted a dense float32 or bfloat16 weight of a multiple of {PANEL} outputs, "
            f"got {tuple(weight.shape)} of {weight.dtype}"
        )
    _functions().panel_pack(weight.element_size(), weight.data_ptr(), outputs, inputs)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x [T, K] by a packed weight [N, K], and bias [N]: [T, N], summed in float32.

    A row's bits do not depend on the other rows, nor on how many there are.
    """
    return _linear(x, weight, bias, packed=True)


def plain_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As `linear`, by a weight as it is, of any number of outputs: the same bits, more slowly."""
    return _linear(x, weight.contiguous(), bias, packed=False)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, *, packed: bool) -> Tensor:
    (rows, inputs), outputs = x.shape, weight.shape[0]
    if x.dtype != weight.dtype or inputs != weight.shape[1]:
        raise ValueError(
            f"linear: x {tuple(x.shape)} of {x.dtype} does not go with a "
            f"{'packed ' if packed else ''}weight {tuple(weight.shape)} of {weight.dtype}"
        )
    x = x.contiguous()
    wide = None if bias is None else bias.float().contiguous()
    y = torch.empty((rows, outputs), dtype=x.dtype)
    _functions().panel_linear(
        KINDS[x.dtype], x.data_ptr(), rows, inputs, weight.data_ptr(), outputs,
        None if wide is None else wide.data_ptr(), torch.get_num_threads(), packed, y.data_ptr(),
    )  # fmt: skip
    return y


def grouped(x: Tensor, weight: Tensor, offsets: Tensor) -> Tensor:
    """As the op grouped_matmul, with weight [E, N, K] that was packed as [E * N, K]; N divides by
    PANEL. A row's bits do not depend on the other rows."""
    return _grouped(x, weight, offsets, packed=True)


def plain_grouped(x: Tensor, weight: Tensor, offsets: Tensor) -> Tensor:
    """As `grouped`, by weights as they are, of any number of outputs: the same bits."""
    return _grouped(x, weight.contiguous(), offsets, packed=False)


def _grouped(x: Tensor, weight: Tensor, offsets: Tensor, *, packed: bool) -> Tensor:
    (rows, inputs), (experts, outputs, _) = x.shape, weight.shape
    if x.dtype != weight.dtype or inputs != weight.shape[2] or offsets.dtype != torch.int32:
        raise ValueError(
            f"grouped: x {tuple(x.shape)} of {x.dtype} with offsets of {offsets.dtype} does not go "
            f"with {'packed ' if packed else ''}weights {tuple(weight.shape)} of {weight.dtype}"
        )
    x, offsets = x.contiguous(), offsets.contiguous()
    y = torch.empty((rows, outputs), dtype=x.dtype)
    _functions().panel_grouped(
        KINDS[x.dtype], x.data_ptr(), offsets.data_ptr(), experts, inputs, weight.data_ptr(),
        outputs, torch.get_num_threads(), packed, y.data_ptr(),
    )  # fmt: skip
    return y


@lru_cache(maxsize=1)
def _functions() -> ctypes.CDLL:
    functions = library(SOURCE)
    kind, address, whole = ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64
    functions.panel_linear.argtypes = [
        kind, address, whole, whole, address, whole, address, whole, kind, address,
    ]  # fmt: skip
    functions.panel_grouped.argtypes = [
        kind, address, address, whole, whole, address, whole, whole, kind, address,
    ]  # fmt: skip
    functions.panel_pack.argtypes = [kind, address, whole, whole]
    for name in ("panel_linear", "panel_grouped", "panel_pack"):
        getattr(functions, name).restype = None
    return functions
