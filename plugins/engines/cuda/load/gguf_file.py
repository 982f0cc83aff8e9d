"""A GGUF file's header and where its tensors lie. Knows no model, and dequantises nothing.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
(The package gguf reads the same; with a vocabulary in the file it takes it seconds.)
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, final

import numpy as np

from tokenwire.core.errors import ConfigError

__all__ = ("GgufFile", "GgufTensor")

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?"}
SCALARS |= {10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


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
        try:
            with path.open("rb") as opened:
                self._data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            header = _Header(self._data)
            self.fields: Mapping[str, object] = header.fields
            """Scalars and texts; arrays are left out."""
            self.tensors = _tensors(header, len(self._data))
        except (OSError, ValueError, KeyError, struct.error) as error:
            raise ConfigError(
                f"{path}: wanted a whole GGUF file, and it cannot be read ({error}): "
                "it may be cut short; copy or download it again"
            ) from error

    def raw(self, tensor: GgufTensor) -> Any:
        """uint8, the tensor's shape with each row's bytes in place of its values; read-only."""
        found = np.frombuffer(self._data, np.uint8, tensor.bytes, tensor.start)
        rows = tensor.shape[:-1]
        return found.reshape(*rows, tensor.bytes // max(1, prod(rows)))


@final
class _Header:
    """Reads on from where it is."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0
        magic = data[:4]
        if magic != MAGIC:
            raise ValueError(f"wanted it to begin with {MAGIC!r}, got {magic!r}")
        self.at = 4
        version = self.scalar("<I")
        if version not in VERSIONS:
            raise ValueError(f"wanted version 2 or 3, little-endian, got {version}")
        self.tensor_count, pairs = self.scalar("<Q"), self.scalar("<Q")
        self.fields: dict[str, object] = {}
        for _ in range(pairs):
            key, kind = self.text(), self.scalar("<I")
            value = self.value(kind)
            if value is not None:
                self.fields[key] = value

    def scalar(self, form: str) -> Any:
        (found,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found

    def text(self) -> str:
        length = self.scalar("<Q")
        self.at += length
        if self.at > len(self.data):
            raise ValueError(f"a text ends at byte {self.at} of {len(self.data)}")
        return self.data[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind: int) -> object:
        """None: an array, which is passed over."""
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            found: object = self.scalar(SCALARS[kind])
            return found
        inner, count = self.scalar("<I"), self.scalar("<Q")
        if inner in SCALARS:
            self.at += count * struct.calcsize(SCALARS[inner])
        else:
            self._pass_over(inner, count)
        return None

    def _pass_over(self, kind: int, count: int) -> None:
        if kind != STRING:
            for _ in range(count):
                self.value(kind)
            return
        unpack, data, at = struct.Struct("<Q").unpack_from, self.data, self.at
        for _ in range(count):
            at += 8 + unpack(data, at)[0]
        self.at = at


def _tensors(header: _Header, size: int) -> tuple[GgufTensor, ...]:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    listed = []
    for _ in range(header.tensor_count):
        name, dimensions = header.text(), header.scalar("<I")
        shape = tuple(reversed([header.scalar("<Q") for _ in range(dimensions)]))
        listed.append((name, shape, header.scalar("<I"), header.scalar("<Q")))
    alignment = header.fields.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"wanted general.alignment as a positive number, got {alignment!r}")
    first = -(-header.at // alignment) * alignment
    found = []
    for name, shape, number, offset in listed:
        kind = GGMLQuantizationType(number)
        together, width = GGML_QUANT_SIZES[kind]
        tensor = GgufTensor(name, shape, kind.name, first + offset, prod(shape) // together * width)
        if tensor.start + tensor.bytes > size:
            raise ValueError(
                f"tensor {name!r}: wanted bytes {tensor.start} to {tensor.start + tensor.bytes}, "
                f"and the file has {size}"
            )
        found.append(tensor)
    return tuple(found)
