"""Qwen2 and Qwen2.5: Llama with biases on q, k and v, windows in later layers. Knows no torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.models.common import layer_windows, sizes
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("QWEN2", "qwen_windows")


def qwen_windows(document: Document, layers: int) -> tuple[int, ...]:
    """None unless `use_sliding_window`; then those of `layer_types`, or of all layers from
    `max_window_layers` on."""
    if not document.get("use_sliding_window", bool, False):
        return (0,) * layers
    window = document.get("sliding_window", int, 0)
    listed = layer_windows(document, layers, window)
    if listed is not None:
        return listed
    first = document.get("max_window_layers", int, 28)
    return tuple(window if layer >= first else 0 for layer in range(layers))


def read(document: Document) -> ModelConfig:
    found = sizes(document)
    found["windows"] = qwen_windows(document, found["layers"])
    return ModelConfig(family="qwen2", **found, qkv_bias=True)


QWEN2 = Family("qwen2", ("Qwen2ForCausalLM", "Qwen2Model"), read)
