"""`objective: determinism`: what a request gets does not hang on its company, or it is refused.

Every op that the network uses must be steady: a token's bits depend on it and on the tokens before
it alone, however prompts are cut, whoever shares a step, and whether KV was computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.activation import GATES

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops
    from tokenwire.plugins.engines.cuda.models.config import ModelConfig

__all__ = ("want_steady",)

MIXTURES = ("moe_", "grouped_", "ep_", "fp8_grouped_")
ATTENTION = ("kv_write", "attention_prefill", "attention_decode")
LATENT = ("mla_write", "mla_decode", "grouped_matmul")
"""Of attention over latents, where every token is absorbed: heads are multiplied as experts are."""
REMEDY = "or set objective to latency"


def want_steady(config: ModelConfig, ops: Ops, dispatcher: str, *, keeps_fp8: bool) -> None:
    """`keeps_fp8`: weights stay in fp8. Raises ConfigError that names the op and says what would
    help."""
    if dispatcher == "deep_ep":
        raise ConfigError(
            "engine cuda: objective: determinism: DeepEP's sums hang on what else is sent: set "
            f"dispatcher to auto, {REMEDY}"
        )
    used = [choice for choice in ops.choices if _is_used(choice.op, config, keeps_fp8=keeps_fp8)]
    for choice in used:
        if choice.is_steady:
            continue
        others = "; ".join(f"{name}: {reason}" for name, reason in choice.rejected.items())
        raise ConfigError(
            f"engine cuda: objective: determinism: {choice.op} by {choice.name} ({choice.why}) may "
            f"change a request's bits with its company, and no other applies ({others}): install "
            f"what lacks, name another kernel, {REMEDY}"
        )


def _is_used(op: str, config: ModelConfig, *, keeps_fp8: bool) -> bool:
    if config.mla is not None and op in LATENT:
        return True
    if op.startswith("mla_"):
        return False
    if op in ATTENTION:
        return config.mla is None
    if op in GATES.values():
        return op == GATES[config.activation]
    if op.startswith("fp8_") or op == "silu_mul_quant":
        return keeps_fp8 and (config.mixture is not None or not op.startswith(MIXTURES))
    return config.mixture is not None or not op.startswith(MIXTURES)
