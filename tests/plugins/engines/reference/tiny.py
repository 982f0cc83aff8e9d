"""A tiny Llama with random weights, made on the spot."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

__all__ = ("VOCABULARY", "tiny_llama")

VOCABULARY = 160


@cache
def tiny_llama(vocabulary: int = VOCABULARY) -> Path:
    """Its folder, the same one for the whole run; skips the test where torch is missing."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        # Why so large: small weights make every answer one id repeated.
        initializer_range=0.5,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
    folder = Path(mkdtemp(prefix="tokenwire-tiny-"))
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder
