"""Mistral: Llama with a window over all layers, where the config has one. Knows no torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.models.common import layer_windows, sizes
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("MISTRAL",)


def read(document: Document) -> ModelConfig:
    found = sizes(document)
    window = document.get("sliding_window", int, 0)
    windows = layer_windows(document, found["layers"], window)
    found["windows"] = (window,) * found["layers"] if windows is None else windows
    return ModelConfig(family="mistral", **found)


MISTRAL = Family("mistral", ("MistralForCausalLM", "MistralModel", "MinistralForCausalLM"), read)
