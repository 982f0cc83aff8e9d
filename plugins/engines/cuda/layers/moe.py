"""A mixture of experts in an MLP's place: a router, a dispatcher, experts.

The dispatcher is the one part that knows on which devices experts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.layers.dispatch import Dispatcher
from tokenwire.plugins.engines.cuda.layers.dispatchers import (
    dispatcher_for,
    first_placement,
    slots_of,
)
from tokenwire.plugins.engines.cuda.layers.experts import Experts
from tokenwire.plugins.engines.cuda.layers.linear import Linear
from tokenwire.plugins.engines.cuda.layers.mlp import Mlp
from tokenwire.plugins.engines.cuda.layers.site import Site
from tokenwire.plugins.engines.cuda.models.config import Mixture

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.balance.table import ExpertTable

__all__ = ("Moe",)

NOWHERE = -1
"""The expert of a token that only fills a step up."""


@final
class Moe:
    """[T, H] -> [T, H]: the sum of a token's experts by their weights."""

    def __init__(
        self,
        site: Site,
        name: str,
        mixture: Mixture,
        dispatcher: Dispatcher | None = None,
        placed: Sequence[int] = (),
    ) -> None:
        """`dispatcher` None: as the site needs it. `placed`: the expert of each physical one, over
        all parts; none given: `first_placement`."""
        self.mixture, self.ops = mixture, site.ops
        self.sum = site.sum_over(site.mesh.tensor)
        self.router = Linear(
            site,
            [(f"{name}.gate", mixture.experts)],
            site.config.hidden,
            bias=mixture.router_bias,
        )
        self.bias: Tensor | None = None
        if mixture.bias:
            self.bias = site.empty(mixture.experts, dtype=torch.float32)
            site.places[f"{name}.gate.e_score_correction_bias"] = self.bias
        self.dispatcher = dispatcher or dispatcher_for(site, mixture, name)
        slots, part = slots_of(site, mixture), site.mesh.data.index
        placed = placed or first_placement(mixture.experts, slots * site.mesh.data.size)
        self.held = tuple(placed[part * slots : (part + 1) * slots])
        """The expert of each of this rank's slots, as they are filled from the checkpoint."""
        self.table: ExpertTable | None = None
        """Which physical expert a token takes; None: that of the same number."""
        self.experts = Experts(site, f"{name}.experts", mixture, self.held, self.dispatcher.yields)
        self.shared: Mlp | None = None
        if mixture.shared:
            self.shared = Mlp(site, f"{name}.shared_experts", inner=mixture.shared, reduces=False)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Those that an adapter may add to."""
        return (self.router, *(self.shared.linears if self.shared is not None else ()))

    def settle(self) -> None:
        self.router.settle()
        self.experts.settle()
        if self.shared is not None:
            self.shared.settle()

    def __call__(self, x: Tensor, gate: Tensor | None, batch: Batch | None = None) -> Tensor:
        """`batch`: the step that x is of; None: every row is a token, and all are here."""
        weights, experts = self.route(self.router(x, gate))
        span = 0 if batch is None else batch.span
        if batch is not None and span:
            experts = experts.masked_fill((batch.slots[0] < 0)[:, None], NOWHERE)
        physical = experts
        if self.table is not None:
            positions = torch.arange(len(x), device=x.device) if batch is None else batch.positions
            physical = self.table.physical(experts, positions)
        sent = self.dispatcher.dispatch(x, physical, weights, span)
        y = self.dispatcher.combine(self.experts(sent), sent, weights, experts)
        if self.dispatcher.is_summed:
            return y if self.shared is None else y + self.sum(self.shared(x, gate))
        if self.shared is not None:
            y = y + self.shared(x, gate)
        return self.sum(y)

    def route(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """[T, E] -> weights [T, k] float32 and experts [T, k] int32."""
        mixture = self.mixture
        found: tuple[Tensor, Tensor] = self.ops.moe_route(
            logits,
            mixture.top_k,
            mixture.scoring,
            mixture.renormalise,
            bias=self.bias,
            groups=mixture.groups,
            groups_kept=mixture.groups_kept,
            group_top=mixture.group_top,
            scale=mixture.scale,
        )
        return found
