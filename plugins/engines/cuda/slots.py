"""The settings' LoRA adapters into the network's slots, 1 on, in their order. Knows no request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.load import Adapter, put_adapter, read_adapter

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.models.causal import CausalModel

__all__ = ("fill_slots",)


def fill_slots(model: CausalModel, adapters: Mapping[str, str]) -> int:
    """`adapters`: name -> folder. Returns the bytes that they take. To be called before any CUDA
    graph is captured. Raises ConfigError for one that cannot be read, does not fit, or is broken.
    """
    if not adapters:
        return 0
    found = [_sound(name, read_adapter(Path(folder))) for name, folder in adapters.items()]
    model.reserve_adapters(len(found), max(adapter.rank for adapter in found))
    for slot, adapter in enumerate(found, start=1):
        put_adapter(model, slot, adapter)
    loras = [linear.lora for linear, part in model.linears().values() if part == 0]
    return sum(
        lora.down.nbytes + sum(up.nbytes for up in lora.ups) for lora in loras if lora is not None
    )


def _sound(name: str, adapter: Adapter) -> Adapter:
    """Why here: all slots are multiplied together, and zero times NaN is NaN for every request."""
    for module, pair in adapter.modules.items():
        if not all(bool(torch.isfinite(each).all()) for each in pair):
            raise ConfigError(
                f"engine cuda: adapter {name!r} ({adapter.folder}): module {module!r} holds NaN or "
                "infinity: the file is broken, or its training failed"
            )
    return adapter
