"""Loads networks: `load` is the door. Imports torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.load.adapters import (
    Adapter,
    put_adapter,
    read_adapter,
    remove_adapter,
)
from tokenwire.plugins.engines.cuda.load.embedders import LoadedEmbedder, load_embedder
from tokenwire.plugins.engines.cuda.load.loading import (
    Loaded,
    QuantisationChoice,
    keeps_fp8,
    load,
    load_config,
)

__all__ = (
    "Adapter",
    "Loaded",
    "LoadedEmbedder",
    "QuantisationChoice",
    "keeps_fp8",
    "load",
    "load_config",
    "load_embedder",
    "put_adapter",
    "read_adapter",
    "remove_adapter",
)
