"""A network from a folder or a GGUF file: its configuration, its memory, its weights."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

import torch

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.shares import OPS_BLOCK
from tokenwire.plugins.engines.cuda.layers.site import Lying
from tokenwire.plugins.engines.cuda.load.filling import fill
from tokenwire.plugins.engines.cuda.load.gguf_source import GgufSource, find_gguf
from tokenwire.plugins.engines.cuda.load.safetensors_source import SafetensorsSource
from tokenwire.plugins.engines.cuda.load.source import Source
from tokenwire.plugins.engines.cuda.load.stacked_source import StackedSource
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.families import read_config
from tokenwire.plugins.engines.cuda.progress import Progress

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("Loaded", "QuantisationChoice", "keeps_fp8", "load", "load_config")

LOG = logging.getLogger("tokenwire.engine.load")

QuantisationChoice = Literal["auto", "fp8", "none"]
"""Of fp8 checkpoints. fp8: their weights stay so in memory. none: they are dequantised into the
network's dtype. auto: fp8 on a GPU, none on a CPU, where nothing multiplies in it fast."""


@dataclass(frozen=True, slots=True)
class Loaded:
    model: CausalModel
    config: ModelConfig
    bytes: int
    """Of weights in the device's memory."""
    seconds: float


def load_config(path: Path) -> ModelConfig:
    """Of a folder (config.json, or the one .gguf file in it) or of a GGUF file."""
    return _open(path)[0]


def load(
    path: Path,
    *,
    device: torch.device | str,
    dtype: torch.dtype | None,
    ops: Ops,
    quantisation: QuantisationChoice = "auto",
    progress: Progress | None = None,
    positions: int | None = None,
    threads: int | None = None,
    with_head: bool = True,
    **lies: Unpack[Lying],
) -> Loaded:
    """`path`: a folder with config.json and *.safetensors, or with one .gguf; or a .gguf file.
    `dtype` None: the checkpoint's. `positions`: how many a sequence may have; None: as many as the
    model was made for. `with_head` False: for embedding alone. `lies`: as a Site's; of several
    ranks each loads its part.

    Raises ConfigError that names file, tensor, what was wanted and what came, or what of the model
    cannot be cut.
    """
    started = time.monotonic()
    config, source = _open(path)
    kind = dtype or getattr(torch, config.dtype)
    model = CausalModel(
        config,
        ops,
        device=device,
        dtype=kind,
        positions=positions,
        with_head=with_head,
        keeps_fp8=keeps_fp8(quantisation, config, device),
        **lies,
    )
    mesh = model.site.mesh
    headless = config.tie or not with_head
    fill(
        model.places,
        source,
        cuts=model.site.cuts,
        doubles=model.site.doubles,
        orders=model.site.orders,
        elsewhere=model.site.elsewhere,
        optional=_optional(config, source, headless=headless),
        block=config.quantisation.block if config.quantisation else None,
        threads=threads or min(8, os.cpu_count() or 1),
        progress=progress,
    )
    seconds = time.monotonic() - started
    LOG.info(
        "loaded %s in %.1f s (%.2f GB/s): %s, %s on %s, rank %d of %s",
        path.name,
        seconds,
        model.weight_bytes / 1e9 / max(seconds, 1e-9),
        config.family,
        str(kind).removeprefix("torch."),
        device,
        mesh.rank,
        mesh.layout.name,
    )
    return Loaded(model, config, model.weight_bytes, seconds)


def _optional(config: ModelConfig, source: Source, *, headless: bool) -> frozenset[str]:
    """Tensors that the source may have, and the network does not."""
    last = config.layers + config.later_layers
    spare = tuple(f"model.layers.{layer}." for layer in range(config.layers, last))
    found = {name for name in source.entries if spare and name.startswith(spare)}
    return frozenset(found | {"lm_head.weight"}) if headless else frozenset(found)


def keeps_fp8(choice: QuantisationChoice, config: ModelConfig, device: torch.device | str) -> bool:
    """Whether weights stay in fp8 on `device`: those of layers that blocks fit into. Raises
    ConfigError where fp8 is asked for, and the checkpoint is not of it."""
    found = config.quantisation
    kind = "none" if found is None else found.method
    if choice == "fp8" and kind != "fp8":
        raise ConfigError(
            f"engine cuda: quantisation: fp8, and the checkpoint's weights ({config.family}) have "
            f"{kind}: set quantisation to auto, or take a checkpoint in fp8"
        )
    if choice == "fp8" and found is not None and found.block != OPS_BLOCK:
        wanted, came = (" x ".join(map(str, block)) for block in (OPS_BLOCK, found.block))
        raise ConfigError(
            f"engine cuda: quantisation: fp8, and the checkpoint ({config.family}) has blocks of "
            f"{came}, where products take {wanted}: set quantisation to auto, which dequantises"
        )
    is_on_gpu = torch.device(device).type != "cpu"
    return kind == "fp8" and (choice == "fp8" or (choice == "auto" and is_on_gpu))


def _open(path: Path) -> tuple[ModelConfig, Source]:
    if not path.exists():
        raise ConfigError(
            f"engine cuda: nothing at {str(path)!r}: set `path` (or the model's `checkpoint`) to a "
            "folder with config.json and *.safetensors, or to a .gguf file"
        )
    file = find_gguf(path)
    if file is not None:
        source = GgufSource(file)
        return source.config, source
    config, files = read_config(path), SafetensorsSource(path)
    is_stacked = config.mixture is not None and config.mixture.stacked
    return config, StackedSource(files) if is_stacked else files
