"""Whole steps: the published figures of the model, and laws over random shapes and machines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.cost.decode import decode_step
from tokenwire.core.cost.gpus import GPUS, Cluster, gpu_named
from tokenwire.core.cost.known_shapes import SHAPES, shape_named
from tokenwire.core.cost.layout import ONE, Layout
from tokenwire.core.cost.prefill import prefill_rate, prefill_seconds
from tokenwire.core.cost.roof import active_parameters, roof
from tokenwire.core.cost.shape import Gqa, Mla, ModelShape, Moe
from tokenwire.core.cost.weights import kv_room, parameters, sequence_bytes, weight_bytes
from tokenwire.core.errors import ConfigError

H200 = gpu_named("h200")
V3, QWEN30, LLAMA8 = map(shape_named, ("deepseek-v3", "qwen3-30b-a3b", "llama-3.1-8b"))

TABLE = [
    # experts' ranks, 32 a GPU, 128 a GPU over NVLink, 128 a GPU over 50 GB/s
    (8, 1207, 3447, None),
    (16, 1882, 4632, 4632),
    (32, 2612, 5594, 4959),
    (64, 3240, 6076, 4959),
    (144, 3740, 6076, 4959),
]
"""Tokens/s of a GPU: DeepSeek-V3 on H200, 4,989 tokens of context."""


def v3(ranks, batch, domain, **more):
    """Tokens/s of a GPU."""
    cluster = Cluster.of(H200, domain=domain)
    step = decode_step(
        V3, cluster, Layout(1, ranks), batch=batch, context=4989, precision="fp8", **more
    )
    return batch / step.seconds


@pytest.mark.parametrize(("ranks", "small", "nvlink", "network"), TABLE)
def test_the_table_of_deepseek_v3_on_h200(ranks, small, nvlink, network):
    for domain in (8, 144):
        assert v3(ranks, 32, domain) == pytest.approx(small, rel=0.001)
    assert v3(ranks, 128, 144) == pytest.approx(nvlink, rel=0.001)
    if network is not None:
        assert v3(ranks, 128, 8) == pytest.approx(network, rel=0.001)


@pytest.mark.parametrize(("ranks", "user"), [(8, 38), (64, 101)])
def test_the_table_says_what_a_user_gets(ranks, user):
    assert v3(ranks, 32, 144) / 32 == pytest.approx(user, rel=0.01)


def test_drafts_lower_throughput_where_the_wire_binds():
    assert v3(144, 96, 8) == pytest.approx(4959, rel=0.001)
    assert v3(144, 96, 8, query=2) * 1.8 == pytest.approx(4463, rel=0.001)


def test_leaving_out_doubles_lifts_the_wire():
    assert v3(64, 128, 8, dispatch="node") == pytest.approx(6076, rel=0.001)
    assert v3(64, 400, 8) < v3(64, 400, 8, dispatch="node")


@pytest.mark.parametrize(
    ("shape", "batch", "context", "milliseconds"),
    [(LLAMA8, 1, 1024, 3.52), (QWEN30, 1, 1024, 1.43), (QWEN30, 64, 2048, 16.8)],
)
def test_floors_of_a_decode_step_in_bf16(shape, batch, context, milliseconds):
    step = decode_step(shape, Cluster.of(H200), batch=batch, context=context)
    assert step.seconds * 1e3 == pytest.approx(milliseconds, rel=0.01)


def test_the_floor_of_a_small_model():
    """0.6B, 256 sequences of 1,024 tokens."""
    step = decode_step(shape_named("qwen3-0.6b"), Cluster.of(H200), batch=256, context=1024)
    assert step.seconds == pytest.approx(7.27e-3, rel=0.03)


@pytest.mark.parametrize(
    ("shape", "precision", "rate"),
    [(LLAMA8, "bf16", 56.6e3), (QWEN30, "bf16", 145e3), (V3, "fp8", 21.8e3)],
)
def test_ceilings_of_prefill(shape, precision, rate):
    assert roof(shape, H200, precision) == pytest.approx(rate, rel=0.005)


def test_prefill_reaches_its_ceiling_where_prompts_are_short_and_many():
    one = Cluster.of(H200)
    rate = prefill_rate(LLAMA8, one, prompt=128, prompts=64)
    assert 0.97 * roof(LLAMA8, H200, "bf16") < rate < roof(LLAMA8, H200, "bf16")


def test_prefill_by_hand():
    """Two layers, operations alone: 10 tokens."""
    shape = ModelShape("tiny", 2, 64, 100, Gqa(4, 2, 16), 2, 128)
    fast = replace(H200, bandwidth=replace(H200.bandwidth, value=1e30))
    each = 64 * 16 * 2 * (4 + 2) + 3 * 64 * 128
    attention = 2 * 4 * 32 * 55
    flops = 2 * 10 * 2 * each + 2 * attention + 2 * 64 * 100
    got = prefill_seconds(shape, Cluster.of(fast), prompt=10)
    assert got == pytest.approx(flops / 790e12)


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("deepseek-v3", 671),
        ("kimi-k2", 1026),
        ("deepseek-v2-lite", 15.7),
        ("qwen3-235b-a22b", 235),
        ("qwen3-30b-a3b", 30.5),
        ("qwen3-8b", 8.19),
        ("qwen3-0.6b", 0.596),
        ("gpt-oss-120b", 116.8),
        ("gpt-oss-20b", 20.9),
        ("mixtral-8x7b", 46.7),
        ("llama-3.3-70b", 70.6),
        ("llama-3.1-8b", 8.03),
        ("gemma-3-27b", 27.0),
    ],
)
def test_parameters_are_those_published(name, billions):
    assert parameters(shape_named(name)).total == pytest.approx(billions * 1e9, rel=0.003)
    assert {shape.name for shape in SHAPES} >= {name}


def test_weights_of_a_rank_by_hand():
    """DEP_8 of V3 in fp8: attention, dense and shared whole, 32 of 256 experts, head in bf16."""
    attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    linear = 61 * attention + 3 * 3 * 7168 * 18432 + 58 * 3 * 7168 * 2048
    experts = 58 * 32 * 3 * 7168 * 2048
    rest = 2 * (58 * 7168 * 256 + 2 * 7168 * 129280)
    assert weight_bytes(V3, "fp8", Layout(1, 8)) == linear + experts + rest


def test_mxfp4_is_four_and_a_quarter_bits_of_the_experts():
    shape = shape_named("gpt-oss-120b")
    experts = 36 * 128 * 3 * 2880 * 2880
    rest = parameters(shape).total - experts
    assert weight_bytes(shape, "mxfp4") == pytest.approx(experts * 4.25 / 8 + rest * 2)


def test_windowed_layers_keep_what_they_see():
    shape = shape_named("gpt-oss-120b")
    assert shape.seen(100) == 3600
    assert shape.seen(1000) == 18 * 1000 + 18 * 128
    assert sequence_bytes(shape, "bf16", 1000) == shape.seen(1000) * 2 * 8 * 64 * 2


def test_room_by_hand():
    assert [kv_room(100, 40, 25), kv_room(100, 80, 25), kv_room(100, 180, 25)] == [2, 0, 0]


# --- layouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "name", "gpus"),
    [
        (ONE, "TP_1", 1),
        (Layout(8), "TP_8", 8),
        (Layout(1, 64), "DEP_64", 64),
        (Layout(2, 4), "TP_2 x DEP_4", 8),
    ],
)
def test_names_of_layouts(layout, name, gpus):
    assert (layout.name, layout.gpus) == (name, gpus)
    assert Layout.named(name) == Layout.named(name.replace("_", "").lower()) == layout


@pytest.mark.parametrize(
    "text", ["", "x", "EP_8", "TP_", "TP_2 x", "x DEP_2", "TP_2 DEP_2", "DEP_0"]
)
def test_other_names_are_refused(text):
    with pytest.raises(ConfigError, match="layout"):
        Layout.named(text)


# --- laws ----------------------------------------------------------------------------------------

layouts = st.builds(Layout, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8, 16]))
gpus = st.sampled_from(GPUS)
precisions = st.sampled_from(["bf16", "fp8", "mxfp4"])
attentions = st.one_of(
    st.builds(
        Gqa, st.sampled_from([8, 16, 64]), st.sampled_from([1, 2, 8]), st.sampled_from([64, 128])
    ),
    st.builds(
        Mla,
        st.sampled_from([16, 128]),
        st.just(512),
        st.just(64),
        st.just(128),
        st.just(128),
        st.sampled_from([0, 1536]),
    ),
)


@st.composite
def shapes(draw):
    layers = draw(st.integers(1, 80))
    moe = draw(
        st.none()
        | st.builds(
            Moe,
            st.sampled_from([16, 64, 256]),
            st.integers(1, 8),
            st.sampled_from([512, 2048]),
            st.sampled_from([0, 2048]),
        )
    )
    dense = layers if moe is None else draw(st.integers(0, layers - 1))
    windowed = draw(st.integers(0, layers))
    return ModelShape(
        "random",
        layers,
        draw(st.sampled_from([512, 4096, 7168])),
        draw(st.sampled_from([1000, 150_000])),
        draw(attentions),
        dense,
        8192,
        moe,
        window=128 if windowed else 0,
        window_layers=windowed,
        tied=draw(st.booleans()),
    )


machines = st.builds(Cluster, gpus, st.sampled_from([1, 8, 72]), st.floats(1e9, 1e11))
asked = {"batch": st.integers(1, 2000), "context": st.integers(1, 100_000)}


def dispatched():
    return st.sampled_from(["pair", "rank", "node"])


@settings(max_examples=150, deadline=None)
@given(shapes(), machines, layouts, precisions, dispatched(), st.data())
def test_a_faster_machine_is_never_slower(shape, cluster, layout, precision, dispatch, data):
    chosen = {name: data.draw(strategy) for name, strategy in asked.items()}
    chosen |= {"precision": precision, "dispatch": dispatch}
    before = decode_step(shape, cluster, layout, **chosen).seconds
    gpu = cluster.gpu
    twice = replace(gpu.bandwidth, value=2 * gpu.bandwidth.value)
    for faster in (
        replace(cluster, nic=2 * cluster.nic),
        replace(cluster, gpu=replace(gpu, bandwidth=twice)),
        replace(cluster, gpu=replace(gpu, nvlink=2 * gpu.nvlink)),
        replace(cluster, gpu=replace(gpu, bf16=replace(gpu.bf16, value=2 * gpu.bf16.value))),
    ):
        assert decode_step(shape, faster, layout, **chosen).seconds <= before * (1 + 1e-12)


@settings(max_examples=150, deadline=None)
@given(shapes(), machines, layouts, precisions, dispatched(), st.data())
def test_a_larger_batch_takes_longer_and_wastes_less(
    shape, cluster, layout, precision, dispatch, data
):
    """What the search for the best batch rests on."""
    chosen = {name: data.draw(strategy) for name, strategy in asked.items()}
    batch = chosen.pop("batch")
    chosen |= {"precision": precision, "dispatch": dispatch}
    one = decode_step(shape, cluster, layout, batch=batch, **chosen).seconds
    more = decode_step(shape, cluster, layout, batch=batch + 7, **chosen).seconds
    assert more >= one * (1 - 1e-12)
    assert (batch + 7) / more >= batch / one * (1 - 1e-9)


@settings(max_examples=150, deadline=None)
@given(shapes(), machines, layouts, precisions, st.data())
def test_no_step_beats_the_roof(shape, cluster, layout, precision, data):
    chosen = {name: data.draw(strategy) for name, strategy in asked.items()}
    step = decode_step(shape, cluster, layout, precision=precision, **chosen)
    rate = chosen["batch"] / layout.tensor / step.seconds
    assert rate <= roof(shape, cluster.gpu, precision) * (1 + 1e-9)
    kv = sequence_bytes(shape, "bf16", chosen["context"])
    assert rate <= cluster.gpu.bandwidth.value / kv * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(shapes(), machines, layouts, precisions, st.integers(1, 20_000), st.integers(1, 8))
def test_no_prompt_beats_the_roof(shape, cluster, layout, precision, prompt, prompts):
    rate = prefill_rate(shape, cluster, layout, prompt=prompt, prompts=prompts, precision=precision)
    assert 0 < rate <= roof(shape, cluster.gpu, precision) * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(shapes(), layouts, precisions)
def test_ranks_together_hold_at_least_the_model(shape, layout, precision):
    whole = weight_bytes(shape, precision)
    one = weight_bytes(shape, precision, layout)
    assert one <= whole * (1 + 1e-12)
    assert one * layout.gpus >= whole * (1 - 1e-12)
    assert active_parameters(shape) <= parameters(shape).total
