"""A GGUF file's header: its fields, and where its tensors lie. Knows no model and no tensor's type.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
(The package gguf reads the same; with a vocabulary in the file it takes it seconds.)
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from msgspec import Struct

from tokenwire.core.errors import ConfigError

__all__ = ("GgufHeader", "TensorEntry", "open_gguf")

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"}
SCALARS |= {12: "d"}
STRING, ARRAY = 8, 9


class TensorEntry(Struct, frozen=True):
    name: str
    shape: tuple[int, ...]
    """The slowest dimension first, as torch has it."""
    type: int
    """The format's number of its type."""
    offset: int
    """Bytes from the end of the header, `GgufHeader.end`."""


class GgufHeader(Struct, frozen=True):
    fields: Mapping[str, object]
    tensors: tuple[TensorEntry, ...]
    end: int
    """Where the tensors' bytes begin."""


def open_gguf(path: Path, *, arrays: bool = False) -> tuple[mmap.mmap, GgufHeader]:
    """The file, mapped into memory and never written, and its header. `arrays`: fields that are
    arrays (a vocabulary) are read too, as lists; else they are passed over.

    Raises ConfigError for a file that is not whole or no GGUF.
    """
    try:
        with path.open("rb") as opened:
            data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        return data, _Reader(data, arrays).header()
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise ConfigError(
            f"{path}: wanted a whole GGUF file, and it cannot be read ({error}): "
            "it may be cut short; copy or download it again"
        ) from error


@final
class _Reader:
    """Reads on from where it is."""

    def __init__(self, data: mmap.mmap, arrays: bool) -> None:
        self.data = data
        self.arrays = arrays
        self.at = len(MAGIC)
        if data[: self.at] != MAGIC:
            raise ValueError(f"wanted it to begin with {MAGIC!r}, got {data[: self.at]!r}")

    def header(self) -> GgufHeader:
        version = self.scalar("I")
        if version not in VERSIONS:
            raise ValueError(f"wanted version 2 or 3, little-endian, got {version}")
        count, pairs = self.scalar("Q"), self.scalar("Q")
        fields: dict[str, object] = {}
        for _ in range(pairs):
            key, kind = self.text(), self.scalar("I")
            value = self.value(kind)
            if value is not None:
                fields[key] = value
        tensors = tuple(self.tensor() for _ in range(count))
        alignment = fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"wanted general.alignment as a positive number, got {alignment!r}")
        return GgufHeader(fields, tensors, -(-self.at // alignment) * alignment)

    def tensor(self) -> TensorEntry:
        name, dimensions = self.text(), self.scalar("I")
        shape = tuple(reversed([self.scalar("Q") for _ in range(dimensions)]))
        return TensorEntry(name, shape, self.scalar("I"), self.scalar("Q"))

    def scalar(self, form: str) -> Any:
        (found,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def text(self) -> str:
        length = self.scalar("Q")
        self.at += length
        if self.at > len(self.data):
            raise ValueError(f"a text ends at byte {self.at} of {len(self.data)}")
        return self.data[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind: int) -> object:
        """None: an array that is passed over."""
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            found: object = self.scalar(SCALARS[kind])
            return found
        inner, count = self.scalar("I"), self.scalar("Q")
        if self.arrays:
            return self.listed(inner, count)
        self.pass_over(inner, count)
        return None

    def listed(self, kind: int, count: int) -> list[object]:
        if kind not in SCALARS:
            return [self.value(kind) for _ in range(count)]
        form = f"<{count}{SCALARS[kind]}"
        found = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return list(found)

    def pass_over(self, kind: int, count: int) -> None:
        if kind in SCALARS:
            self.at += count * struct.calcsize("<" + SCALARS[kind])
        elif kind != STRING:
            for _ in range(count):
                self.value(kind)
        else:
            unpack, data, at = struct.Struct("<Q").unpack_from, self.data, self.at
            for _ in range(count):
                at += 8 + unpack(data, at)[0]
            self.at = at
