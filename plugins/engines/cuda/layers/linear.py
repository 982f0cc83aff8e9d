"""y = x Wᵀ + b, with several of a checkpoint's weights stacked into one, and LoRA on top.

Cut by its outputs, a rank has some of them, and nothing is said between ranks; cut by its inputs,
each has a summand of all outputs, and the summands are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.lora import Lora
from tokenwire.plugins.engines.cuda.layers.matmul import Product, settle
from tokenwire.plugins.engines.cuda.layers.shares import CutBy, Part, share
from tokenwire.plugins.engines.cuda.layers.site import Site
from tokenwire.plugins.engines.cuda.parallel.group import ALONE

__all__ = ("Linear",)

ORDERED = ("weight", "bias")
"""What has a row for each output."""


@final
class Linear:
    """Called with x [T, inputs] and the step's adapter gate; gives [T, sum of the parts]: of those
    inputs and outputs that are this rank's."""

    __slots__ = (
        "bias",
        "lora",
        "matmul",
        "order",
        "plain",
        "product",
        "scales",
        "share",
        "sum",
        "weight",
    )

    def __init__(
        self,
        site: Site,
        parts: Sequence[Part],
        inputs: int,
        *,
        bias: bool,
        cut: CutBy = "",
        shared: Sequence[int] = (),
        reduces: bool = True,
        order: Tensor | None = None,
    ) -> None:
        """`parts` and `inputs` are the checkpoint's sizes; `cut` and `shared` are as `share` takes
        them. `reduces` False: the caller adds up the ranks' summands. `order` [outputs] int64, of
        a layer of one part: which of the outputs that are here comes where; blocks of fp8 weights
        are to hold the same outputs as before.

        Raises ConfigError for a size that cannot be cut."""
        self.order = order
        self.share = share(site, parts, inputs, cut, shared)
        self.sum = site.sum_over(site.mesh.tensor if cut == "inputs" and reduces else ALONE)
        self.lora: Lora | None = None
        self.bias: Tensor | None = None
        self.scales: Tensor | None = None
        self.matmul = site.ops.fp8_matmul
        self.plain: Product = site.ops.matmul
        self.product = self.plain
        outputs, inputs = self.share.outputs, self.share.inputs
        block = self.share.fp8_block(site)
        kind = site.dtype if block is None else torch.float8_e4m3fn
        self.weight = site.empty(outputs, inputs, dtype=kind)
        self.share.put(site, self.weight, "weight")
        if block is not None:
            shape = outputs // block[0], inputs // block[1]
            self.scales = site.empty(*shape, dtype=torch.float32)
            self.share.put(site, self.scales, "weight_scale_inv", block)
        if bias and cut == "inputs" and site.mesh.slice:
            # Why not here: it is to be added once, and the first slice does.
            site.elsewhere.update(f"{name}.bias" for name, _ in parts)
        elif bias:
            self.bias = site.empty(outputs)
            self.share.put(site, self.bias, "bias")
        if order is not None:
            site.orders.update((f"{name}.{each}", order) for name, _ in parts for each in ORDERED)

    @property
    def parts(self) -> tuple[Part, ...]:
        """With the outputs that are here."""
        return self.share.parts

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each part's outputs begin."""
        return self.share.starts

    def settle(self) -> None:
        """To be called once the weight is filled, and once at most: it may be laid out anew."""
        if self.scales is None:
            self.product = settle(self.weight, self.product)

    def reserve(self, slots: int, rank: int, like: Tensor) -> None:
        """Memory for adapters; `like`: for dtype and device."""
        sizes = [size for _, size in self.parts]
        self.lora = Lora(self.share.inputs, sizes, slots, rank, like, product=self.plain)

    def put_adapter(self, slot: int, part: int, a: Tensor, b: Tensor) -> None:
        """a [r, inputs] and b [outputs, r] of a part's whole module; memory was reserved."""
        cut = self.share.cuts[part]
        if cut is not None and cut.dim == 0:
            b = b.narrow(0, cut.start, cut.length)
        elif cut is not None:
            a = a.narrow(1, cut.start, cut.length)
        if self.order is not None:
            b = b[self.order]
        assert self.lora is not None
        self.lora.put(slot, part, a, b)

    def __call__(self, x: Tensor, gate: Tensor | None) -> Tensor:
        if self.scales is None:
            y = self.product(x, self.weight, self.bias)
        else:
            y = self.matmul(x, self.weight, self.scales)
            if self.bias is not None:
                y += self.bias
        if gate is not None and self.lora is not None:
            self.lora.add(x, y, gate)
        return self.sum(y)

    def quantised(self, x: Tensor, x_scales: Tensor, dtype: torch.dtype) -> Tensor:
        """Of x [T, inputs] in float8_e4m3fn with `x_scales`, as the op fp8_quant gives them, where
        the weight is in 8 bits; in `dtype`, without adapters."""
        y = self.matmul(x, self.weight, self.scales, x_scales, dtype=dtype)
        if self.bias is not None:
            y += self.bias
        return self.sum(y)
