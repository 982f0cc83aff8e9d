"""Parts that each serve their own prompts with a network whose experts they share. Imports no
transformers: ranks run it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from tests.plugins.engines.cuda.models.paged import BLOCK, Paged, reference_ops
from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.balance.table import ExpertTable
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.layers import moe
from tokenwire.plugins.engines.cuda.layers.dispatchers import first_placement
from tokenwire.plugins.engines.cuda.layers.site import DispatcherName
from tokenwire.plugins.engines.cuda.load import load
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh
from tokenwire.plugins.engines.cuda.policy.experts.placement import Layout, placement_of

__all__ = ("GENERATED", "Sequences", "serve", "serve_alone")

GENERATED = 5
Sequences = dict[int, tuple[list[int], torch.Tensor]]
"""Prompt -> the ids that follow, and the logits of its tokens and of all but the last of these."""


class Shared:
    """A network, and the span that the parts agreed on for its next step."""

    def __init__(self, model: CausalModel) -> None:
        self._model, self.span = model, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def forward(self, batch: Batch, caches: Any) -> torch.Tensor:
        return self._model.forward(replace(batch, span=self.span), caches)


def serve(
    mesh: Mesh,
    path: str,
    prompts: Sequence[Sequence[int]],
    dispatcher: DispatcherName = "auto",
    redundant: int = -1,
) -> Sequences:
    """Every part takes each m-th prompt, one after the other, those before it generating. Parts are
    ready at different steps, and then step on blank tokens until none has work. `redundant`: so
    many replicas, and experts in no order; -1: none, and each in its place."""
    with patch.object(moe, "first_placement", first_placement if redundant < 0 else shuffled):
        loaded = load(
            Path(path),
            device="cpu",
            dtype=torch.float32,
            ops=reference_ops(),
            mesh=mesh,
            dispatcher=dispatcher,
            redundant=max(redundant, 0),
            threads=1,
        )
    if redundant >= 0:
        put_tables(loaded.model, mesh)
    parts, part = mesh.layout.data, mesh.part
    mine = [at for at in range(len(prompts)) if at % parts == part]
    model = Shared(loaded.model)
    paged = Paged(model, [prompts[at] for at in mine])
    ids: dict[int, list[int]] = {at: [] for at in mine}
    logits: dict[int, list[torch.Tensor]] = {at: [] for at in mine}
    while True:
        counts: dict[int, int] = {}
        for at, which in enumerate(mine):
            left = len(paged.sequences[at]) - paged.computed[at]
            is_filling = not ids[which]
            if left and not (is_filling and counts):
                # A first chunk of half the prompt, so that a step mixes prompts and single tokens.
                half = len(prompts[which]) // 2
                counts[at] = half if is_filling and half and not paged.computed[at] else left
        tokens = sum(counts.values())
        every = mesh.data_host.all_gather_ints(np.array([tokens], np.int64))
        if not every.any():
            return {which: (ids[which], torch.cat(logits[which])) for which in mine}
        model.span = max(int(every.max()), 1) if parts > 1 else 0
        if not counts:
            loaded.model.forward(blank(loaded.model, model.span), paged.caches)
            continue
        for at, found in paged.step(counts).items():
            which = mine[at]
            logits[which].append(found)
            whole = paged.computed[at] == len(paged.sequences[at])
            if whole and len(ids[which]) < GENERATED + which % 3:
                ids[which].append(int(found[-1].argmax()))
                paged.sequences[at].append(ids[which][-1])


def shuffled(experts: int, slots: int) -> tuple[int, ...]:
    """As first_placement: each expert once, the rest replicas of a few."""
    order = list(range(experts))
    random.Random(experts).shuffle(order)
    return (*order, *(order[at % 2] for at in range(slots - experts)))


def put_tables(model: CausalModel, mesh: Mesh) -> None:
    mixture = model.config.mixture
    assert mixture is not None
    slots = mixture.experts + model.site.redundant
    layout = Layout(mixture.experts, slots, mesh.data.size)
    placement = placement_of(layout, np.array([shuffled(mixture.experts, slots)]))
    for block in model.blocks:
        if isinstance(block.mlp, moe.Moe):
            counted = torch.zeros(slots + 1, dtype=torch.int32)
            block.mlp.table = ExpertTable(
                placement, 0, mesh.data.index, counted, replicas="position"
            )


def serve_alone(path: str, prompts: Sequence[Sequence[int]]) -> Sequences:
    """By one rank."""
    return serve(SOLE, path, prompts)


def blank(model: CausalModel, span: int) -> Batch:
    """One token that is of no sequence."""
    zero = torch.zeros(1, dtype=torch.int64)
    attention = AttentionBatch(
        cu_q=torch.tensor([0, 1], dtype=torch.int32),
        kv_lens=torch.zeros(1, dtype=torch.int32),
        block_table=torch.zeros((1, 1), dtype=torch.int32),
        block_size=BLOCK,
        max_q=1,
        max_kv=0,
    )
    groups = len(model.config.groups)
    return Batch(
        ids=zero,
        positions=zero,
        slots=(zero - 1,) * groups,
        decode=(attention,) * groups,
        prefill=(None,) * groups,
        decode_tokens=1,
        logit_rows=zero[:0],
        span=span,
    )
