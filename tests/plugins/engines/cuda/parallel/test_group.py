"""Collectives against the same written plainly, on ranks that are processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh  # noqa: E402

pytestmark = pytest.mark.torch


def collectives(mesh: Mesh) -> dict[str, Any]:
    group, me = mesh.data, mesh.data.index
    rows = torch.arange(4 * group.size, dtype=torch.float32).view(group.size, 4) + 100 * me
    sent = [(me + peer) % 3 for peer in range(group.size)]
    received = [(peer + me) % 3 for peer in range(group.size)]
    some = torch.full((sum(sent), 2), float(me)).to(torch.float8_e4m3fn)
    return {
        "all_reduce": group.all_reduce(rows.clone()).tolist(),
        "all_gather": group.all_gather(rows[0]).tolist(),
        "reduce_scatter": group.reduce_scatter(rows).tolist(),
        "all_to_all": group.all_to_all(some, sent, received).float()[:, 0].tolist(),
        "all_gather_rows": group.all_gather_rows(rows[:me], range(group.size)).tolist(),
        "reduce_scatter_rows": group.reduce_scatter_rows(rows[1:], _but_one(group.size)).tolist(),
        "broadcast": group.broadcast(torch.full((2,), me), 1).tolist(),
        "ints": mesh.data_host.all_gather_ints(np.array([me, 7], np.int64)).tolist(),
        "bytes": mesh.data_host.broadcast_bytes(b"word" if me == 0 else None),
        "nothing": mesh.data_host.broadcast_bytes(b"" if me == 0 else None),
        "place": (mesh.part, mesh.slice, mesh.is_leader),
    }


def _but_one(size: int) -> list[int]:
    """A row for each rank, and none for the first."""
    return [0] + [1] * (size - 1)


@pytest.mark.parametrize("layout", ["DEP_2", "DEP_4", "TP_2 x DEP_2"])
def test_collectives(layout: str) -> None:
    found = run_ranks(layout, collectives)
    size = len(found[0]["ints"])
    for rank, one in enumerate(found):
        me = one["place"][0]
        every = torch.stack(
            [torch.arange(4.0 * size).view(size, 4) + 100 * peer for peer in range(size)]
        )
        assert one["all_reduce"] == every.sum(0).tolist()
        assert one["all_gather"] == every[:, 0].tolist()
        assert one["reduce_scatter"] == every[:, me].sum(0).tolist()
        assert one["all_gather_rows"] == [
            row for at, it in enumerate(every) for row in it[:at].tolist()
        ]
        assert one["reduce_scatter_rows"] == every[:, me : me + 1 if me else 0].sum(0).tolist()
        wanted = [float(peer) for peer in range(size) for _ in range((peer + me) % 3)]
        assert one["all_to_all"] == wanted
        assert one["broadcast"] == [1, 1]
        assert one["ints"] == [[peer, 7] for peer in range(size)]
        assert one["bytes"] == b"word"
        assert one["nothing"] == b""
        assert one["place"][2] is (rank % (len(found) // size) == 0)


def fails(mesh: Mesh) -> None:
    if mesh.rank == 1:
        raise ValueError("this one")
    mesh.world_host.barrier()


def test_a_rank_that_raises_fails_the_caller() -> None:
    with pytest.raises(AssertionError, match=r"rank 1: (.|\n)*this one"):
        run_ranks("DEP_2", fails)


def test_one_rank_needs_no_process_group() -> None:
    x = torch.randn(3, 2)
    for group in (SOLE.tensor, SOLE.data):
        assert group.all_reduce(x) is x
        assert group.all_gather(x).shape == (1, 3, 2)
        assert group.reduce_scatter(x[None]).shape == (3, 2)
        assert group.all_to_all(x, [3], [3]) is x
        assert group.all_gather_rows(x, [3]) is x
        assert group.reduce_scatter_rows(x, [3]) is x
    assert SOLE.world_host.broadcast_bytes(b"x") == b"x"
    assert SOLE.is_leader
