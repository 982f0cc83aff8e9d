"""y = x Wᵀ + b, with several of a checkpoint's weights stacked into one, and LoRA on top."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.lora import Lora
from tokenwire.plugins.engines.cuda.layers.matmul import choose_product, settle
from tokenwire.plugins.engines.cuda.layers.site import Site

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.models.config import Quantisation

__all__ = ("Linear", "Part", "fp8_block")

OPS_BLOCK = (128, 128)
"""That of the op fp8_matmul."""
Part = tuple[str, int]
"""A module's name in the checkpoint, and how many outputs it has."""


@final
class Linear:
    """Called with x [T, inputs] and the step's adapter gate; gives [T, sum of the parts]."""

    __slots__ = ("bias", "inputs", "lora", "matmul", "parts", "product", "scales", "weight")

    def __init__(self, site: Site, parts: Sequence[Part], inputs: int, *, bias: bool) -> None:
        self.parts = tuple(parts)
        self.inputs = inputs
        self.lora: Lora | None = None
        self.bias: Tensor | None = None
        self.scales: Tensor | None = None
        self.matmul = site.ops.fp8_matmul
        self.product = choose_product(site.device, site.dtype)
        outputs = sum(size for _, size in parts)
        block = fp8_block(site, self.parts, inputs)
        kind = site.dtype if block is None else torch.float8_e4m3fn
        self.weight = site.empty(outputs, inputs, dtype=kind)
        self._place(site, self.weight, "weight", 1)
        if block is not None:
            rows, columns = block
            shape = outputs // rows, -(-inputs // columns)
            self.scales = site.empty(*shape, dtype=torch.float32)
            self._place(site, self.scales, "weight_scale_inv", rows)
        if bias:
            self.bias = site.empty(outputs)
            self._place(site, self.bias, "bias", 1)

    def settle(self) -> None:
        """To be called once the weight is filled, and once at most: it may be laid out anew."""
        if self.scales is None:
            self.product = settle(self.weight, self.product)

    def _place(self, site: Site, whole: Tensor, suffix: str, rows: int) -> None:
        """Each part's slice of `whole`, one of whose rows stands for `rows` outputs."""
        for (name, size), start in zip(self.parts, self.starts, strict=True):
            place = whole[start // rows : (start + size) // rows]
            site.places[f"{name}.{suffix}"] = place

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each part's outputs begin."""
        return tuple(accumulate((size for _, size in self.parts[:-1]), initial=0))

    def __call__(self, x: Tensor, gate: Tensor | None) -> Tensor:
        if self.scales is None:
            y = self.product(x, self.weight, self.bias)
        else:
            y = self.matmul(x, self.weight, self.scales)
            if self.bias is not None:
                y += self.bias
        if gate is not None and self.lora is not None:
            self.lora.add(x, y, gate)
        return y


def fp8_block(site: Site, parts: Sequence[Part], inputs: int) -> tuple[int, int] | None:
    """The fp8 block, where a weight stays quantised in memory: it does not where a block would
    reach over the edge between two parts, or is not what the op takes."""
    found: Quantisation | None = site.config.quantisation
    if found is None or not site.keeps_fp8 or found.block != OPS_BLOCK:
        return None
    if any(_is_skipped(name, found.skipped) for name, _ in parts):
        return None
    fits = all(size % found.block[0] == 0 for _, size in parts)
    return found.block if fits and inputs % found.block[1] == 0 else None


def _is_skipped(name: str, skipped: Sequence[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in skipped)
