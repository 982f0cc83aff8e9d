"""How one model lies over a group of GPUs: `TP_8`, `DEP_64`, `TP_2 x DEP_4`. No machine, no model.

`TP_n`: every matrix is cut n ways, and all n GPUs work on one batch. `DEP_m`: each of m GPUs has
the attention whole and a batch of its own, and 1/m of the experts. `TP_n x DEP_m`: m parts of n
GPUs; attention and experts of a part are cut n ways, and the experts are divided over the parts.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from tokenwire.core.errors import ConfigError

__all__ = ("ONE", "Layout")

NAME: Final = re.compile(r"(?:TP_?(?P<tensor>\d+))?(?P<x>\s*x\s*)?(?:DEP_?(?P<data>\d+))?", re.I)


class Layout(Struct, frozen=True, order=True):
    """`tensor` GPUs that share each batch, times `data` parts with batches of their own."""

    tensor: int = 1
    data: int = 1

    def __post_init__(self) -> None:
        if self.tensor < 1 or self.data < 1:
            raise ConfigError(f"layout '{self.name}': wanted whole numbers from 1")

    @property
    def gpus(self) -> int:
        return self.tensor * self.data

    @property
    def is_mixed(self) -> bool:
        return self.tensor > 1 and self.data > 1

    @property
    def name(self) -> str:
        """As `parallel_strategy` writes it."""
        if self.data == 1:
            return f"TP_{self.tensor}"
        return f"DEP_{self.data}" if self.tensor == 1 else f"TP_{self.tensor} x DEP_{self.data}"

    @classmethod
    def named(cls, text: str) -> Layout:
        """`name`, read; "DEP8" is "DEP_8". Raises ConfigError."""
        found = NAME.fullmatch(text.strip())
        tensor, data = (found["tensor"], found["data"]) if found else (None, None)
        joined = bool(found and found["x"])
        if found is None or joined != (tensor is not None and data is not None):
            raise ConfigError(f"layout '{text}': wanted TP_n, DEP_m or TP_n x DEP_m")
        if tensor is None and data is None:
            raise ConfigError(f"layout '{text}': wanted TP_n, DEP_m or TP_n x DEP_m")
        return cls(int(tensor or 1), int(data or 1))


ONE: Final = Layout()
"""One GPU."""
