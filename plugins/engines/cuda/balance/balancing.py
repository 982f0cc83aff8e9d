"""The balance of one rank's model: its layers' tables, its counts, its weights as slots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from tokenwire.plugins.engines.cuda.balance.mover import Mover
from tokenwire.plugins.engines.cuda.balance.rebalancer import EVERY, TOLD, Rebalancer
from tokenwire.plugins.engines.cuda.balance.table import Counter, ExpertTable
from tokenwire.plugins.engines.cuda.layers.dispatchers import first_placement
from tokenwire.plugins.engines.cuda.layers.moe import Moe
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh, beside
from tokenwire.plugins.engines.cuda.policy.experts.placement import Layout, placement_of
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("balance_of", "expert_layout")


def balance_of(
    model: CausalModel,
    mesh: Mesh,
    settings: CudaSettings,
    *,
    every: int = EVERY,
    told: int = TOLD,
) -> Rebalancer | None:
    """Gives the model's mixtures their tables; None: experts are on one rank, or there are none.
    All ranks call it, before any CUDA graph is captured. `every`, `told`: as of Rebalancer."""
    mixtures = [block.mlp for block in model.blocks if isinstance(block.mlp, Moe)]
    if mesh.data.size == 1 or not mixtures:
        return None
    layout = expert_layout(mixtures[0], mesh, settings)
    first = first_placement(layout.experts, layout.slots)
    placement = placement_of(layout, np.tile(first, (len(mixtures), 1)))
    counter = Counter(len(mixtures), layout.slots, told, model.device)
    # Why: a request's bits may not depend on which replica the others' rows left free.
    replicas = "position" if settings.objective == "determinism" else settings.replicas
    for layer, (mixture, counted) in enumerate(zip(mixtures, counter.now, strict=True)):
        mixture.table = ExpertTable(placement, layer, mesh.data.index, counted, replicas=replicas)
    moves, sums = beside(mesh, is_cuda=model.device.type == "cuda")

    def tensors(layer: int, slot: int) -> Sequence[Tensor]:
        return mixtures[layer].experts.slot_tensors(slot)

    return Rebalancer(
        placement,
        [mixture.table for mixture in mixtures if mixture.table is not None],
        counter,
        Mover(moves, layout.slots_per_rank, tensors),
        everyone=mesh.world_host,
        sums=sums,
        settings=settings.rebalance,
        every=every,
        told=told,
    )


def expert_layout(mixture: Moe, mesh: Mesh, settings: CudaSettings) -> Layout:
    """Groups of a router do not count: they keep prompts' rows within nodes, and steps here are
    of both kinds; so experts are placed over all ranks alike."""
    parts = mesh.data.size
    near = max((settings.domain or parts * mesh.tensor.size) // mesh.tensor.size, 1)
    nodes = parts // near if parts % near == 0 else 1
    return Layout(mixture.mixture.experts, len(mixture.held) * parts, parts, nodes)
