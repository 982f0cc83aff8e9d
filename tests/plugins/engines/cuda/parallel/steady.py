"""What one rank says of a network's bits, alone and in company. Imports no transformers: ranks run
it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch

from tests.plugins.engines.cuda.models.paged import Paged
from tests.plugins.engines.cuda.parallel import shared_networks
from tokenwire.kernels.op import Signature
from tokenwire.kernels.ops import Ops
from tokenwire.plugins.engines.cuda.load import load
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh

__all__ = ("logits_cut_up", "serve_steady", "steady_ops", "sums")

LENGTH = 29


def steady_ops() -> Ops:
    torch.set_num_threads(1)
    return Ops.choose(Signature(head_dim=8), objective="determinism", environ={})


def serve_steady(
    mesh: Mesh, path: str, prompts: Sequence[Sequence[int]], redundant: int
) -> shared_networks.Sequences:
    """As `serve`, by kernels that no company changes."""
    with (
        patch.object(shared_networks, "reference_ops", steady_ops),
        patch.object(shared_networks, "load", partial(load, is_steady=True)),
    ):
        return shared_networks.serve(mesh, path, prompts, "auto", redundant)


def logits_cut_up(mesh: Mesh, path: str) -> list[torch.Tensor]:
    """A sequence's logits: in one step, then in pieces among others, a few times."""
    ops = steady_ops()
    model = load(
        Path(path), device="cpu", dtype=torch.float32, ops=ops, mesh=mesh, is_steady=True
    ).model
    model.settle()
    draw = random.Random(0)
    ids = [draw.randrange(3, 90) for _ in range(LENGTH)]
    found = [Paged(model, [ids]).step({0: LENGTH})[0]]
    for _ in range(3):
        others = [[draw.randrange(3, 90) for _ in range(LENGTH)] for _ in range(3)]
        driven = Paged(model, [ids, *others])
        pieces = []
        while driven.computed[0] < LENGTH:
            counts = {
                at: min(draw.choice((1, 2, 5, 9)), LENGTH - driven.computed[at])
                for at in range(4)
                if driven.computed[at] < LENGTH and (at == 0 or draw.random() < 0.6)
            }
            pieces.append(driven.step(counts)[0])
        found.append(torch.cat(pieces))
    return found


def sums(mesh: Mesh) -> bool:
    """Whether a row's sum over the ranks has the bits that it has alone, wherever it stands."""
    made = torch.Generator().manual_seed(mesh.rank)
    x = torch.randn(37, 19, generator=made)
    whole = mesh.tensor.sum_in_order(x)
    return all(
        torch.equal(mesh.tensor.sum_in_order(x[at:end]), whole[at:end])
        for at, end in ((0, 1), (5, 9), (36, 37), (1, 37))
    )
