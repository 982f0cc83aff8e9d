"""Qwen3 with experts in some layers or all: else as Qwen3 (dense). Knows no torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.models.common import mixture, sizes
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("QWEN3_MOE",)


def read(document: Document) -> ModelConfig:
    found = sizes(document)
    window = 0
    if document.get("use_sliding_window", bool, False):
        window = document.get("sliding_window", int, 0)
    found["windows"] = (window,) * found["layers"]
    bias = document.get("attention_bias", bool, False)
    return ModelConfig(
        family="qwen3_moe",
        **found,
        qkv_bias=bias,
        output_bias=bias,
        qk_norm=True,
        mixture=mixture(
            document,
            _layers(document, found["layers"]),
            document.size("moe_intermediate_size"),
            renormalise=document.get("norm_topk_prob", bool, False),
        ),
    )


def _layers(document: Document, layers: int) -> tuple[int, ...]:
    """Every `decoder_sparse_step`-th layer, those of `mlp_only_layers` left out."""
    step = document.size("decoder_sparse_step", 1)
    dense = document.get("mlp_only_layers", tuple[int, ...], ())
    return tuple(layer for layer in range(layers) if layer not in dense and (layer + 1) % step == 0)


QWEN3_MOE = Family("qwen3_moe", ("Qwen3MoeForCausalLM", "Qwen3MoeModel"), read)
