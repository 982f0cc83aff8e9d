"""Llama 2 and 3.x, and what is built like it (SmolLM2): read from config.json. Knows no torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.models.common import sizes
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("LLAMA",)


def read(document: Document) -> ModelConfig:
    bias = document.get("attention_bias", bool, False)
    return ModelConfig(
        family="llama",
        **sizes(document),
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=document.get("mlp_bias", bool, False),
    )


LLAMA = Family("llama", ("LlamaForCausalLM", "LlamaModel"), read)
