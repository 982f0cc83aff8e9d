"""What one rank says of a mixture whose experts are shared. Imports no transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from tests.plugins.engines.cuda.models.paged import reference_ops
from tests.plugins.engines.cuda.parallel.played import PlayedBuffer
from tokenwire.kernels.op import Signature
from tokenwire.kernels.ops import Ops
from tokenwire.plugins.engines.cuda.balance.table import ExpertTable
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.layers.dispatch import LocalDispatcher
from tokenwire.plugins.engines.cuda.layers.moe import Moe
from tokenwire.plugins.engines.cuda.layers.site import DispatcherName, Site
from tokenwire.plugins.engines.cuda.models.config import Mixture, ModelConfig, Quantisation, Rope
from tokenwire.plugins.engines.cuda.parallel.deep_ep import DeepEpDispatcher
from tokenwire.plugins.engines.cuda.parallel.gathered import GatheredDispatcher
from tokenwire.plugins.engines.cuda.parallel.group import Group
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh
from tokenwire.plugins.engines.cuda.parallel.sliced import SlicedDispatcher
from tokenwire.plugins.engines.cuda.policy.experts.placement import Layout, placement_of

__all__ = ("HIDDEN", "Ask", "Said", "ask", "ask_one", "by_row", "config_of", "whole")

HIDDEN = 32


@dataclass(frozen=True)
class Ask:
    """One layer, and each part's tokens."""

    mixture: Mixture
    tokens: tuple[int, ...]
    """Of each part."""
    dispatcher: DispatcherName = "gathered"
    masked: bool = False
    vendor: bool = False
    """By a package that plays deep_ep."""
    captured: int = 0
    placed: tuple[int, ...] = ()
    """The expert of each physical one; (): identity."""
    replicas: str = "nearest"
    blank: tuple[int, ...] = ()
    """Rows of every part that only fill its step up: they are no numbers."""
    favoured: tuple[int, ...] = ()
    """Experts that every token takes; (): as the router likes."""
    native: bool = False
    """This machine's own ops in place of the references."""
    fp8: bool = False


@dataclass(frozen=True)
class Said:
    y: Tensor
    """Of the part's tokens."""
    alone: Tensor
    """The same by one rank that has all experts."""
    counted: list[int] = field(default_factory=list)
    """Pairs of this part, by physical expert; the last: nowhere."""
    taken: list[list[int]] = field(default_factory=list)
    """Logical experts of each token."""


def config_of(mixture: Mixture, *, is_fp8: bool = False, hidden: int = HIDDEN) -> ModelConfig:
    return ModelConfig(
        family="tiny",
        hidden=hidden,
        intermediate=48,
        layers=1,
        heads=2,
        kv_heads=2,
        head_dim=16,
        vocab_size=32,
        context_length=32,
        rms_eps=1e-6,
        ropes=(Rope(16),),
        rope_of_layer=(0,),
        windows=(0,),
        attention_scale=0.25,
        quantisation=Quantisation((128, 128)) if is_fp8 else None,
        mixture=mixture,
    )


def by_row(x: Tensor, w: Tensor, offsets: Tensor) -> Tensor:
    """As grouped_matmul, each row for itself: its bits hang on no other row."""
    y = x.new_zeros(x.shape[0], w.shape[1])
    for expert, (start, end) in enumerate(pairwise(offsets.tolist())):
        for row in range(start, end):
            y[row] = w[expert].float() @ x[row].float()
    return y


def by_row_masked(x: Tensor, w: Tensor, counts: Tensor, y: Tensor) -> None:
    for expert, count in enumerate(counts.tolist()):
        for row in range(count):
            y[expert, row] = w[expert].float() @ x[expert, row].float()


def ops_of(native: bool) -> Ops:
    if native:
        torch.set_num_threads(1)
        return Ops.choose(Signature(), environ={})
    return replace(reference_ops(), grouped_matmul=by_row, grouped_matmul_masked=by_row_masked)


def whole(site: Site, moe: Moe, mixture: Mixture, seed: int = 3) -> None:
    """Fills the places of this rank with what every rank would have, or its cut of it."""
    generator = torch.Generator().manual_seed(seed)
    names = sorted({*site.places, *site.elsewhere})
    hidden, inner = site.config.hidden, mixture.intermediate
    for name in names:
        shape = (inner, hidden) if "gate_proj" in name or "up_proj" in name else (hidden, inner)
        cut = site.cuts.get(name)
        if ".experts." not in name:
            shape = tuple(site.places[name].shape)
            if cut is not None:
                shape = (*shape[: cut.dim], cut.of, *shape[cut.dim + 1 :])
        elif name.endswith("bias"):
            shape = shape[:1]
        elif name.endswith("scale_inv"):
            shape = shape[0] // 128, shape[1] // 128
        values = torch.randn(shape, generator=generator) * 0.3
        if name.endswith("scale_inv"):
            values = values.abs() + 0.5
        if cut is not None:
            values = values.narrow(cut.dim, cut.start, cut.length)
        for place in (site.places.get(name), *site.doubles.get(name, ())):
            if place is not None:
                place.copy_(values)


def layer(ask: Ask, mesh: Mesh, ops: Ops) -> Moe:
    """Filled; on SOLE with all experts, as one rank has them."""
    is_alone = mesh is SOLE
    dtype = torch.bfloat16 if ask.fp8 else torch.float32
    slots = len(ask.placed) or ask.mixture.experts
    site = Site(
        config_of(ask.mixture, is_fp8=ask.fp8, hidden=128 if ask.fp8 else HIDDEN),
        ops,
        torch.device("cpu"),
        dtype,
        keeps_fp8=ask.fp8,
        mesh=mesh,
        dispatcher="auto" if is_alone else ask.dispatcher,
        redundant=0 if is_alone else slots - ask.mixture.experts,
        captured=0 if is_alone else ask.captured,
    )
    dispatcher: Any = None
    if ask.masked and not is_alone:
        each = slots // mesh.data.size
        dispatcher = GatheredDispatcher(ops, mesh.data, each, "masked", slices=mesh.tensor)
        if mesh.tensor.size > 1:
            dispatcher = SlicedDispatcher(dispatcher, mesh.tensor)
    if ask.vendor and not is_alone:
        ranks = mesh.data.size
        dispatcher = DeepEpDispatcher(ops, PlayedBuffer(mesh.data), ranks, slots // ranks)
    moe = Moe(site, "mlp", ask.mixture, dispatcher, () if is_alone else ask.placed)
    assert isinstance(moe.dispatcher, LocalDispatcher) == is_alone
    whole(site, moe, ask.mixture)
    if ask.favoured:
        moe.router.weight.zero_()
        assert moe.router.bias is not None
        moe.router.bias.zero_()
        moe.router.bias[list(ask.favoured)] = torch.arange(len(ask.favoured)).to(dtype) + 5
    moe.settle()
    return moe


def step(tokens: int, blank: Sequence[int], span: int) -> Any:
    """What of a Batch a mixture reads."""
    slots = torch.arange(tokens)
    slots[[row for row in blank if row < tokens]] = -1
    batch: Any = SimpleNamespace(slots=(slots,), span=span, positions=torch.arange(tokens) * 7)
    return batch


def ask(mesh: Mesh, every: Sequence[Ask]) -> list[Said]:
    return [_ask(mesh, each) for each in every]


def ask_one(mesh: Mesh, every: Sequence[Ask]) -> list[Said]:
    """A group of one that talks to itself, as torch.distributed lets it."""
    talking = Group(1, 0, torch.distributed.group.WORLD)
    return ask(replace(mesh, data=talking), every)


def _ask(mesh: Mesh, ask: Ask) -> Said:
    ops = ops_of(ask.native)
    moe, part = layer(ask, mesh, ops), mesh.data.index
    tokens, counted = ask.tokens[part], torch.zeros(0)
    if ask.placed:
        layout = Layout(ask.mixture.experts, len(ask.placed), mesh.data.size)
        placement = placement_of(layout, torch.tensor([ask.placed]).numpy())
        counted = torch.zeros(len(ask.placed) + 1, dtype=torch.int32)
        moe.table = ExpertTable(placement, 0, part, counted, replicas=ask.replicas)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(100 + part)
    dtype = torch.bfloat16 if ask.fp8 else torch.float32
    x = torch.randn(tokens, moe.router.weight.shape[1], generator=generator).to(dtype)
    given = x.clone()
    given[[row for row in ask.blank if row < tokens]] = torch.nan
    batch: Batch = step(tokens, ask.blank, max(ask.tokens))
    real = batch.slots[0] >= 0
    with torch.inference_mode():
        y = moe(given, None, batch)
        whole_one = layer(replace(ask, blank=()), SOLE, ops)
        alone = whole_one(x, None, step(tokens, (), 0))
        taken = whole_one.route(whole_one.router(x, None))[1]
    assert not bool(y[real].isnan().any())
    return Said(y[real], alone[real], counted.tolist(), taken[real].tolist())
