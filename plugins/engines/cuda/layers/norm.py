"""RMS norms: on their own, or after adding to the residual."""

from __future__ import annotations

from typing import final

from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.site import Site

__all__ = ("Norm",)


@final
class Norm:
    """x [..., H] -> the same, with the family's offset added to the weight."""

    __slots__ = ("eps", "offset", "ops", "weight")

    def __init__(self, site: Site, name: str) -> None:
        config = site.config
        self.ops, self.eps, self.offset = site.ops, config.rms_eps, config.norm_offset
        self.weight = site.weight(f"{name}.weight", config.hidden)

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = self.ops.rms_norm(x, self.weight, self.eps, self.offset)
        return y

    def join(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """x, residual [T, H] -> (norm of residual + x, residual + x); the memory of `residual` is
        used for the sum."""
        y, total = self.ops.add_rms_norm(x, residual, self.weight, self.eps, self.offset)
        return y, total
