"""When memory runs out while the engine is built: what was wanted, what there is, which key to
lower. Knows no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.memory import device_memory
from tokenwire.plugins.engines.cuda.sizes import GIB

__all__ = ("is_shortage", "reserving")

CPU_WORDS = ("DefaultCPUAllocator", "not enough memory", "Storage size calculation overflowed")
"""torch has no class for a host's memory that ran out."""


def is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in CPU_WORDS)


@contextmanager
def reserving(
    device: torch.device | str, what: str, wanted: Callable[[], int], remedy: str
) -> Iterator[None]:
    """Raises ConfigError where memory runs out inside. `what`: as a sentence begins; `wanted`: its
    bytes, asked only then; `remedy`: what to do, keys first."""
    place = torch.device(device)
    before = device_memory(place)
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_shortage(error):
            raise
        free = ""
        if before is not None:
            total, used = before
            free = f", {(total - used) / GIB:.2f} of {total / GIB:.2f} GiB were free on {place}"
        raise ConfigError(
            f"engine cuda: {what} wants {wanted() / GIB:.2f} GiB{free}: {remedy}"
        ) from error
