"""The gated MLPs of a layer's experts, their weights stacked. Knows no token and no router."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.activation import gate_of_config, quantising_gate
from tokenwire.plugins.engines.cuda.layers.dispatch import Contiguous, Dispatched, Format, Masked
from tokenwire.plugins.engines.cuda.layers.matmul import GroupedProduct, settle_stack
from tokenwire.plugins.engines.cuda.layers.shares import CutBy, Part, share
from tokenwire.plugins.engines.cuda.layers.site import Site
from tokenwire.plugins.engines.cuda.models.config import Mixture

__all__ = ("Experts", "Stack")


@final
class Stack:
    """One linear layer of each expert that is here: [slots, outputs, inputs], filled one by one."""

    __slots__ = ("bias", "dtype", "ops", "product", "scales", "takes", "weight")

    def __init__(
        self,
        site: Site,
        name: str,
        parts: Sequence[Part],
        inputs: int,
        *,
        held: Sequence[int],
        experts: int,
        takes: Format,
        cut: CutBy = "",
        bias: bool = False,
    ) -> None:
        """`name`: the module that the experts are numbered in; `parts` by their names in one.
        `held`: which of all `experts` is in each slot. `cut`: each over the slices of a part."""
        count = len(held)
        self.ops, self.takes, self.dtype = site.ops, takes, site.dtype
        self.product: GroupedProduct = site.ops.grouped_matmul
        self.scales: Tensor | None = None
        every = [(f"{name}.{expert}.{part}", size) for expert in held for part, size in parts]
        found = share(site, every, inputs, cut)
        outputs, inputs = found.outputs // max(count, 1), found.inputs
        block = found.fp8_block(site)
        kind = site.dtype if block is None else torch.float8_e4m3fn
        self.weight = site.empty(count, outputs, inputs, dtype=kind)
        found.put(site, self.weight.flatten(0, 1), "weight")
        if block is not None:
            rows, columns = block
            shape = count, outputs // rows, inputs // columns
            scales = self.scales = site.empty(*shape, dtype=torch.float32)
            found.put(site, scales.flatten(0, 1), "weight_scale_inv", block)
        self.bias: Tensor | None = None
        if bias and cut == "inputs" and site.mesh.slice:
            # Why not here: it is to be added once, and the first slice does.
            site.elsewhere.update(f"{part}.bias" for part, _ in every)
        elif bias:
            held_bias = self.bias = site.empty(count, outputs)
            found.put(site, held_bias.flatten(), "bias")
        others = sorted(set(range(experts)) - set(held))
        suffixes = ("weight", *(["bias"] if bias else ()), *(["weight_scale_inv"] if block else ()))
        site.elsewhere.update(
            f"{name}.{expert}.{part}.{suffix}"
            for expert in others
            for part, _ in parts
            for suffix in suffixes
        )

    def slot_tensors(self, slot: int) -> list[Tensor]:
        """All of one expert's memory, which is what another's is too: it can be copied there."""
        every = (self.weight, self.scales, self.bias)
        return [tensor[slot] for tensor in every if tensor is not None]

    def settle(self) -> None:
        """As Linear's: once at most, when the weights are filled."""
        if self.scales is None and self.takes == "contiguous":
            self.product = settle_stack(self.weight, self.product)

    def contiguous(self, x: Tensor, offsets: Tensor, x_scales: Tensor | None = None) -> Tensor:
        """[R, inputs] -> [R, outputs]. `x_scales`: as of the op fp8_grouped_matmul, for weights
        of 8 bits alone."""
        if self.scales is None:
            y = self.product(x, self.weight, offsets)
        else:
            y = self.ops.fp8_grouped_matmul(
                x, self.weight, self.scales, offsets, x_scales, dtype=self.dtype
            )
        return y if self.bias is None else y.add_(self.bias[_slot_of_row(len(x), offsets)])

    def masked(self, x: Tensor, counts: Tensor, x_scales: Tensor | None = None) -> Tensor:
        """[E, C, inputs] -> [E, C, outputs]. `x_scales` as above."""
        y = x.new_empty(*x.shape[:2], self.weight.shape[1], dtype=self.dtype)
        if self.scales is None:
            self.ops.grouped_matmul_masked(x, self.weight, counts, y)
        else:
            self.ops.fp8_grouped_matmul_masked(x, self.weight, self.scales, counts, y, x_scales)
        return y if self.bias is None else y.add_(self.bias[:, None])


@final
class Experts:
    """down(act(gate x) * up x), each row by its own expert; takes one format of rows.

    Where experts are cut over the slices of a part, it gives this rank's summand."""

    def __init__(
        self, site: Site, name: str, mixture: Mixture, held: Sequence[int], takes: Format
    ) -> None:
        """`held`: which expert is in each of this rank's slots."""
        hidden, inner = site.config.hidden, mixture.intermediate
        gate_up = [("gate_proj", inner), ("up_proj", inner)]
        down = [("down_proj", hidden)]
        bias = mixture.expert_bias
        self.gate_up = Stack(
            site, name, gate_up, hidden, held=held, experts=mixture.experts, takes=takes,
            cut="outputs", bias=bias,
        )  # fmt: skip
        self.down = Stack(
            site, name, down, inner, held=held, experts=mixture.experts, takes=takes,
            cut="inputs", bias=bias,
        )  # fmt: skip
        self.takes = takes
        self.activate = gate_of_config(site.config, site.ops)
        self.quantise = (
            quantising_gate(site.config, site.ops) if self.down.scales is not None else None
        )

    def slot_tensors(self, slot: int) -> list[Tensor]:
        """As Stack's."""
        return [*self.gate_up.slot_tensors(slot), *self.down.slot_tensors(slot)]

    def settle(self) -> None:
        self.gate_up.settle()
        self.down.settle()

    def __call__(self, sent: Dispatched) -> Tensor:
        """Rows as they were sent, each through its expert."""
        match sent:
            case Contiguous(rows, offsets):
                inner, scales = self._gated(self.gate_up.contiguous(rows, offsets, sent.scales))
                return self.down.contiguous(inner, offsets, scales)
            case Masked(rows, counts):
                room = rows.shape[:2]
                both = self.gate_up.masked(rows, counts, sent.scales).flatten(0, 1)
                inner, scales = self._gated(both)
                if scales is not None:
                    scales = scales.unflatten(0, room)
                return self.down.masked(inner.unflatten(0, room), counts, scales)

    def _gated(self, both: Tensor) -> tuple[Tensor, Tensor | None]:
        """As the product down takes it; with scales, where that is in 8 bits."""
        return (self.activate(both), None) if self.quantise is None else self.quantise(both)


def _slot_of_row(rows: int, offsets: Tensor) -> Tensor:
    """[rows] int64; the last slot for rows that are nobody's."""
    place = torch.arange(rows, device=offsets.device, dtype=offsets.dtype)
    return torch.searchsorted(offsets[1:-1], place, right=True)
