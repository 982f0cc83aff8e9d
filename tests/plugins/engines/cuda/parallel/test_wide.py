"""Wide expert parallelism: links measured among gloo ranks, one of them slowed, and what is made of
them: go, refuse, warn, fall back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

pytest.importorskip("torch")

import torch

from tests.plugins.engines.cuda.parallel.ranks import run_ranks
from tokenwire.core.cost.gpus import gpu_named
from tokenwire.core.cost.known_shapes import shape_named
from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.links import Links, Pair
from tokenwire.plugins.engines.cuda.models.config import (
    Mixture,
    Mla,
    ModelConfig,
    Quantisation,
    Rope,
)
from tokenwire.plugins.engines.cuda.models.cost_shape import shape_of
from tokenwire.plugins.engines.cuda.parallel.fallen import FellBack
from tokenwire.plugins.engines.cuda.parallel.frames import Instead
from tokenwire.plugins.engines.cuda.parallel.measure import measure
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh
from tokenwire.plugins.engines.cuda.parallel.slowed import SlowedExchange
from tokenwire.plugins.engines.cuda.parallel.wide import LayoutRefused, decide, judge
from tokenwire.plugins.engines.cuda.settings import CudaSettings, Slo

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
V3 = shape_named("deepseek-v3")
TINY = ModelConfig(
    family="qwen3_moe",
    hidden=64,
    intermediate=96,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=16,
    vocab_size=256,
    context_length=512,
    rms_eps=1e-6,
    ropes=(Rope(16),),
    rope_of_layer=(0, 0),
    windows=(0, 0),
    attention_scale=0.25,
    mixture=Mixture(experts=16, top_k=4, intermediate=32, layers=(0, 1)),
)


def links(across: float, within: float | None = 450e9, domain: int = 8, ranks: int = 64) -> Links:
    return Links(ranks, domain, 7392, "NCCL", within, across, None, 1e-5)


# --- measured ------------------------------------------------------------------------------------


def measured(mesh: Mesh, *asked: tuple[int, float | None]) -> list[Links]:
    """By (domain, bytes/s between domains), in one world of ranks."""
    found = []
    for domain, slow in asked:
        data = None if slow is None else SlowedExchange(mesh, domain, slow)
        found.append(measure(mesh, 4096, domain, CPU, data=data, budget_s=0.2))
    return found


def test_links_of_four_ranks() -> None:
    every = run_ranks("DEP_4", measured, (2, None), (2, 1e5), (1, None), (4, None))
    assert every.count(every[0]) == 4, "all ranks measure the same"
    two, slow, four, one = every[0]
    assert min(two.within, two.across, two.latency) > 0
    assert two.sums is None, "no part has slices"
    first = {way: next(each for each in two.samples if each.way == way) for way in WAYS}
    assert first["within"].sent == 4096, "a row to the one other of its domain"
    assert first["across"].sent == 2 * 4096
    assert not two.pairs, "two domains are one pair"
    assert slow.across < 1e5
    pairs = {(a, b) for a in range(4) for b in range(a + 1, 4)}
    assert {(each.first, each.second) for each in four.pairs} <= pairs
    assert four.slowest in four.pairs
    assert (one.across, one.pairs) == (None, ())


def test_domains_are_of_ranks_and_parts_sum_within_one() -> None:
    (found,) = run_ranks("TP_2 x DEP_2", measured, (2, None))[0]
    assert found.within is None, "a part fills its domain: nothing is exchanged within"
    assert min(found.across, found.sums) > 0


WAYS = ("within", "across")


# --- judged --------------------------------------------------------------------------------------


def test_v3_over_a_slow_network_is_refused_and_the_mixed_layout_named() -> None:
    found = judge(V3, Layout(1, 64), links(12.5e9), gpu=gpu_named("h200"), kv_dtype="fp8")
    assert found.action == "refuse"
    assert found.instead == Layout(2, 4)
    assert found.reason.startswith(
        "DEP_64 reaches beyond its domains of 8 and is held back: its exchange over 12.5 GB/s caps"
    )
    assert (
        "Set parallel_strategy TP_2 x DEP_4 and instance_count times 8, or wide_ep to fallback"
        in found.reason
    )
    assert "an h200's" not in found.reason


def test_what_stands_in_for_an_unknown_device_is_said() -> None:
    assert "computing reckoned as an h200's" in judge(V3, Layout(1, 64), links(1e9)).reason


def test_the_slowest_pair_is_named() -> None:
    odd = replace(links(1e9), pairs=(Pair(0, 1, 2e9), Pair(0, 2, 1e9), Pair(1, 2, 2e9)))
    assert "the slowest are domains 0 and 2, 1 GB/s" in judge(V3, Layout(1, 24), odd).reason


def test_other_policies_give_the_same_reason() -> None:
    refused, warned, fallen = (
        judge(V3, Layout(1, 64), links(12.5e9), policy, kv_dtype="fp8")
        for policy in ("refuse", "warn", "fallback")
    )
    assert (warned.action, fallen.action) == ("warn", "fallback")
    assert refused.instead == warned.instead == fallen.instead
    assert fallen.reason.endswith("(links measured: NCCL; computing reckoned as an h200's)")
    assert warned.reason.startswith(f"{fallen.reason}. Set parallel_strategy TP_2 x DEP_4")
    assert refused.reason == f"{warned.reason}, or set wide_ep to warn to start it all the same"


def test_what_does_not_share_the_devices_evenly_is_no_fallback() -> None:
    """12 ranks do not make groups of 8."""
    shape = shape_of(replace(TINY, mixture=replace(TINY.mixture, experts=24)))
    found = judge(shape, Layout(1, 12), links(1e6, ranks=12), "fallback")
    assert (found.action, found.instead) == ("refuse", None)
    assert "No other layout shares its devices evenly" in found.reason


def test_several_machines_do_not_fall_back_together() -> None:
    found = judge(V3, Layout(1, 64), links(12.5e9), "fallback", kv_dtype="fp8", machines=8)
    assert found.action == "refuse"
    assert "Give each machine a server of its own with parallel_strategy TP_2 x" in found.reason


def test_the_promise_counts() -> None:
    """Nobody is as fast as wide expert parallelism: where users must be, it is not refused."""
    fast = judge(V3, Layout(1, 64), links(50e9), tokens_per_s=100.0)
    assert (fast.action, judge(V3, Layout(1, 64), links(50e9)).action) == ("go", "go")
    assert judge(V3, Layout(1, 64), links(12.5e9), tokens_per_s=130.0).action == "go"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8]), st.floats(1e6, 1e12))
def test_within_a_domain_nothing_is_judged(tensor: int, data: int, rate: float) -> None:
    layout = Layout(tensor, data)
    inside = links(rate, domain=layout.gpus, ranks=layout.gpus)
    assert judge(shape_of(TINY), layout, inside).action == "go"


def test_a_fast_network_is_no_reason() -> None:
    assert judge(V3, Layout(1, 64), links(450e9)).action == "go"


# --- the engine's configuration ------------------------------------------------------------------


def test_a_config_and_the_known_shape_agree() -> None:
    known = shape_named("qwen3-30b-a3b")
    config = replace(
        TINY,
        hidden=2048,
        layers=48,
        heads=32,
        kv_heads=4,
        head_dim=128,
        vocab_size=151936,
        context_length=40960,
        windows=(0,) * 48,
        mixture=Mixture(experts=128, top_k=8, intermediate=768, layers=tuple(range(48))),
    )
    assert shape_of(config, known.name) == known
    for method, held in (("fp8", "fp8"), ("mxfp4", "bf16")):
        quantised = replace(config, quantisation=Quantisation((128, 128), method=method))
        assert shape_of(quantised).precision == held


def test_a_config_of_mla() -> None:
    config = replace(
        TINY,
        layers=4,
        windows=(0, 0, 0, 0),
        mla=Mla(q_rank=24, kv_rank=32, nope_dim=16, rope_dim=8, value_dim=12),
        mixture=replace(TINY.mixture, layers=(1, 2, 3), shared=48),
    )
    found = shape_of(config)
    assert (found.dense_layers, found.moe_layers, found.dense_width) == (1, 3, 96)
    assert found.moe.shared == 48
    assert (found.attention.latent, found.attention.rope, found.attention.query_latent) == (
        32,
        8,
        24,
    )


# --- decided at start ----------------------------------------------------------------------------

PATIENT = Slo(user_tokens_per_s=0.01)
"""A promise that even a busy machine's links keep."""
SLOW = {"domain": 4, "slow_link_gb_s": 1e-5, "slo": PATIENT}


def decided(mesh: Mesh, *chosen: CudaSettings) -> list[Instead | str | None]:
    """What becomes of each, in one world of ranks."""
    found: list[Instead | str | None] = []
    for each in chosen:
        try:
            decide(mesh, TINY, each, CPU)
            found.append(None)
        except LayoutRefused as refused:
            found.append(str(refused))
        except FellBack as fallen:
            found.append(fallen.instead)
    return found


def test_a_slow_link_at_start() -> None:
    every = run_ranks(
        "DEP_8",
        decided,
        CudaSettings(**SLOW),
        CudaSettings(wide_ep="fallback", **SLOW),
        CudaSettings(wide_ep="warn", **SLOW),
        CudaSettings(**(SLOW | {"slo": Slo(user_tokens_per_s=1e9)})),
        CudaSettings(domain=8, slow_link_gb_s=1e-9),
    )
    refused, fell_back, warned, promised, near = every[0]
    assert every.count(every[0]) == 8, "all ranks decide the same"
    assert "Set parallel_strategy TP_2 x DEP_2 and instance_count times 2" in refused
    assert "measured: CPUs over gloo; computing reckoned as an h200's" in refused
    assert (fell_back.layout, fell_back.groups) == ("TP_2 x DEP_2", 2)
    assert warned is None
    assert promised is None, "at a pace that no layout keeps, nothing is better"
    assert near is None, "within its domain a group measures nothing"
