"""What slices of a part send to other parts: together, what one of them would alone, and what the
planner reckons with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.parallel.shared_experts import Ask, Said, ask  # noqa: E402
from tokenwire.core.cost.exchange import (  # noqa: E402
    all_reduce_seconds,
    exchange_bytes,
    row_bytes,
)
from tokenwire.core.cost.gpus import Cluster, gpu_named  # noqa: E402
from tokenwire.core.cost.layout import Layout  # noqa: E402
from tokenwire.core.cost.shape import Gqa, ModelShape, Moe  # noqa: E402
from tokenwire.kernels.ep_dispatch.wire import WORD, wire_of  # noqa: E402
from tokenwire.plugins.engines.cuda.models.config import Mixture  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.group import Group  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh  # noqa: E402

pytestmark = pytest.mark.torch

HIDDEN, EXPERTS, TOKENS = 128, 8, 8
ROUGH = 2e-2
"""Of rows that are rounded to fp8."""


class Counted:
    """A group, and the bytes that this rank gave to others."""

    def __init__(self, group: Group) -> None:
        self.group, self.size, self.index, self.sent = group, group.size, group.index, 0

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        self.sent += x.nbytes * (self.size - 1)
        return self.group.all_gather(x)

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        self.sent += x[0].nbytes * (self.size - 1)
        return self.group.reduce_scatter(x)

    def all_to_all(
        self,
        x: torch.Tensor,
        sent: Sequence[int] | None = None,
        received: Sequence[int] | None = None,
    ) -> torch.Tensor:
        stay = len(x) // self.size if sent is None else sent[self.index]
        self.sent += x[stay:].nbytes
        return self.group.all_to_all(x, sent, received)

    def all_gather_rows(self, x: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
        self.sent += x.nbytes * (self.size - 1)
        return self.group.all_gather_rows(x, counts)

    def reduce_scatter_rows(self, x: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
        self.sent += x[counts[self.index] :].nbytes
        return self.group.reduce_scatter_rows(x, counts)

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """As a ring does."""
        self.sent += 2 * x.nbytes * (self.size - 1) // self.size
        return self.group.all_reduce(x)


def told(mesh: Mesh, one: Ask) -> tuple[Said, int, int]:
    """Also what this rank sent to other parts, and to the other slices of its own."""
    data: Any = Counted(mesh.data)
    tensor: Any = Counted(mesh.tensor)
    (said,) = ask(replace(mesh, data=data, tensor=tensor), [one])
    return said, data.sent, tensor.sent


def mixture(layout: Layout, top_k: int, **options: Any) -> Mixture:
    """Whose slices are whole blocks of fp8."""
    return Mixture(EXPERTS, top_k, 128 * layout.tensor, (0,), router_bias=True, **options)


def shape_of(top_k: int, shared: int = 0) -> ModelShape:
    """As the planner knows a layer of this size."""
    moe = Moe(EXPERTS, top_k, 128, shared)
    return ModelShape("tiny", 1, HIDDEN, 32, Gqa(2, 2, 64), 0, 0, moe)


def figures(layout: Layout, top_k: int) -> tuple[float, float]:
    """The planner's bytes of one GPU, one layer, there and back: between parts, and within one."""
    return exchange_bytes(shape_of(top_k), layout, TOKENS, fp8=True, domain=layout.tensor)


def beside(top_k: int, *, has_weights: bool) -> int:
    """Bytes of a row on its way that are not its values and scales."""
    form = wire_of(HIDDEN, torch.bfloat16, top_k, has_weights=has_weights, is_fp8=True)
    return form.words * WORD - int(row_bytes(HIDDEN, fp8=True)[0])


def close(found: Sequence[tuple[Said, int, int]]) -> bool:
    return all(
        float((said.y.float() - said.alone.float()).norm()) < ROUGH * float(said.alone.norm())
        for said, _, _ in found
        if said.y.numel()
    )


LAYOUTS = ["DEP_4", "TP_2 x DEP_2", "TP_2 x DEP_4", "TP_4 x DEP_2"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_gathered_rows_cross_once(name: str) -> None:
    layout, top_k = Layout.named(name), 4
    one = Ask(mixture(layout, top_k), (TOKENS,) * layout.data, "gathered", fp8=True)
    found = run_ranks(name, told, one)
    assert close(found)
    share, extra = TOKENS // layout.tensor, beside(top_k, has_weights=True)
    outside, inside = figures(layout, top_k)
    wanted = outside + share * (layout.data - 1) * extra
    within = inside + share * layout.data * (layout.tensor - 1) * extra
    assert [sent for _, sent, _ in found] == [wanted] * layout.gpus
    assert [sent for _, _, sent in found] == pytest.approx([within] * layout.gpus)


@pytest.mark.parametrize("name", LAYOUTS)
def test_exchanged_rows_cross_once(name: str) -> None:
    """Each token of one part takes an expert on each other part, the most that can cross."""
    layout = Layout.named(name)
    top_k, data = layout.data - 1, layout.data
    away = tuple(EXPERTS // data * part for part in range(1, data))
    tokens = (TOKENS,) + (0,) * top_k
    one = Ask(mixture(layout, top_k), tokens, "exchanged", favoured=away, fp8=True)
    found = run_ranks(name, told, one)
    assert close(found)
    share, extra = TOKENS // layout.tensor, beside(top_k, has_weights=False)
    counts = 2 * WORD * data
    outside, inside = figures(layout, top_k)
    for slice_ in range(layout.tensor):
        column = found[slice_ :: layout.tensor]
        crossed, within = (sum(each) for each in zip(*(one[1:] for one in column), strict=True))
        assert crossed == outside + share * top_k * extra + counts * (data - 1)
        more = share * top_k * extra + counts * data
        assert within == pytest.approx(inside + more * (layout.tensor - 1))


def test_shared_experts_are_summed_by_slices() -> None:
    layout, top_k = Layout.named("TP_2 x DEP_2"), 4
    every = [
        run_ranks(
            layout.name,
            told,
            Ask(mixture(layout, top_k, shared=shared), (TOKENS, TOKENS), "exchanged", fp8=True),
        )
        for shared in (0, 256)
    ]
    assert all(close(found) for found in every)
    cluster = Cluster(gpu_named("h200"), domain=1, nic=1.0)
    without, with_them = (
        all_reduce_seconds(shape_of(top_k, shared), cluster, layout, TOKENS) for shared in (0, 256)
    )
    for one, other in zip(*every, strict=True):
        assert other[1] == one[1]
        assert other[2] - one[2] == with_them - without


@pytest.mark.parametrize("dispatcher", ["gathered", "exchanged"])
def test_a_share_is_rounded_up(dispatcher: Any) -> None:
    """One token of each part, and slices that have none: they send what makes shapes even."""
    layout = Layout.named("TP_2 x DEP_2")
    one = Ask(mixture(layout, 2), (1, 3), dispatcher, fp8=True)
    found = run_ranks(layout.name, told, one)
    assert close(found)
    rows = {len(said.y) for said, _, _ in found}
    assert rows == {1, 3}
    for first, second in (found[:2], found[2:]):
        assert torch.equal(first[0].y, second[0].y)
