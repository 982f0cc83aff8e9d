"""A GGUF file's tensors: where their bytes lie. Knows no model, and dequantises nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, final

import numpy as np

from tokenwire.core.errors import ConfigError
from tokenwire.core.gguf_header import GgufHeader, open_gguf

__all__ = ("GgufFile", "GgufTensor")


@dataclass(frozen=True, slots=True)
class GgufTensor:
    name: str
    shape: tuple[int, ...]
    """The slowest dimension first, as torch has it."""
    kind: str
    """Its type's name, as the package gguf has it."""
    start: int
    """Its first byte in the file."""
    bytes: int


@final
class GgufFile:
    """Mapped into memory and never written. Raises ConfigError for a file that is not whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data, header = open_gguf(path)
        self.fields: Mapping[str, object] = header.fields
        """Scalars and texts; arrays are left out."""
        try:
            self.tensors = _tensors(header, len(self._data))
        except (ValueError, KeyError) as error:
            raise ConfigError(
                f"{path}: wanted a whole GGUF file, and it cannot be read ({error}): "
                "it may be cut short; copy or download it again"
            ) from error

    def raw(self, tensor: GgufTensor) -> Any:
        """uint8, the tensor's shape with each row's bytes in place of its values; read-only."""
        found = np.frombuffer(self._data, np.uint8, tensor.bytes, tensor.start)
        rows = tensor.shape[:-1]
        return found.reshape(*rows, tensor.bytes // max(1, prod(rows)))


def _tensors(header: GgufHeader, size: int) -> tuple[GgufTensor, ...]:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    found = []
    for entry in header.tensors:
        kind = GGMLQuantizationType(entry.type)
        together, width = GGML_QUANT_SIZES[kind]
        length = prod(entry.shape) // together * width
        start = header.end + entry.offset
        if start + length > size:
            raise ValueError(
                f"tensor {entry.name!r}: wanted bytes {start} to {start + length}, "
                f"and the file has {size}"
            )
        found.append(GgufTensor(entry.name, entry.shape, kind.name, start, length))
    return tuple(found)
