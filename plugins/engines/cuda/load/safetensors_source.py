"""Weights of a Hugging Face folder: one .safetensors file, or several with an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from threading import local
from typing import Any, TypeAlias, final

import msgspec
from safetensors import SafetensorError, safe_open
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.site import Cut
from tokenwire.plugins.engines.cuda.load.names import checkpoint_name
from tokenwire.plugins.engines.cuda.load.source import Entry, Source

__all__ = ("SafetensorsSource",)

Rename: TypeAlias = Callable[[str], str | None]

INDEX = "model.safetensors.index.json"
BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2}


@final
class SafetensorsSource(Source):
    """Files are mapped into memory: what is read comes from the page cache, and nothing is written
    beside them, so that a read-only mount will do."""

    def __init__(self, folder: Path, rename: Rename = checkpoint_name) -> None:
        """`rename`: a name in the file -> the network's own; None: the tensor is passed over."""
        self._folder = folder
        self._rename = rename
        self._open = local()
        self._entries: dict[str, Entry] = {}
        for file in _files(folder):
            self._list(file)

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    def read(self, name: str, cut: Cut | None = None) -> Tensor:
        """Of a part, no other bytes are read from the file."""
        return self.part(name, None if cut is None else _index(cut))

    def part(self, name: str, index: tuple[slice, ...] | None) -> Tensor:
        """As `read`, of what slices without a step say."""
        entry = self._entries[name]
        try:
            handle = self._handle(entry.file)
            tensor: Tensor = (
                handle.get_tensor(entry.key)
                if index is None
                else handle.get_slice(entry.key)[index]
            )
        except (SafetensorError, OSError) as error:
            raise ConfigError(f"{entry.file}: tensor {entry.key!r}: {error}") from error
        return tensor

    def _handle(self, file: str) -> Any:
        """Each thread opens each file once."""
        handles: dict[str, Any] | None = getattr(self._open, "handles", None)
        if handles is None:
            handles = self._open.handles = {}
        if file not in handles:
            handles[file] = safe_open(file, framework="pt", device="cpu")
        return handles[file]

    def _list(self, file: Path) -> None:
        try:
            with safe_open(str(file), framework="pt", device="cpu") as opened:
                keys = list(opened.keys())
                parts = {key: opened.get_slice(key) for key in keys}
                found = {
                    key: (tuple(part.get_shape()), str(part.get_dtype()))
                    for key, part in parts.items()
                }
        except (SafetensorError, OSError) as error:
            raise ConfigError(
                f"{file}: wanted a whole safetensors file, and it cannot be read ({error}): "
                "it may be cut short; copy or download it again"
            ) from error
        for key, (shape, kind) in found.items():
            size = prod(shape) * BYTES.get(kind, 1)
            name = self._rename(key)
            if name is not None:
                self._entries[name] = Entry(str(file), shape, kind, size, key)


def _index(cut: Cut) -> tuple[slice, ...]:
    return (*(slice(None),) * cut.dim, slice(cut.start, cut.start + cut.length))


def _files(folder: Path) -> list[Path]:
    """Those that the index names, else every one there is."""
    index = folder / INDEX
    if not index.is_file():
        found = sorted(folder.glob("*.safetensors"))
        if not found:
            raise ConfigError(
                f"{folder}: wanted *.safetensors, and there are none; weights of another format "
                "(pytorch_model*.bin) must be converted"
            )
        return found
    try:
        listed = json.loads(index.read_bytes())["weight_map"]
        names = sorted(set(msgspec.convert(listed, dict[str, str]).values()))
    except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{index}: wanted a 'weight_map' of tensors to files: {error}") from error
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ConfigError(
            f"{index} names {len(names)} files, and {', '.join(missing)} are not in {folder}: "
            "the checkpoint is not whole; copy or download them"
        )
    return [folder / name for name in names]
