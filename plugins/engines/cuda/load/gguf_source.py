"""Weights of a GGUF file, dequantised while they are read, and the configuration it holds."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

import msgspec
import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.core.gguf_config import config_fields
from tokenwire.plugins.engines.cuda.layers.site import Cut
from tokenwire.plugins.engines.cuda.load.dequantise import BLOCKS, dequantised
from tokenwire.plugins.engines.cuda.load.gguf_file import GgufFile
from tokenwire.plugins.engines.cuda.load.gguf_names import tensor_names
from tokenwire.plugins.engines.cuda.load.source import Entry, Source
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.families import parse_config

__all__ = ("GgufSource", "find_gguf")

DIVISORS = "rope_freqs.weight"
QUERY, KEY = "self_attn.q_proj.", "self_attn.k_proj."


def find_gguf(path: Path) -> Path | None:
    """The GGUF file that `path` is or has; None: `path` is a folder of safetensors."""
    if path.is_file():
        return path
    if any(path.glob("*.safetensors")) or any(path.glob("*.safetensors.index.json")):
        return None
    files = sorted(path.glob("*.gguf"))
    if len(files) > 1:
        listed = ", ".join(file.name for file in files)
        raise ConfigError(f"engine cuda: {str(path)!r} has {listed}: set `path` to one of them")
    return files[0] if files else None


@final
class GgufSource(Source):
    """The file is mapped into memory and never written."""

    def __init__(self, file: Path) -> None:
        _want_package(file)
        self._mapped = GgufFile(file)
        raw = {tensor.name: tensor for tensor in self._mapped.tensors}
        architecture = str(self._mapped.fields.get("general.architecture"))
        document = config_fields(self._mapped.fields, raw, str(file))
        embedding = raw.get("token_embd.weight")
        if embedding is None:
            raise ConfigError(f"{file}: wanted the tensor 'token_embd.weight', it is not there")
        document["vocab_size"] = embedding.shape[0]
        self._permuted = architecture == "llama"
        divisors = raw.pop(DIVISORS, None)
        listed = None if divisors is None else self._mapped.raw(divisors).view("float32")
        self.config = _config(document, str(file), architecture, listed)
        names = tensor_names(architecture, raw)
        self._tensors = {ours: raw[name] for name, ours in names.items()}
        self._entries = {
            ours: Entry(str(file), tensor.shape, tensor.kind, tensor.bytes, tensor.name)
            for ours, tensor in self._tensors.items()
        }

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    def read(self, name: str, cut: Cut | None = None) -> Tensor:
        """Of a part, the whole is read: blocks and pairs of rows may lie across its edges."""
        entry = self._entries[name]
        values = _values(self._mapped.raw(self._tensors[name]), entry)
        if self._permuted and (QUERY in name or KEY in name):
            heads = self.config.heads if QUERY in name else self.config.kv_heads
            values = _unpermuted(values, heads)
        return values if cut is None else values.narrow(cut.dim, cut.start, cut.length)


def _want_package(file: Path) -> None:
    if find_spec("gguf") is None:
        raise ConfigError(f"{file}: wanted the package gguf, to dequantise it: pip install gguf")


def _config(
    document: dict[str, object], where: str, architecture: str, divisors: Any
) -> ModelConfig:
    config = parse_config(document, where)
    if architecture == "gemma3":
        # Why: in this format the 1 that is added to norms' weights is in them already.
        config = msgspec.structs.replace(config, norm_offset=0.0)
    if divisors is not None:
        listed = tuple(float(each) for each in divisors)
        ropes = tuple(msgspec.structs.replace(rope, divisors=listed) for rope in config.ropes)
        config = msgspec.structs.replace(config, ropes=ropes)
    return config


def _values(raw: Any, entry: Entry) -> Tensor:
    """`raw`: see GgufFile."""
    from gguf import GGMLQuantizationType, dequantize

    if entry.kind == "BF16":
        return torch.from_numpy(raw.copy()).view(torch.bfloat16).view(entry.shape)
    if entry.kind in BLOCKS:
        # Why a copy: torch warns of memory that it could not write to.
        return dequantised(torch.from_numpy(raw.copy()), entry.kind, entry.shape)
    try:
        values = dequantize(raw, GGMLQuantizationType[entry.kind])
    except NotImplementedError as error:
        raise ConfigError(
            f"{entry.file}: tensor {entry.key!r}: no way to dequantise {entry.kind}: {error}"
        ) from error
    if not values.flags.writeable:  # Why: torch warns of memory that it could not write to.
        values = values.copy()
    return torch.from_numpy(values).view(entry.shape)


def _unpermuted(values: Tensor, heads: int) -> Tensor:
    """q's and k's rows as half-split rotation wants them: the llama architecture of this format
    has the two rows of a pair beside each other, checkpoints have them half a head apart."""
    rows = values.shape[0]
    pairs = values.view(heads, rows // heads // 2, 2, *values.shape[1:])
    return pairs.transpose(1, 2).reshape(values.shape)
