"""Builds what `task: embed` runs: loads the embedder, makes its card and its loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.tokens import Adapter, EngineCard
from tokenwire.kernels.op import Signature
from tokenwire.kernels.ops import Ops
from tokenwire.plugins.engines.cuda import preflight
from tokenwire.plugins.engines.cuda.about import About, line
from tokenwire.plugins.engines.cuda.alive import is_alive
from tokenwire.plugins.engines.cuda.build import choose_ops
from tokenwire.plugins.engines.cuda.built import Built
from tokenwire.plugins.engines.cuda.embedding_queue import EmbeddingQueue
from tokenwire.plugins.engines.cuda.embedding_worker import EmbeddingWorker, Vector
from tokenwire.plugins.engines.cuda.layers.packed import pack
from tokenwire.plugins.engines.cuda.load import load_config, load_embedder
from tokenwire.plugins.engines.cuda.models.bert_config import BERT_ARCHITECTURES
from tokenwire.plugins.engines.cuda.models.embed import CausalEmbedder, EncoderEmbedder
from tokenwire.plugins.engines.cuda.models.pooling import PoolingSpec
from tokenwire.plugins.engines.cuda.progress import Progress, bar
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.shortage import reserving
from tokenwire.plugins.engines.cuda.sizes import GIB
from tokenwire.plugins.engines.cuda.slots import fill_slots

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.load import LoadedEmbedder
    from tokenwire.plugins.engines.cuda.models.embed import Embedder

__all__ = ("build_embedding",)

LOG = logging.getLogger("tokenwire.engine.cuda")
CAPABILITIES = ("priority", "deadline")


def build_embedding(
    settings: CudaSettings,
    services: Services,
    path: Path,
    *,
    device: str,
    machine: preflight.Machine,
    revision: str,
    told: Progress | None = None,
) -> Built:
    """`told`, and what is raised: as of `build_here`."""
    if settings.objective == "determinism":
        raise ConfigError(
            "engine cuda: objective: determinism: wanted task: generate, got task: embed, whose "
            "texts are packed with others: set objective to latency"
        )
    if device == "cpu" and settings.threads is not None:
        torch.set_num_threads(settings.threads)
    dtype = torch.float32 if device == "cpu" else None
    if settings.dtype != "auto":
        dtype = getattr(torch, settings.dtype)
    ops = _ops(settings, path, device, dtype, machine)
    preflight.take_built(settings.kernel_lib, machine)
    remedy = "take a smaller checkpoint or dtype, or another device"
    with (
        bar(path.name, told) as progress,
        reserving(device, path.name, lambda: _size(path), remedy),
    ):
        loaded = load_embedder(
            path,
            device=device,
            dtype=dtype,
            ops=ops,
            quantisation=settings.quantisation,
            progress=progress,
        )
    embedder = _pooled(loaded.embedder, settings)
    _fill(embedder, settings, path)
    texts = settings.max_batch_size or (64 if device == "cpu" else 256)
    tokens = settings.max_batch_tokens or max(4096 if device == "cpu" else 32768, texts)
    card = make_card(settings, services, loaded, revision=revision)

    def embed(batch: Sequence[tuple[Sequence[int], int]]) -> list[Vector]:
        slots = [slot for _, slot in batch] if any(slot for _, slot in batch) else None
        packed = pack([ids for ids, _ in batch], device, slots)
        return [tuple(each) for each in embedder.embed(packed).tolist()]

    facts: About = {
        "model": services.model or path.name,
        "task": "embed",
        "device": device,
        "torch": str(torch.__version__),
        "pooling": embedder.spec.kind,
        "dimensions": loaded.dimensions,
        "context_length": card.context_length,
        "max_batch_size": texts,
        "max_batch_tokens": tokens,
        "bytes": loaded.bytes,
        "weights_gib": round(loaded.bytes / GIB, 4),
        "load_seconds": round(loaded.seconds, 3),
    }
    LOG.info("ready %s", line(facts))
    worker = EmbeddingWorker(
        card,
        EmbeddingQueue(texts, tokens),
        embed,
        is_alive=lambda: is_alive(device),
        adapters=tuple(settings.adapters),
        about=facts,
    )
    return Built(worker, card, texts)


def make_card(
    settings: CudaSettings, services: Services, loaded: LoadedEmbedder, *, revision: str
) -> EngineCard:
    asked = settings.max_model_len or services.context_length
    if asked is not None and asked > loaded.context_length:
        raise ConfigError(
            f"engine cuda: max_model_len is {asked}, the model was made for texts of "
            f"{loaded.context_length} tokens: lower it"
        )
    vocabulary = None if services.tokenizer is None else services.tokenizer.vocabulary
    known = loaded.vocab_size if vocabulary is None else vocabulary.size
    return EngineCard(
        model=services.model,
        revision=revision,
        # Why the smaller: ids beyond the tokenizer mean nothing, ids beyond the model crash it.
        vocab_size=min(known, loaded.vocab_size),
        context_length=asked or loaded.context_length,
        fingerprints={} if vocabulary is None else vocabulary.fingerprints,
        adapters=tuple(Adapter(name) for name in settings.adapters),
        tasks=("embed",),
        embedding_size=loaded.dimensions,
        capabilities=(*CAPABILITIES, *(("adapter",) if settings.adapters else ())),
        credit_cap=settings.credit_cap,
    )


def _ops(
    settings: CudaSettings,
    path: Path,
    device: str,
    dtype: torch.dtype | None,
    machine: preflight.Machine,
) -> Ops:
    """Of an encoder none is used but those of torch."""
    place = "cuda" if device.startswith("cuda") else "cpu"
    if _is_encoder(path):
        kind = dtype or torch.float32
        return Ops.choose(Signature(device=place, capability=machine.capability, dtype=kind))
    config = load_config(path)
    return choose_ops(settings, config, device, dtype or getattr(torch, config.dtype), machine)


def _size(path: Path) -> int:
    """Bytes of the weights' files."""
    files = [path] if path.is_file() else path.glob("*.safetensors")
    return sum(file.stat().st_size for file in files)


def _is_encoder(path: Path) -> bool:
    if not path.is_dir() or not (path / "config.json").is_file():
        return False
    named = Checkpoint(path).config().get("architectures")
    return isinstance(named, list) and any(name in BERT_ARCHITECTURES for name in named)


def _pooled(embedder: Embedder, settings: CudaSettings) -> CausalEmbedder | EncoderEmbedder:
    """With the settings' pooling, where they say one."""
    if not isinstance(embedder, CausalEmbedder | EncoderEmbedder):
        raise TypeError(f"wanted an embedder that pools, got a {type(embedder).__name__}")
    match settings.pooling:
        case "auto":
            pass
        case "cls":
            embedder.spec = PoolingSpec("first", embedder.spec.normalise)
        case kind:
            embedder.spec = PoolingSpec(kind, embedder.spec.normalise)
    return embedder


def _fill(embedder: CausalEmbedder | EncoderEmbedder, settings: CudaSettings, path: Path) -> None:
    if isinstance(embedder, CausalEmbedder):
        fill_slots(embedder.model, settings.adapters)
    elif settings.adapters:
        raise ConfigError(
            f"engine cuda: adapters: {path} is an encoder, which takes none: leave them out"
        )
