"""Tiny checkpoints with random weights, made on the spot."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

__all__ = ("SIZES", "VOCABULARY", "tiny")

VOCABULARY = 96
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
}


def tiny(folder: Path, kind: str = "Llama", *, shard: str = "50GB", **changes):
    """transformers' network, saved to `folder`."""
    torch.manual_seed(1)
    text = "Text" if kind == "Gemma3" else ""
    config = getattr(transformers, f"{kind}{text}Config")(**{**SIZES, **changes})
    network = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3 + float("norm" in name))
    network.save_pretrained(folder, max_shard_size=shard)
    return network
