"""The gated feed-forward layer."""

from __future__ import annotations

from typing import final

from torch import Tensor

from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.layers.activation import gate_of_config, quantising_gate
from tokenwire.plugins.engines.cuda.layers.linear import Linear
from tokenwire.plugins.engines.cuda.layers.site import Site

__all__ = ("Mlp",)


@final
class Mlp:
    """down(act(gate x) * up x), gate and up in one multiplication. [T, H] -> [T, H]."""

    def __init__(
        self, site: Site, name: str, *, inner: int | None = None, reduces: bool = True
    ) -> None:
        """`inner`: its intermediate size, which is cut over the slices of a part; None: the
        config's. `reduces`: as Linear's."""
        config = site.config
        inner, bias = inner or config.intermediate, config.mlp_bias
        parts = [(f"{name}.gate_proj", inner), (f"{name}.up_proj", inner)]
        self.gate_up = Linear(site, parts, config.hidden, bias=bias, cut="outputs")
        self.down = Linear(
            site,
            [(f"{name}.down_proj", config.hidden)],
            inner,
            bias=bias,
            cut="inputs",
            reduces=reduces,
        )
        self.activate = gate_of_config(config, site.ops)
        self.quantise = quantising_gate(config, site.ops) if self.down.scales is not None else None

    @property
    def linears(self) -> tuple[Linear, ...]:
        return self.gate_up, self.down

    def settle(self) -> None:
        for linear in self.linears:
            linear.settle()

    def __call__(self, x: Tensor, gate: Tensor | None, batch: Batch | None = None) -> Tensor:
        """`batch` is not read: it is what experts in this place are given."""
        both = self.gate_up(x, gate)
        if self.quantise is None or gate is not None:
            return self.down(self.activate(both), gate)
        return self.down.quantised(*self.quantise(both), both.dtype)
