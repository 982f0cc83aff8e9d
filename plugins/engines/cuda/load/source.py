"""Where weights come from: named tensors with shapes, read one at a time, from any thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.site import Cut

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

    def shape_of(self, cut: Cut | None) -> tuple[int, ...]:
        """Of the part that `cut` names; None: of all of it."""
        if cut is None:
            return self.shape
        return (*self.shape[: cut.dim], cut.length, *self.shape[cut.dim + 1 :])

    def bytes_of(self, cut: Cut | None) -> int:
        """Of the part that `cut` names."""
        return self.bytes if cut is None else self.bytes * cut.length // self.shape[cut.dim]


class Source(ABC):
    """A checkpoint's weights, under the names that Hugging Face's checkpoints use."""

    @property
    @abstractmethod
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor, read from the files' headers alone."""

    @abstractmethod
    def read(self, name: str, cut: Cut | None = None) -> Tensor:
        """On the CPU, of `entries[name].shape_of(cut)`; may be a view of the file. Safe in any
        thread.

        Raises ConfigError that names the file and the tensor.
        """
