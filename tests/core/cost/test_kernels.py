"""Each formula against numbers that were computed by hand, and the laws that all of them keep."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.cost.exchange import (
    all_reduce_bytes,
    copies_sent,
    kv_transfer_seconds,
    places_touched,
    row_bytes,
)
from tokenwire.core.cost.gpus import GPUS, Cluster, gpu_named
from tokenwire.core.cost.kernels import (
    Work,
    active_experts,
    decode_attention,
    dense_gemm,
    grouped_gemm,
    kv_bytes,
    prefill_attention_flops,
    sampler,
    weights_once,
)
from tokenwire.core.cost.known_shapes import shape_named
from tokenwire.core.cost.links import Links
from tokenwire.core.cost.shape import Gqa, Mla
from tokenwire.core.errors import ConfigError

LLAMA = Gqa(32, 8, 128)
V3 = Mla(128, 512, 64, 128, 128, 1536)
H200 = gpu_named("h200")
BANDWIDTH, BF16 = 4.3e12, 790e12


def close(wanted, *, within=0.005):
    return pytest.approx(wanted, rel=within)


# --- by hand -------------------------------------------------------------------------------------


def test_the_least_time_is_the_larger_of_bytes_and_operations():
    assert Work(430, 79).seconds(43, 79) == 10
    assert Work(430, 7900).seconds(43, 79) == 100
    assert Work(2, 3).times(4) == Work(8, 12)


def test_ridges_of_the_h200():
    assert H200.bf16.value / H200.bandwidth.value == close(184)
    assert H200.fp8.value / H200.bandwidth.value == close(360)


def test_kv_bytes():
    assert kv_bytes(LLAMA, "bf16") == 2 * 8 * 128 * 2 == 4096
    assert kv_bytes(LLAMA, "fp8") == 2048
    assert kv_bytes(V3, "bf16") == 1152
    assert kv_bytes(V3, "fp8") == 512 + 16 + 128


def test_kv_heads_are_divided_until_one_is_left():
    assert kv_bytes(LLAMA, "bf16", tensor=8) == 512
    assert kv_bytes(LLAMA, "bf16", tensor=16) == 512
    assert kv_bytes(V3, "bf16", tensor=8) == 1152


def test_paged_decode_by_hand():
    """L = 1000, q = 2: KV 4,096,000 bytes; 2 * 32 heads * 2 * 128 * 2 of queries and outputs."""
    assert decode_attention(LLAMA, 1000, query=2) == Work(
        4_096_000 + 32_768, 4 * 32 * 128 * 1000 * 2
    )


def test_paged_decode_of_8_heads_a_kv_head_does_8_operations_a_byte():
    work = decode_attention(Gqa(64, 8, 128), 1_000_000)
    assert work.flops / work.bytes == close(8)


def test_mla_decode_by_hand():
    assert decode_attention(V3, 1000) == Work(
        1000 * 1152 + 128 * 1088 * 2, 2 * 128 * (576 + 512) * 1000
    )
    assert decode_attention(V3, 1000, dtype="fp8").bytes == 656_000 + 128 * 1088 * 2


def test_mla_decode_is_bound_by_operations_on_hopper():
    work = decode_attention(V3, 4989).times(128)
    assert work.flops / BF16 == close(225e-6)
    # Of the bytes, KV takes 171 us, and queries and outputs the rest.
    assert work.bytes / BANDWIDTH == close(179e-6)
    assert decode_attention(V3, 1e6).flops / decode_attention(V3, 1e6).bytes == close(242)


def test_cut_attention_computes_its_share():
    assert decode_attention(V3, 100, tensor=4).flops * 4 == decode_attention(V3, 100).flops


def test_prefill_by_hand():
    assert prefill_attention_flops(LLAMA, 3) == 2 * 32 * 256 * 6
    assert prefill_attention_flops(LLAMA, 2, past=10) == 2 * 32 * 256 * (20 + 3)
    assert prefill_attention_flops(V3, 3) == 2 * 128 * 320 * 6
    assert prefill_attention_flops(LLAMA, 4096) / BF16 == close(174e-6)


def test_dense_gemm_by_hand():
    assert dense_gemm(4, 3, 5, weight=1, activation=2, out=4) == Work(15 + 40 + 48, 120)
    assert weights_once(15, 4, 1) == Work(15, 120)


def test_active_experts_by_hand():
    assert active_experts(4, 2, 1) == 2
    assert active_experts(4, 2, 2) == 3
    assert active_experts(4, 2, 1000) == pytest.approx(4)


def test_grouped_gemm_by_hand():
    """8 experts, 2 of them a token, H = 10, I = 3, 2 ranks, 4 tokens: 4 rows a rank."""
    hit = (8 - 8 * 0.75**4) / 2
    work = grouped_gemm(8, 2, 10, 3, 4, ranks=2, weight=1, activation=1)
    assert work.bytes == pytest.approx(hit * 90 + 4 * (10 + 12 + 3 + 20))
    assert work.flops == 6 * 4 * 30


@pytest.mark.parametrize(("weight", "peak", "ridge"), [(1, 1550e12, 180), (2, 790e12, 184)])
def test_grouped_gemm_is_bound_by_operations_above_the_ridge(weight, peak, ridge):
    """Counting weights alone, as the rule of thumb does."""
    assert peak * weight / (2 * BANDWIDTH) == close(ridge, within=0.01)


def test_dispatch_and_combine_by_hand():
    there, back = row_bytes(7168, fp8=True)
    assert (there, back) == (7168 + 224, 14336)
    assert 128 * 8 * there == close(7.57e6)
    assert 128 * 8 * there / 50e9 == close(151e-6)
    assert 128 * 8 * there / 450e9 == close(17e-6, within=0.02)
    assert 128 * 8 * back == close(14.7e6)
    assert 128 * 8 * back / 50e9 == close(294e-6)
    assert row_bytes(10, fp8=False) == (20, 20)


def test_copies_by_hand():
    assert places_touched(2, 2) == 1.5
    assert copies_sent(64, 8, "pair") == 8
    # All-gather and reduce-scatter: once to each of the others.
    assert [copies_sent(ranks, 8, "pair") for ranks in (2, 4, 8)] == [1, 3, 7]
    assert copies_sent(8, 8, "rank") == pytest.approx(8 * (1 - (7 / 8) ** 8))


def test_doubles_left_out_by_node_lower_the_wire_to_half():
    shares = [places_touched(ranks / 8, 8) / 8 for ranks in (32, 64)]
    assert shares == [close(0.45, within=0.01), close(0.656)]


def test_all_reduce_by_hand():
    assert all_reduce_bytes(4, 3, 10) == 2 * 3 / 4 * 60
    assert all_reduce_bytes(1, 3, 10) == 0


def test_kv_transfer_by_hand():
    prompt = 61 * kv_bytes(V3, "bf16") * 4096
    assert prompt == close(288e6)
    assert kv_transfer_seconds(prompt, 50e9) == close(5.8e-3, within=0.01)


def test_sampler_by_hand():
    work = sampler(256, 152_000)
    assert work.bytes == close(156e6)
    assert work.seconds(BANDWIDTH, BF16) == close(36e-6, within=0.01)


# --- machines ------------------------------------------------------------------------------------


def test_scaled_figures_reach_what_an_h200_reaches():
    for gpu in GPUS:
        for figure, like in ((gpu.bandwidth, H200.bandwidth), (gpu.bf16, H200.bf16)):
            assert figure.value / figure.datasheet == pytest.approx(like.value / like.datasheet)
    assert {gpu.bandwidth.mark for gpu in GPUS[1:]} == {"scaled"}


def test_a_gpu_without_fp8_multiplies_in_bf16():
    a100 = gpu_named("A100")
    assert a100.fp8 is None
    assert a100.peak("fp8") == a100.peak("bf16") == a100.bf16.value


def test_links():
    cluster = Cluster.of(H200)
    assert (cluster.link(8), cluster.link(9)) == (450e9, 50e9)
    assert Cluster.of(H200, domain=72, nic=1e9).link(72) == 450e9
    slow = Links(2, 2, 1, "cpu", within=1e9, across=None, sums=None, latency=0.0)
    assert Cluster.of(H200, links=slow).link(9) == 1e9, "beyond a domain goes through it"


def test_what_is_not_known_or_impossible_is_said_in_words():
    with pytest.raises(ConfigError, match=r"GPU 'h300': .* known are h200, h100"):
        gpu_named("h300")
    with pytest.raises(ConfigError, match="domain: wanted at least 1 GPU, got 0"):
        Cluster.of(H200, domain=0)
    for nic in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="nic: wanted"):
            Cluster.of(H200, nic=nic)


def test_known_names_are_found_in_any_case():
    assert shape_named("DeepSeek-V3") is not None
    assert shape_named("gpt-17") is None


# --- laws ----------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 512), st.data(), st.integers(0, 5000))
def test_active_experts_are_bounded_and_grow(experts, data, tokens):
    top_k = data.draw(st.integers(1, experts))
    hit = active_experts(experts, top_k, tokens)
    assert 0 <= hit <= min(experts, tokens * top_k) + 1e-9
    assert hit <= active_experts(experts, top_k, tokens + 1)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 256), st.integers(1, 16))
def test_no_more_copies_than_choices_or_places(places, top_k):
    assert 1 - 1e-9 <= places_touched(places, top_k) <= min(places, top_k) + 1e-9
    assert copies_sent(places, top_k, "pair") <= top_k


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 2000), st.integers(0, 2000), st.integers(1, 1999))
def test_a_prompt_in_two_chunks_costs_what_it_costs_in_one(new, past, cut):
    cut = min(cut, new)
    whole = prefill_attention_flops(LLAMA, new, past=past)
    first = prefill_attention_flops(LLAMA, cut, past=past)
    second = prefill_attention_flops(LLAMA, new - cut, past=past + cut)
    assert whole == pytest.approx(first + second)
