"""Which dispatcher a mixture's layers get on a mesh, and which expert a slot has at first.

Knows no kernel and no weight.
"""

from __future__ import annotations

from typing import final

from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.dispatch import (
    Contiguous,
    Dispatched,
    Dispatcher,
    Format,
    LocalDispatcher,
)
from tokenwire.plugins.engines.cuda.layers.shares import OPS_BLOCK
from tokenwire.plugins.engines.cuda.layers.site import Site
from tokenwire.plugins.engines.cuda.models.config import Mixture
from tokenwire.plugins.engines.cuda.parallel.deep_ep import deep_ep_dispatcher
from tokenwire.plugins.engines.cuda.parallel.exchanged import ExchangedDispatcher
from tokenwire.plugins.engines.cuda.parallel.gathered import GatheredDispatcher
from tokenwire.plugins.engines.cuda.parallel.group import ALONE
from tokenwire.plugins.engines.cuda.parallel.sliced import SlicedDispatcher

__all__ = ("BySpan", "dispatcher_for", "first_placement", "slots_of")


@final
class BySpan:
    """One dispatcher for steps that are captured, another for what is larger: all ranks agree on
    the span, so all take the same."""

    def __init__(self, small: Dispatcher, large: Dispatcher, limit: int) -> None:
        """Both yield contiguous rows, and sum alike. `limit`: the largest span of `small`."""
        self._small, self._large, self._limit = small, large, limit

    @property
    def is_summed(self) -> bool:
        return self._small.is_summed

    @property
    def yields(self) -> Format:
        return "contiguous"

    def dispatch(self, x: Tensor, experts: Tensor, weights: Tensor, span: int = 0) -> Dispatched:
        one = self._small if span <= self._limit else self._large
        sent = one.dispatch(x, experts, weights, span)
        assert isinstance(sent, Contiguous)
        return Contiguous(sent.rows, sent.offsets, sent.inverse, (one, sent), sent.scales)

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor, experts: Tensor) -> Tensor:
        assert isinstance(sent.home, tuple)
        one, its = sent.home
        y: Tensor = one.combine(rows, its, weights, experts)
        return y


def slots_of(site: Site, mixture: Mixture) -> int:
    """Physical experts of each rank. Raises ConfigError where they do not divide."""
    ranks, every = site.mesh.data.size, mixture.experts + site.redundant
    if every % ranks:
        raise ConfigError(
            f"{site.config.family}: {mixture.experts} experts and {site.redundant} redundant ones "
            f"do not divide over the {ranks} parts of {site.mesh.layout.name}: choose a "
            f"parallel_strategy DEP_m, or redundant_experts, so that they do "
            f"({-every % ranks} more would)"
        )
    return every // ranks


def first_placement(experts: int, slots: int) -> tuple[int, ...]:
    """The expert of each of `slots` physical ones: each in order, then the first ones again."""
    return tuple(slot % experts for slot in range(slots))


def dispatcher_for(site: Site, mixture: Mixture, name: str = "") -> Dispatcher:
    """Of the mixture in the module `name`. As the site says; "auto" is the better of ours. Raises
    ConfigError with what stands against the one that was named."""
    group, slots = site.mesh.data, slots_of(site, mixture)
    gathered, exchanged = _ours(site, slots, is_fp8=ships_fp8(site, mixture, name))
    match site.dispatcher:
        case "gathered":
            return gathered
        case "exchanged" if site.captured:
            raise ConfigError(
                "dispatcher: exchanged waits for counts in every layer, which a CUDA graph cannot: "
                "choose auto or gathered, or set graphs to false"
            )
        case "exchanged":
            return exchanged
        case "deep_ep":
            return deep_ep_dispatcher(site, slots)
        case "auto" if group.size == 1:
            return LocalDispatcher(site.ops, slots)
        case "auto" if site.is_steady:
            # Why not by span: a token's bits may not depend on how many others there are.
            return gathered if site.captured else exchanged
        case "auto" if mixture.top_k >= group.size:
            return gathered
        case "auto" if site.captured:
            return BySpan(gathered, exchanged, site.captured)
        case "auto":
            return exchanged


def _ours(site: Site, slots: int, *, is_fp8: bool) -> tuple[Dispatcher, Dispatcher]:
    """Gathered and exchanged."""
    ops, data, tensor = site.ops, site.mesh.data, site.mesh.tensor
    is_sliced = tensor.size > 1 and data.size > 1
    slices = tensor if is_sliced else ALONE
    gathered = GatheredDispatcher(ops, data, slots, is_fp8=is_fp8, slices=slices)
    exchanged = ExchangedDispatcher(ops, data, slots, is_fp8=is_fp8, slices=slices)
    if not is_sliced:
        return gathered, exchanged
    return SlicedDispatcher(gathered, slices), SlicedDispatcher(exchanged, slices)


def ships_fp8(site: Site, mixture: Mixture, name: str = "") -> bool:
    """Rows travel as the products of the experts of `name` take them: in fp8 where the weights stay
    so."""
    found = site.config.quantisation
    if found is None or not site.keeps_fp8 or found.block != OPS_BLOCK:
        return False
    experts = f"{name}.experts."
    if any(experts.startswith(f"{each}.") or each.startswith(experts) for each in found.skipped):
        return False
    sizes = site.config.hidden, mixture.intermediate
    return site.dtype.itemsize == 2 and not any(size % OPS_BLOCK[0] for size in sizes)
