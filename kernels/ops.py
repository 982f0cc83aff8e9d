"""All ops of the engine and the callables chosen for one signature. Holds no tensor.

Each folder of FOLDERS has `OPS`, a tuple of Op; the fields of `Ops` are their names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from torch import Tensor

from tokenwire.kernels.op import Op, Signature
from tokenwire.kernels.registry import Choice, Objective, choose

__all__ = ("FOLDERS", "VARIABLE", "Ops", "all_ops")

FOLDERS = (
    "rms_norm",
    "rope",
    "silu_mul",
    "gelu_mul",
    "swiglu_clamped",
    "kv_write",
    "attention",
    "mla",
    "sample",
    "penalties",
    "token_mask",
    "logprobs",
    "matmul",
    "fp8_quant",
    "silu_mul_quant",
    "fp8_matmul",
    "moe_route",
    "moe_permute",
    "grouped_matmul",
    "fp8_grouped_matmul",
    "moe_combine",
    "ep_dispatch",
    "ep_combine",
)
VARIABLE = "TOKENWIRE_KERNEL_"
"""TOKENWIRE_KERNEL_ATTENTION_DECODE=reference takes that implementation, whatever else applies."""


def all_ops() -> tuple[Op, ...]:
    """Every op, in the order of FOLDERS. Imports no kernel."""
    modules = (import_module(f"tokenwire.kernels.{folder}") for folder in FOLDERS)
    return tuple(op for module in modules for op in module.OPS)


@dataclass(frozen=True, slots=True)
class Ops:
    """One callable an op. Shapes and meaning stand in each op's reference.py."""

    rms_norm: Callable[..., Tensor]
    add_rms_norm: Callable[..., tuple[Tensor, Tensor]]
    rope: Callable[..., tuple[Tensor, Tensor]]
    silu_mul: Callable[..., Tensor]
    gelu_mul: Callable[..., Tensor]
    swiglu_clamped: Callable[..., Tensor]
    kv_write: Callable[..., None]
    attention_prefill: Callable[..., Tensor]
    attention_decode: Callable[..., Tensor]
    mla_write: Callable[..., None]
    mla_decode: Callable[..., Tensor]
    mla_prefill: Callable[..., Tensor]
    sample: Callable[..., Tensor]
    penalties: Callable[..., None]
    token_mask: Callable[..., None]
    logprobs: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]
    matmul: Callable[..., Tensor]
    fp8_quant: Callable[..., tuple[Tensor, Tensor]]
    silu_mul_quant: Callable[..., tuple[Tensor, Tensor]]
    fp8_matmul: Callable[..., Tensor]
    moe_route: Callable[..., tuple[Tensor, Tensor]]
    moe_permute: Callable[..., tuple[Tensor, Tensor, Tensor]]
    grouped_matmul: Callable[..., Tensor]
    grouped_matmul_masked: Callable[..., None]
    fp8_grouped_matmul: Callable[..., Tensor]
    fp8_grouped_matmul_masked: Callable[..., None]
    moe_combine: Callable[..., Tensor]
    ep_plan: Callable[..., tuple[Tensor, Tensor, Tensor]]
    ep_pack: Callable[..., Tensor]
    ep_unpack: Callable[..., tuple[Tensor, Tensor]]
    ep_return: Callable[..., Tensor]
    ep_combine: Callable[..., Tensor]
    choices: tuple[Choice, ...]
    """Why each was taken, for status and the start line."""

    @staticmethod
    def choose(
        signature: Signature,
        overrides: Mapping[str, str] | None = None,
        *,
        objective: Objective = "latency",
        environ: Mapping[str, str] = os.environ,
    ) -> Ops:
        """The best of every op. `overrides` is op -> implementation, as configuration names them;
        an environment variable goes before it. Raises ValueError for an op or implementation that
        does not exist or does not apply, naming where it was said."""
        ops = {op.name: op for op in all_ops()}
        named = {**(overrides or {}), **_from_environment(environ)}
        for name in named:
            if name not in ops:
                raise ValueError(f"kernels: no op is called '{name}'; they are: {', '.join(ops)}")
        chosen: dict[str, Callable[..., Any]] = {}
        choices: list[Choice] = []
        for name, op in ops.items():
            chosen[name], choice = choose(
                op, signature, objective=objective, override=named.get(name)
            )
            choices.append(choice)
        return Ops(**{name: chosen[name] for name in _names()}, choices=tuple(choices))


def _names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(Ops) if field.name != "choices")


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(VARIABLE).lower(): value
        for name, value in environ.items()
        if name.startswith(VARIABLE) and value
    }
