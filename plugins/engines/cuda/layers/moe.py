"""A mixture of experts in an MLP's place: a router, a dispatcher, experts.

The dispatcher is the one part that knows on which devices experts are.
"""

from __future__ import annotations

from typing import final

from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.dispatch import Dispatcher, LocalDispatcher
from tokenwire.plugins.engines.cuda.layers.experts import Experts
from tokenwire.plugins.engines.cuda.layers.linear import Linear
from tokenwire.plugins.engines.cuda.layers.site import Site
from tokenwire.plugins.engines.cuda.models.config import Mixture

__all__ = ("Moe",)


@final
class Moe:
    """[T, H] -> [T, H]: the sum of a token's experts by their weights."""

    def __init__(
        self, site: Site, name: str, mixture: Mixture, dispatcher: Dispatcher | None = None
    ) -> None:
        """`dispatcher` None: all experts are on this device."""
        self.mixture, self.ops = mixture, site.ops
        self.router = Linear(
            site, [(f"{name}.gate", mixture.experts)], site.config.hidden, bias=False
        )
        self.dispatcher = dispatcher or LocalDispatcher(site.ops, mixture.experts)
        self.experts = Experts(site, f"{name}.experts", mixture, self.dispatcher.yields)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Those that an adapter may add to."""
        return (self.router,)

    def settle(self) -> None:
        self.router.settle()
        self.experts.settle()

    def __call__(self, x: Tensor, gate: Tensor | None) -> Tensor:
        mixture = self.mixture
        logits = self.router(x, gate)
        weights, experts = self.ops.moe_route(logits, mixture.top_k, "softmax", mixture.renormalise)
        sent = self.dispatcher.dispatch(x, experts)
        return self.dispatcher.combine(self.experts(sent), sent, weights)
