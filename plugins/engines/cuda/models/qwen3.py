"""Qwen3 (dense): no biases by default, every head's q and k normalised. Knows no torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.models.common import sizes
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family
from tokenwire.plugins.engines.cuda.models.qwen2 import qwen_windows

__all__ = ("QWEN3",)


def read(document: Document) -> ModelConfig:
    found = sizes(document)
    found["windows"] = qwen_windows(document, found["layers"])
    bias = document.get("attention_bias", bool, False)
    return ModelConfig(family="qwen3", **found, qkv_bias=bias, output_bias=bias, qk_norm=True)


QWEN3 = Family("qwen3", ("Qwen3ForCausalLM", "Qwen3Model"), read)
