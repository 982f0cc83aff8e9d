"""Parts that each serve their own prompts with a network whose experts they share. Imports no
transformers: ranks run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.plugins.engines.cuda.models.paged import BLOCK, Paged, reference_ops
from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.layers.site import DispatcherName
from tokenwire.plugins.engines.cuda.load import load
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh

__all__ = ("GENERATED", "Sequences", "serve", "serve_alone")

GENERATED = 8
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
    mesh: Mesh, path: str, prompts: Sequence[Sequence[int]], dispatcher: DispatcherName = "auto"
) -> Sequences:
    """Every part takes each m-th prompt; one after the other where that is more than one, all its
    prompts together in their second half. Parts are ready at different steps, and then step on
    blank tokens until none has work."""
    loaded = load(
        Path(path),
        device="cpu",
        dtype=torch.float32,
        ops=reference_ops(),
        mesh=mesh,
        dispatcher=dispatcher,
        threads=1,
    )
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
            if left and (is_filling and not counts or not is_filling):
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
