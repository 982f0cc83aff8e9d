"""Which op a network's gated MLPs use between their two products. Knows no weight."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from torch import Tensor

from tokenwire.plugins.engines.cuda.models.config import Activation, ModelConfig

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("GATES", "Gate", "QuantisingGate", "gate_of_config", "quantising_gate")

GATES: Final[dict[Activation, str]] = {
    "silu": "silu_mul",
    "gelu_tanh": "gelu_mul",
    "swiglu_clamped": "swiglu_clamped",
}
"""A config's activation -> the op."""
Gate: TypeAlias = Callable[[Tensor], Tensor]
"""[T, 2I], the gate's half first -> [T, I]."""
QuantisingGate: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""The same -> [T, I] of float8_e4m3fn and its scales [T, ceil(I / 128)], as fp8_quant of what the
Gate gives, in one pass."""


def gate_of_config(config: ModelConfig, ops: Ops) -> Gate:
    op: Callable[..., Tensor] = getattr(ops, GATES[config.activation])
    if config.activation == "swiglu_clamped":
        return partial(op, alpha=config.gate_alpha, limit=config.gate_limit)
    return op


def quantising_gate(config: ModelConfig, ops: Ops) -> QuantisingGate | None:
    """None: no op does both."""
    return ops.silu_mul_quant if config.activation == "silu" else None
