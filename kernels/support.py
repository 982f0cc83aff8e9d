"""Shared answers of `supports`: is Triton there, is the package, does the GPU suffice. No op."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection
from importlib.util import find_spec

import torch

from tokenwire.kernels.op import Signature

__all__ = (
    "FLOATS",
    "FP8",
    "HALVES",
    "cpu_reason",
    "multiplies",
    "triton_reason",
    "vendor_reason",
)

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
HALVES = (torch.bfloat16, torch.float16)
FP8 = torch.float8_e4m3fn
FLASHINFER = ("flashinfer-python", "flashinfer")
"""Its name on PyPI and its module."""


def cpu_reason(signature: Signature) -> str:
    """Why a kernel for the CPU cannot serve this signature, or ""."""
    return "" if signature.device == "cpu" else f"needs the CPU, not '{signature.device}'"


def multiplies(dtype: torch.dtype) -> bool:
    """Whether the CPU multiplies in a 16-bit `dtype`; other machines than x86 are left to torch,
    and so are all where torch is too old to say."""
    ask = getattr(torch.cpu, "get_capabilities", None)
    if ask is None or platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    found = ask()
    names = ("avx512_bf16", "amx_bf16") if dtype == torch.bfloat16 else ("avx512_fp16", "amx_fp16")
    return any(found.get(name) for name in names)


def triton_reason(
    signature: Signature,
    *,
    dtypes: Collection[torch.dtype] = FLOATS,
    minimum: tuple[int, int] = (8, 0),
) -> str:
    """Why a Triton kernel cannot serve this signature, or ""."""
    if find_spec("triton") is None:
        return "triton is not installed: pip install 'tokenwire[cuda]'"
    if signature.dtype not in dtypes:
        return f"no kernel for {_named(signature.dtype)}"
    if signature.interpret:
        if os.environ.get("TRITON_INTERPRET") != "1":
            return "Triton's interpreter is off: start the process with TRITON_INTERPRET=1"
        return ""
    return _gpu_reason(signature, minimum)


def fp8_reason(signature: Signature) -> str:
    """As triton_reason, for kernels that write or multiply float8_e4m3fn."""
    return triton_reason(signature, minimum=(8, 9))


def vendor_reason(
    package: str,
    module: str,
    signature: Signature,
    *,
    dtypes: Collection[torch.dtype] = HALVES,
    minimum: tuple[int, int] = (8, 0),
) -> str:
    """Why a vendor's package (its name on PyPI, its module) cannot serve this signature, or ""."""
    if find_spec(module) is None:
        return f"{package} is not installed: pip install {package}"
    if signature.dtype not in dtypes:
        return f"{package} has no kernel for {_named(signature.dtype)}"
    return _gpu_reason(signature, minimum)


def _gpu_reason(signature: Signature, minimum: tuple[int, int]) -> str:
    if signature.device != "cuda":
        return f"needs a CUDA device, not '{signature.device}'"
    if signature.capability is None:
        return "the GPU's compute capability is unknown"
    if signature.capability < minimum:
        have, need = (".".join(map(str, pair)) for pair in (signature.capability, minimum))
        return f"needs compute capability {need}, the GPU has {have}"
    return ""


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
