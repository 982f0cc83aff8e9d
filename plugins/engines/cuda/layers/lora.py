"""Low-rank additions to one linear layer, several adapters at once. Knows no files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.matmul import Product

__all__ = ("Lora", "gate_of")


def gate_of(adapters: Tensor, slots: int) -> Tensor:
    """[T] int32 -> [T, slots] bool, true but where a token has slot index + 1 (0: no adapter)."""
    wanted = torch.arange(1, slots + 1, device=adapters.device, dtype=adapters.dtype)
    return adapters[:, None] != wanted


@final
class Lora:
    """y += scale (x Aᵀ) Bᵀ (arXiv:2106.09685), A and B each token's own.

    All adapters' A are one matrix: x is multiplied with all of them, and the gate keeps each
    token's own. That wastes little (ranks are small), needs no sorting, and no shape depends on
    who uses which adapter.
    """

    __slots__ = ("down", "outputs", "product", "rank", "slots", "ups")

    def __init__(
        self,
        inputs: int,
        outputs: Sequence[int],
        slots: int,
        rank: int,
        like: Tensor,
        *,
        product: Product,
    ) -> None:
        """`outputs`: of each stacked part. `like`: for dtype and device."""
        self.product = product
        self.slots, self.rank, self.outputs = slots, rank, tuple(outputs)
        self.down = like.new_zeros(len(outputs), slots, rank, inputs)
        self.ups = tuple(like.new_zeros(size, slots, rank) for size in outputs)

    def put(self, slot: int, part: int, a: Tensor, b: Tensor) -> None:
        """a [r, inputs], b [outputs, r] with the scale in it; r up to `rank`."""
        rank = a.shape[0]
        self.down[part, slot - 1, :rank].copy_(a)
        self.ups[part][:, slot - 1, :rank].copy_(b)

    def clear(self, slot: int) -> None:
        """Tokens of this slot get nothing added from here on."""
        self.down[:, slot - 1].zero_()
        for up in self.ups:
            up[:, slot - 1].zero_()

    def add(self, x: Tensor, y: Tensor, gate: Tensor) -> None:
        """x [T, inputs] and gate [T, slots] into y [T, outputs], in place.

        Why filled, and not multiplied: where another's adapter overflows, zero times infinity is
        NaN for those who have none."""
        tokens, parts = x.shape[0], len(self.ups)
        low = self.product(x, self.down.flatten(0, 2), None)
        low = low.view(tokens, parts, self.slots, self.rank)
        low.masked_fill_(gate[:, None, :, None], 0.0)
        start = 0
        for part, up in enumerate(self.ups):
            end = start + self.outputs[part]
            y[:, start:end] += self.product(low[:, part].flatten(1), up.flatten(1), None)
            start = end
