"""An embedder from a folder: BERT, or a causal model of a known family, and its pooling."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.load.filling import fill
from tokenwire.plugins.engines.cuda.load.loading import QuantisationChoice, load
from tokenwire.plugins.engines.cuda.load.names import bert_name
from tokenwire.plugins.engines.cuda.load.safetensors_source import SafetensorsSource
from tokenwire.plugins.engines.cuda.models.bert import BertModel
from tokenwire.plugins.engines.cuda.models.bert_config import BERT_ARCHITECTURES, read_bert
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.embed import (
    CausalEmbedder,
    Embedder,
    EncoderEmbedder,
)
from tokenwire.plugins.engines.cuda.models.pooling import read_pooling
from tokenwire.plugins.engines.cuda.progress import Progress

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("LoadedEmbedder", "load_embedder")


@dataclass(frozen=True, slots=True)
class LoadedEmbedder:
    embedder: Embedder
    dimensions: int
    vocab_size: int
    context_length: int
    """Tokens of the longest text."""
    bytes: int
    seconds: float


def load_embedder(
    path: Path,
    *,
    device: torch.device | str,
    dtype: torch.dtype | None,
    ops: Ops,
    quantisation: QuantisationChoice = "auto",
    progress: Progress | None = None,
) -> LoadedEmbedder:
    """`path`: a Hugging Face folder, with sentence-transformers' files where it has them.

    Without them an encoder's vectors are the mean of its tokens', a causal model's the last's,
    both of length 1. Raises ConfigError as `load` does.
    """
    started = time.monotonic()
    document = Document(Checkpoint(path).config(), str(path / "config.json"))
    named = document.get("architectures", tuple[str, ...], ())
    if any(name in BERT_ARCHITECTURES for name in named):
        return _encoder(
            path, document, device=device, dtype=dtype, progress=progress, started=started
        )
    loaded = load(
        path,
        device=device,
        dtype=dtype,
        ops=ops,
        quantisation=quantisation,
        progress=progress,
        with_head=False,
    )
    config = loaded.config
    return LoadedEmbedder(
        CausalEmbedder(loaded.model, read_pooling(path, "last")),
        config.hidden,
        config.vocab_size,
        _longest(path, config.context_length),
        loaded.bytes,
        time.monotonic() - started,
    )


def _encoder(
    path: Path,
    document: Document,
    *,
    device: torch.device | str,
    dtype: torch.dtype | None,
    progress: Progress | None,
    started: float,
) -> LoadedEmbedder:
    config = read_bert(document)
    model = BertModel(config, device=device, dtype=dtype or getattr(torch, config.dtype))
    fill(model.places, SafetensorsSource(path, bert_name), progress=progress)
    return LoadedEmbedder(
        EncoderEmbedder(model, read_pooling(path, "mean")),
        config.hidden,
        config.vocab_size,
        _longest(path, config.context_length),
        model.weight_bytes,
        time.monotonic() - started,
    )


def _longest(path: Path, context: int) -> int:
    """sentence_bert_config.json's max_seq_length, where it is smaller than the model's own."""
    file = path / "sentence_bert_config.json"
    if not file.is_file():
        return context
    try:
        fields = msgspec.json.decode(file.read_bytes(), type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{file}: wanted a JSON object: {error}") from error
    return min(context, Document(fields, str(file)).get("max_seq_length", int, context))
