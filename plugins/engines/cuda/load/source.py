"""Where weights come from: named tensors with shapes, read one at a time, from any thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

__all__ = ("Entry", "Source")


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor that a file has."""

    file: str
    shape: tuple[int, ...]
    kind: str
    """The dtype, as the file calls it."""
    bytes: int
    key: str
    """Its name in the file; networks know it by the name that it is listed under."""


class Source(ABC):
    """A checkpoint's weights, under the names that Hugging Face's checkpoints use."""

    @property
    @abstractmethod
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor, read from the files' headers alone."""

    @abstractmethod
    def read(self, name: str) -> Tensor:
        """On the CPU, of `entries[name].shape`; may be a view of the file. Safe in any thread.

        Raises ConfigError that names the file and the tensor.
        """
