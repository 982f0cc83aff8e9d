"""A mixture whose experts several ranks share is the mixture that one rank has: layer by layer, and
as a network that generates."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.plugins.engines.cuda.load.checkpoints import tiny  # noqa: E402
from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.parallel.shared_experts import Ask, Said, ask  # noqa: E402
from tests.plugins.engines.cuda.parallel.shared_networks import serve, serve_alone  # noqa: E402
from tokenwire.core.cost.layout import Layout  # noqa: E402
from tokenwire.plugins.engines.cuda.models.config import Mixture  # noqa: E402

pytestmark = pytest.mark.torch

CLOSE = 5e-7
EIGHT = Mixture(experts=8, top_k=3, intermediate=24, layers=(0,), router_bias=True)
SIGMOID = Mixture(
    experts=16, top_k=4, intermediate=16, layers=(0,), scoring="sigmoid", bias=True, groups=4,
    groups_kept=2, scale=2.5, shared=24, router_bias=True, expert_bias=True,
)  # fmt: skip
ALL = Mixture(experts=8, top_k=8, intermediate=8, layers=(0,), router_bias=True)
WAYS = {
    "gathered": {"dispatcher": "gathered"},
    "gathered, masked": {"dispatcher": "gathered", "masked": True},
    "exchanged": {"dispatcher": "exchanged"},
    "a vendor's": {"vendor": True},
    "this machine's ops": {"dispatcher": "exchanged", "native": True},
    "by span": {"dispatcher": "auto", "captured": 6},
}


def tokens_of(ranks: int, *first: int) -> tuple[int, ...]:
    return (*first, *(3 + 2 * rank for rank in range(ranks)))[:ranks]


def placed(kind: str, ranks: int, experts: int) -> tuple[int, ...]:
    order = list(range(experts))
    if kind != "identity":
        random.Random(ranks).shuffle(order)
    if kind == "replicated":
        order += [order[0]] * ranks  # one expert on several ranks, perhaps twice on one
    return tuple(order)


def cases(ranks: int) -> dict[str, Ask]:
    """Name -> what is asked, on so many ranks; the dispatcher is to be set."""
    found = {
        "even": Ask(EIGHT, tokens_of(ranks)),
        "sigmoid, shared, biased": Ask(SIGMOID, tokens_of(ranks, 6, 1)),
        "a rank without tokens": Ask(EIGHT, tokens_of(ranks, 5, 0)),
        "one rank has all tokens": Ask(EIGHT, (0,) * (ranks - 1) + (9,)),
        "no rank has tokens": Ask(EIGHT, (0,) * ranks),
        "all tokens to the same experts": Ask(EIGHT, tokens_of(ranks), favoured=(0, 1, 2)),
        "every token to every expert": Ask(ALL, tokens_of(ranks)),
        "rows that fill up": Ask(EIGHT, (6,) * ranks, blank=(0, 3, 5)),
        "only rows that fill up": Ask(EIGHT, (1,) * ranks, blank=(0,)),
    }
    for kind in ("identity", "random", "replicated"):
        for mixture in (EIGHT, SIGMOID):
            each = placed(kind, ranks, mixture.experts)
            found[f"{kind} map, {mixture.experts}"] = Ask(
                mixture, tokens_of(ranks, 7, 0), placed=each, blank=(2,)
            )
    found["replicas by position"] = Ask(
        EIGHT, tokens_of(ranks, 12), placed=placed("replicated", ranks, 8), replicas="position"
    )
    return found


SLICED = (
    "sigmoid, shared, biased",
    "a rank without tokens",
    "one rank has all tokens",
    "no rank has tokens",
    "rows that fill up",
    "only rows that fill up",
    "random map, 8",
    "replicated map, 16",
    "replicas by position",
)
"""Cases that parts of several slices are asked too."""
MESHES = ("DEP_2", "DEP_4", "DEP_8", "TP_2 x DEP_2", "TP_2 x DEP_4", "TP_4 x DEP_2")


@pytest.fixture(scope="module", params=MESHES)
def said(request) -> tuple[dict[tuple[str, str], Ask], dict[tuple[str, str], list[Said]]]:
    """(way, case) -> what was asked, and what every rank said: a world of each size is enough."""
    layout = Layout.named(request.param)
    asked = {
        (way, name): Ask(**{**each.__dict__, **options})
        for way, options in WAYS.items()
        for name, each in cases(layout.data).items()
        if layout.tensor == 1 or name in SLICED
    }
    found = run_ranks(layout.name, ask, list(asked.values()))
    return asked, {key: [each[at] for each in found] for at, key in enumerate(asked)}


@pytest.mark.parametrize("way", WAYS)
def test_ranks_say_what_one_says(said, way) -> None:
    asked, found = said
    ran = 0
    for (its, name), each in found.items():
        if its != way:
            continue
        slices = len(each) // len(asked[its, name].tokens)
        for rank, one in enumerate(each):
            assert one.y.shape == one.alone.shape, name
            assert torch.equal(one.y, each[rank - rank % slices].y), f"{name}, rank {rank}"
            if one.y.numel():
                ran += 1
                apart = float((one.y - one.alone).norm() / one.alone.norm())
                assert apart < CLOSE, f"{name}, rank {rank}: {apart:.1e}"
            if way == "exchanged" and slices == 1:
                assert torch.equal(one.y, one.alone), f"{name}, rank {rank}"
    assert ran > 12


def test_pairs_are_counted_once_and_rows_that_fill_up_not_at_all(said) -> None:
    asked, found = said
    for key, each in found.items():
        ask, placed = asked[key], asked[key].placed
        if not placed:
            continue
        for one in each:
            wanted = [0] * ask.mixture.experts
            for experts in one.taken:
                for expert in experts:
                    wanted[expert] += 1
            counts = [0] * ask.mixture.experts
            for slot, count in enumerate(one.counted[:-1]):
                counts[placed[slot]] += count
            assert counts == wanted, key
    replicated = [
        one.counted[:-1]
        for (way, name), each in found.items()
        if name == "replicas by position" and way == "exchanged"
        for one in each
    ]
    placed = asked["exchanged", "replicas by position"].placed
    favoured = [slot for slot, expert in enumerate(placed) if expert == placed[0]]
    assert sum(any(one[slot] for one in replicated) for slot in favoured) > 1


# --- networks ------------------------------------------------------------------------------------

NETWORKS: dict[str, dict[str, Any]] = {
    "Qwen3Moe": {
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 24,
        "norm_topk_prob": True,
        "head_dim": 8,
    },
    "Mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "DeepseekV3": {
        "n_routed_experts": 16,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 16,
        "n_group": 4,
        "topk_group": 2,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "q_lora_rank": 24,
        "kv_lora_rank": 16,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8,
        "v_head_dim": 8,
        "num_key_value_heads": 4,
    },
}
LENGTHS = (11, 2, 7, 1, 16, 5, 3, 9, 4)
PROMPTS = [[(7 * at + 3 * each) % 90 for each in range(size)] for at, size in enumerate(LENGTHS)]


LAYOUTS = {
    "Qwen3Moe": (
        ("DEP_2", "gathered", 4),
        ("DEP_4", "exchanged", 0),
        ("DEP_8", "auto", -1),
        ("DEP_8", "exchanged", 8),
        ("TP_2 x DEP_2", "exchanged", -1),
    ),
    "Mixtral": (("DEP_2", "auto", -1), ("DEP_8", "gathered", -1)),
    "DeepseekV3": (
        ("DEP_4", "exchanged", -1),
        ("DEP_8", "gathered", 8),
        ("TP_2 x DEP_2", "gathered", -1),
    ),
}
"""Network -> layout, dispatcher, and `serve`'s redundant experts."""


@pytest.fixture(scope="module", params=NETWORKS)
def network(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    tiny(folder, request.param, **NETWORKS[request.param])
    return request.param, str(folder), serve_alone(str(folder), PROMPTS)


def test_ranks_generate_what_one_generates(network) -> None:
    kind, path, wanted = network
    assert len({tuple(ids) for ids, _ in wanted.values()}) > 5
    for layout, dispatcher, redundant in LAYOUTS[kind]:
        found = run_ranks(layout, serve, path, PROMPTS, dispatcher, redundant)
        assert {which for each in found for which in each} == set(range(len(PROMPTS)))
        for each in found:
            for which, (ids, logits) in each.items():
                assert ids == wanted[which][0], layout
                apart = (logits - wanted[which][1]).norm() / wanted[which][1].norm()
                assert float(apart) < 2e-6, layout
