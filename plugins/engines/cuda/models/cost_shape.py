"""The engine's config of a model as the cost model's shape. Knows no torch and opens no file."""

from __future__ import annotations

from tokenwire.core.cost.shape import Attention, Gqa, Mla, ModelShape, Moe, Precision
from tokenwire.plugins.engines.cuda.models.config import ModelConfig

__all__ = ("shape_of",)


def shape_of(config: ModelConfig, name: str = "") -> ModelShape:
    """Windows of several widths are all taken to be as the widest."""
    mixture = config.mixture
    windows = [window for window in config.windows if window]
    dense = config.layers - (len(mixture.layers) if mixture else 0)
    return ModelShape(
        name or config.family,
        config.layers,
        config.hidden,
        config.vocab_size,
        _attention(config),
        dense,
        config.intermediate if dense else 0,
        None
        if mixture is None
        else Moe(mixture.experts, mixture.top_k, mixture.intermediate, mixture.shared),
        window=max(windows, default=0),
        window_layers=len(windows),
        tied=config.tie,
        precision=_precision(config),
        max_context=config.context_length,
    )


def _attention(config: ModelConfig) -> Attention:
    if (mla := config.mla) is None:
        return Gqa(config.heads, config.kv_heads, config.head_dim)
    return Mla(config.heads, mla.kv_rank, mla.rope_dim, mla.nope_dim, mla.value_dim, mla.q_rank)


def _precision(config: ModelConfig) -> Precision:
    """As the engine holds the weights: those in four bits are dequantised when they are loaded."""
    found = config.quantisation
    return "fp8" if found is not None and found.method == "fp8" else "bf16"
