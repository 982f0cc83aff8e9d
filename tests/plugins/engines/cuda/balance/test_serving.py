"""Experts move in the middle of generations: the tokens stay those of one rank, every slot has the
weights that its table says, and balance is told in status."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.plugins.engines.cuda.driving import engine, run  # noqa: E402
from tests.plugins.engines.cuda.parallel.loops import BASE, serve_worker  # noqa: E402
from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.test_matrix import MODELS, jobs  # noqa: E402
from tokenwire.core.host import lone_services  # noqa: E402
from tokenwire.core.settings import Place, convert  # noqa: E402
from tokenwire.plugins.engines.cuda.balance.balancing import balance_of  # noqa: E402
from tokenwire.plugins.engines.cuda.build import assemble, load_here  # noqa: E402
from tokenwire.plugins.engines.cuda.laid import lay_out  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.moe import Moe  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.leading import follower_of  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh, beside  # noqa: E402
from tokenwire.plugins.engines.cuda.settings import CudaSettings  # noqa: E402
from tokenwire.plugins.engines.cuda.worker import CudaWorker  # noqa: E402

pytestmark = pytest.mark.torch

OFTEN = {"interval": 4, "window": 4, "bar": 1.0}


def serve(mesh: Mesh, fields: dict[str, Any], stages: Any) -> dict[str, Any]:
    settings = convert(CudaSettings, BASE | fields, Place("test", "engine"))
    loaded, found = load_here(settings, lone_services(), mesh=mesh)
    balance = balance_of(loaded.model, mesh, settings, every=2, told=4)
    assert balance is not None
    first = balance.placement
    signal, _ = beside(mesh)
    answers: dict[tuple[str, int], list[int]] = {}
    if mesh.is_leader:
        built = assemble(
            settings,
            lone_services(),
            loaded,
            found,
            mesh=mesh,
            between=balance.boundary,
            figures=balance.figures,
        )
        worker = built.worker
        assert isinstance(worker, CudaWorker)
        came = serve_worker(worker, mesh, stages, {}, lambda: signal.all_gather(torch.zeros(1)))
        answers = {key: answer.ids for key, answer in came.items()}
        names = {figure.name for figure in built.worker.status().figures}
        assert {"expert_balancedness", "expert_rebalances", "expert_moves"} <= names
    else:
        follower_of(mesh, lay_out(settings, loaded, found, mesh, balance.boundary)).run()
    mixtures = [block.mlp for block in loaded.model.blocks if isinstance(block.mlp, Moe)]
    told = {(each.name, each.label): each.values[0] for each in balance.figures()}
    return {
        "answers": answers,
        "first": first.physical_to_logical.tolist(),
        "placement": balance.placement.physical_to_logical.tolist(),
        "rebalances": told["expert_rebalances", ""],
        "balancedness": told["expert_balancedness", "0"],
        "weights": [_digests(mixture) for mixture in mixtures],
        "slice": mesh.slice,
    }


def _digests(mixture: Moe) -> list[list[float]]:
    """Of each slot: sums that tell experts apart, and the same expert anywhere alike."""
    slots = range(len(mixture.held))
    return [
        [float(each.double().sum()) for each in mixture.experts.slot_tensors(slot)]
        for slot in slots
    ]


@cache
def alone(model: str) -> dict[tuple[str, int], list[int]]:
    return {key: answer.ids for key, answer in run(engine(MODELS[model]()), *jobs()).items()}


@pytest.mark.parametrize(
    ("layout", "model", "fields"),
    [
        ("DEP_2", "qwen3_moe", {}),
        ("DEP_2", "qwen3_moe", {"redundant_experts": 2, "replicas": "spread", "graphs": True}),
        ("DEP_4", "qwen3_moe", {"redundant_experts": 2, "replicas": "position", "overlap": True}),
        ("TP_2 x DEP_2", "qwen3_moe", {"redundant_experts": 2, "dispatcher": "exchanged"}),
        ("DEP_2", "deepseek_v3", {"redundant_experts": 4}),
    ],
)
def test_tokens_stay_while_experts_move(layout, model, fields) -> None:
    fields = {"path": str(MODELS[model]()), "rebalance": OFTEN, **fields}
    parts = int(layout[-1])
    waves = 2 if parts == 2 else 1
    stages = [[jobs(f"{part}:{wave}:") for part in range(parts)] for wave in range(waves)]
    found = run_ranks(layout, serve, fields, stages, timeout_s=120)
    first = found[0]
    assert first["placement"] != first["first"], "nothing moved"
    assert first["rebalances"] >= 1
    for one in found:
        assert one["placement"] == first["placement"]
        assert 0 < one["balancedness"] <= 1
        for (name, choice), ids in one["answers"].items():
            assert ids == alone(model)[name.rpartition(":")[2], choice], name
    _same_weights_everywhere(found, parts)


def _same_weights_everywhere(found: list[dict[str, Any]], parts: int) -> None:
    """One expert's bytes are alike in each of its slots, and no two experts' are."""
    for slice_ in {one["slice"] for one in found}:
        ranks = [one for one in found if one["slice"] == slice_]
        assert len(ranks) == parts
        for layer, table in enumerate(ranks[0]["placement"]):
            digests = [tuple(each) for one in ranks for each in one["weights"][layer]]
            of: dict[int, set[tuple[float, ...]]] = {}
            for expert, digest in zip(table, digests, strict=True):
                of.setdefault(expert, set()).add(digest)
            assert all(len(each) == 1 for each in of.values())
            assert len(set.union(*of.values())) == len(of)
