"""What one rank says of a network that is cut over ranks. Imports no transformers: ranks run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from tests.plugins.engines.cuda.models.paged import Paged, reference_ops
from tokenwire.kernels.op import Signature
from tokenwire.kernels.ops import Ops
from tokenwire.plugins.engines.cuda.load import load, put_adapter, read_adapter
from tokenwire.plugins.engines.cuda.load.safetensors_source import SafetensorsSource
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh

__all__ = ("GENERATED", "PROMPTS", "Told", "ask", "settled_logits")

PROMPTS = ([5, 17, 42, 42, 7, 11, 12, 13, 60, 42, 42], [9, 8], [3, 4, 5, 6, 7, 8, 90])
GENERATED = 6


@dataclass(frozen=True)
class Told:
    logits: torch.Tensor
    """[tokens of all prompts, V]."""
    hidden: torch.Tensor
    """[rows of all steps, H], from which logits come."""
    ids: list[list[int]]
    """Greedy, of each prompt."""
    sizes: dict[str, int]
    """A checkpoint tensor's name -> bytes of it in memory."""
    shapes: dict[str, tuple[int, ...]]
    kinds: set[str]
    elsewhere: set[str]
    read: int
    """Bytes that came out of files."""
    bytes: int


def ask(
    mesh: Mesh,
    path: str,
    quantisation: str = "auto",
    adapter: str = "",
    prompts: Sequence[Sequence[int]] = PROMPTS,
    **options: Any,
) -> Told:
    read, part = 0, SafetensorsSource.part

    def counted(source: SafetensorsSource, name: str, index: Any) -> torch.Tensor:
        nonlocal read
        values = part(source, name, index)
        read += values.nbytes
        return values

    plain = reference_ops()
    ops = replace(
        plain,
        fp8_matmul=_exact,
        fp8_grouped_matmul=_exact_grouped,
        silu_mul_quant=lambda x: (plain.silu_mul(x), None),
    )
    with patch.object(SafetensorsSource, "part", counted):
        loaded = load(
            Path(path),
            device="cpu",
            dtype=torch.float32,
            ops=ops,
            quantisation=quantisation,
            mesh=mesh,
            threads=1,
            **options,
        )
    model, places = loaded.model, loaded.model.places
    if adapter:
        model.reserve_adapters(1, 4)
        put_adapter(model, 1, read_adapter(Path(adapter)))
    rows, score = [], model.logits

    def seen(hidden: torch.Tensor) -> torch.Tensor:
        rows.append(hidden)
        return score(hidden)

    with patch.object(model, "logits", seen):
        logits, ids = _generate(model, prompts, has_adapter=bool(adapter))
    return Told(
        logits,
        torch.cat(rows),
        ids,
        {name: place.nbytes for name, place in places.items()},
        {name: tuple(place.shape) for name, place in places.items()},
        {str(place.dtype) for place in places.values()},
        set(model.site.elsewhere),
        read,
        loaded.bytes,
    )


def settled_logits(mesh: Mesh, path: str) -> torch.Tensor:
    """With this machine's own ops, and weights laid out as they like."""
    torch.set_num_threads(1)
    ops = Ops.choose(Signature(), environ={})
    model = load(Path(path), device="cpu", dtype=torch.float32, ops=ops, mesh=mesh).model
    model.settle()
    return _generate(model, PROMPTS, has_adapter=False)[0]


def _generate(
    model: CausalModel, prompts: Sequence[Sequence[int]], *, has_adapter: bool
) -> tuple[torch.Tensor, list[list[int]]]:
    """Every prompt in two chunks, then all together token by token."""
    paged = Paged(model, prompts)
    adapters = dict.fromkeys(range(len(prompts)), 1) if has_adapter else None
    found: list[list[torch.Tensor]] = [[] for _ in prompts]
    halves = {at: len(each) // 2 for at, each in enumerate(prompts)}
    rest = {at: len(each) - halves[at] for at, each in enumerate(prompts)}
    for counts in (halves, rest):
        for at, logits in paged.step(counts, adapters).items():
            found[at].append(logits)
    ids: list[list[int]] = [[int(rows[-1][-1].argmax())] for rows in found]
    for _ in range(GENERATED - 1):
        for at, each in enumerate(ids):
            paged.sequences[at].append(each[-1])
        for at, logits in paged.step(dict.fromkeys(halves, 1), adapters).items():
            ids[at].append(int(logits[-1].argmax()))
    return torch.cat([row for rows in found for row in rows]), ids


def _spread(scales: torch.Tensor) -> torch.Tensor:
    return scales.repeat_interleave(128, -2).repeat_interleave(128, -1)


def _exact(
    x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, x_scales: None = None, **_: torch.dtype
) -> torch.Tensor:
    """Activations are not rounded: what is left to differ is the order of sums."""
    return x @ (w.float() * _spread(scales)).mT


def _exact_grouped(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    offsets: torch.Tensor,
    x_scales: None = None,
    **_: torch.dtype,
) -> torch.Tensor:
    wide, y = w.float() * _spread(scales), x.new_zeros(x.shape[0], w.shape[1])
    for at, (start, end) in enumerate(pairwise(offsets.tolist())):
        y[start:end] = x[start:end] @ wide[at].mT
    return y


def alone(path: str, **options: Any) -> Told:
    return ask(SOLE, path, **options)
