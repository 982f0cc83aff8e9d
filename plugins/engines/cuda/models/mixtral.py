"""Mixtral: Mistral with experts in every layer. Knows no torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.models.common import mixture, sizes
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("MIXTRAL",)


def read(document: Document) -> ModelConfig:
    found = sizes(document)
    layers = found["layers"]
    found["windows"] = (document.get("sliding_window", int, 0),) * layers
    experts = mixture(document, tuple(range(layers)), found["intermediate"], renormalise=True)
    return ModelConfig(family="mixtral", **found, mixture=experts)


MIXTRAL = Family("mixtral", ("MixtralForCausalLM", "MixtralModel"), read)
