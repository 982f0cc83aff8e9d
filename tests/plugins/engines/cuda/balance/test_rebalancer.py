"""Experts move on ranks that are processes: every rank switches at the same boundary, every slot
holds what the tables say, whatever moves and in whatever pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tokenwire.plugins.engines.cuda.balance.mover import Mover  # noqa: E402
from tokenwire.plugins.engines.cuda.balance.rebalancer import Rebalancer  # noqa: E402
from tokenwire.plugins.engines.cuda.balance.table import Counter, ExpertTable  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh, beside  # noqa: E402
from tokenwire.plugins.engines.cuda.policy.experts.placement import (  # noqa: E402
    Layout,
    placement_of,
)
from tokenwire.plugins.engines.cuda.settings import Rebalance  # noqa: E402

pytestmark = pytest.mark.torch

LAYERS, EXPERTS, WIDTH = 3, 8, 100_000


def serve(mesh: Mesh, slots: int, replicas: str, steps: int, width: int) -> dict[str, Any]:
    """Steps whose load is skewed and wanders; what was seen at every boundary."""
    group, me = mesh.data, mesh.data.index
    layout = Layout(EXPERTS, slots, group.size)
    placement = placement_of(layout, np.tile(np.arange(slots) % EXPERTS, (LAYERS, 1)))
    room = layout.slots_per_rank
    device = torch.device("cpu")
    kinds = (torch.float32, torch.float8_e4m3fn)
    weights = [[torch.zeros(room, width).to(kind) for kind in kinds] for _ in range(LAYERS)]

    def tensors(layer: int, slot: int) -> list[Any]:
        return [each[slot] for each in weights[layer]]

    def held() -> list[list[int]]:
        """Which expert each slot's bytes are; -1 where its two tensors disagree."""
        found = []
        for layer in range(LAYERS):
            first, second = (each.float() for each in weights[layer])
            same = (first[:, 0] == first[:, -1]) & (first[:, 0] == second[:, 0] + 0)
            found.append(torch.where(same, first[:, 0], -1.0).int().tolist())
        return found

    for layer in range(LAYERS):
        for slot in range(room):
            expert = placement.physical_to_logical[layer][me * room + slot]
            for each in tensors(layer, slot):
                each.fill_(float(expert))
    counter = Counter(LAYERS, slots, 4, device)
    tables = [
        ExpertTable(placement, layer, me, counter.now[layer], replicas=replicas)
        for layer in range(LAYERS)
    ]
    moves, sums = beside(mesh)
    rebalancer = Rebalancer(
        placement,
        tables,
        counter,
        Mover(moves, room, tensors),
        everyone=mesh.world_host,
        sums=sums,
        settings=Rebalance(interval=16, window=8, bar=1.0, step_mib=1),
        every=2,
        told=4,
    )
    rng = np.random.default_rng(mesh.part)
    history, wrong = [], 0
    for step in range(steps):
        hot = (step // 20) % EXPERTS
        for table in tables:
            experts = np.where(rng.random((16, 1)) < 0.7, hot, rng.integers(EXPERTS, size=(16, 1)))
            positions = torch.from_numpy(rng.integers(0, 4096, 16))
            table.physical(torch.from_numpy(experts).int(), positions)
        rebalancer.boundary()
        now = rebalancer.placement.physical_to_logical
        history.append(now.tolist())
        mine = now[:, me * room : (me + 1) * room].tolist()
        wrong += held() != mine
    rebalancer.close()
    figures = {(each.name, each.label): each.values[0] for each in rebalancer.figures()}
    return {"history": history, "wrong": wrong, "figures": figures}


@pytest.mark.parametrize(
    ("layout", "slots", "replicas", "width"),
    [
        ("DEP_2", 8, "nearest", 16),
        ("DEP_2", 10, "position", 16),
        ("DEP_4", 12, "spread", WIDTH),
        ("TP_2 x DEP_2", 10, "nearest", 16),
    ],
)
def test_all_ranks_switch_together_to_what_the_tables_say(layout, slots, replicas, width) -> None:
    found = run_ranks(layout, serve, slots, replicas, 120, width)
    first = found[0]
    assert first["history"][0] != first["history"][-1], "nothing moved"
    assert first["figures"]["expert_rebalances", ""] >= 1
    assert first["figures"]["expert_moves", ""] >= 1
    for rank, one in enumerate(found):
        assert one["history"] == first["history"]
        assert one["wrong"] == 0
        assert rank == 0 or not one["figures"]["expert_moves", ""], "a sum would count it twice"
        assert 0 < one["figures"]["expert_balancedness", "0"] <= 1


def fails(mesh: Mesh) -> None:
    from tokenwire.plugins.engines.cuda.balance.backstage import Backstage

    stage, done = Backstage(mesh.world_host), list[int]()

    def work() -> int:
        if mesh.rank == 1:
            raise ValueError("a link broke")
        return 1

    stage.give(work, done.append)
    while not done:
        stage.meet()


def test_what_goes_wrong_beside_the_steps_ends_the_loop() -> None:
    with pytest.raises(AssertionError, match="a link broke"):
        run_ranks("DEP_2", fails)
