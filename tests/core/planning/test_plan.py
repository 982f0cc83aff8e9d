"""Plans: what fits, the best batch, refusals, the pick, the pools; by hand and against search."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.cost.gpus import GPUS, Cluster, gpu_named
from tokenwire.core.cost.known_shapes import SHAPES, shape_named
from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.roof import roof
from tokenwire.core.cost.weights import sequence_bytes, weight_bytes
from tokenwire.core.errors import ConfigError
from tokenwire.core.planning.fit import candidates, room, smallest
from tokenwire.core.planning.plan import make_plan
from tokenwire.core.planning.points import best_point, frontier, point_at
from tokenwire.core.planning.pools import balanced
from tokenwire.core.planning.report import report
from tokenwire.core.planning.request import PlanRequest, Pool, seconds_of
from tokenwire.core.planning.summary import summary_of
from tokenwire.core.planning.verdicts import KEPT_SHARE

H200 = gpu_named("h200")
V3 = shape_named("deepseek-v3")


def asked(shape=V3, gpus=64, tpot=0.05, *, gpu=H200, domain=None, nic=None, price=None, **more):
    """A request; the same GPUs for both pools."""
    pool = Pool(Cluster.of(gpu, domain=domain, nic=nic), price)
    given = {
        "input": 4096,
        "output": 1024,
        "context": 4608,
        "precision": shape.precision,
        "kv_dtype": "fp8",
    }
    return PlanRequest(shape, pool, pool, gpus, tpot, **(given | more))


# --- what fits -----------------------------------------------------------------------------------


def test_candidates_are_powers_of_two_with_whole_heads_and_experts():
    names = [each.name for each in candidates(V3, 16, 8)]
    assert names == [
        "TP_1", "TP_2", "TP_4", "TP_8", "DEP_2", "DEP_4", "DEP_8", "DEP_16",
        "TP_2 x DEP_2", "TP_2 x DEP_4", "TP_2 x DEP_8", "TP_4 x DEP_2", "TP_4 x DEP_4",
        "TP_8 x DEP_2",
    ]  # fmt: skip
    assert [each.name for each in candidates(shape_named("llama-3.1-8b"), 12, 72)] == [
        "TP_1", "TP_2", "TP_4", "TP_8",
    ]  # fmt: skip
    assert Layout(1, 256) not in candidates(shape_named("kimi-k2"), 256, 8)


def test_room_by_hand():
    request = asked()
    free = 0.88 * 141e9 - weight_bytes(V3, "fp8", Layout(1, 8))
    assert room(request, Layout(1, 8)) == int(free / (61 * 656 * 4608)) == 126


def test_the_fewest_gpus():
    assert smallest(asked(gpus=1)).gpus == 8
    assert smallest(asked(gpus=1, precision="bf16")).gpus == 16
    assert smallest(asked(shape_named("llama-3.1-8b"))) == Layout(1)
    # A dense model is cut within a domain alone.
    assert smallest(asked(shape_named("llama-3.3-70b"), domain=1, gpu=gpu_named("a100"))) is None


def test_a_table_of_memory_is_not_one_of_time():
    """The roofline's 128 sequences a GPU over 8 GPUs take more memory than there is, with KV in
    bf16: the planner says less."""
    request = asked(gpus=8, context=4989, kv_dtype="bf16", fraction=1.0)
    assert room(request, Layout(1, 8)) == 114


# --- the best batch ------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [Layout(1, 8), Layout(1, 64), Layout(8), Layout(4, 4)])
@pytest.mark.parametrize("tpot", [0.01, 0.02, 0.05])
def test_the_best_batch_is_the_best_of_all(layout, tpot):
    request = asked(tpot=tpot)
    every = [point_at(request, layout, size) for size in range(1, room(request, layout) + 1)]
    kept = [point for point in every if point.step.seconds <= tpot]
    best = best_point(request, layout)
    if not kept:
        assert best is None
        return
    most = max(kept, key=lambda each: each.per_gpu)
    same = [each for each in kept if each.per_gpu >= most.per_gpu * (1 - 1e-9)]
    assert best.batch == same[0].batch
    assert (best.limit == "memory") == (best.batch == len(every))


def test_where_the_link_is_the_limit_users_get_what_a_smaller_batch_spares():
    best = best_point(asked(), Layout(1, 64))
    assert (best.limit, best.batch) == ("link", 64)
    longer = point_at(asked(), Layout(1, 64), 200)
    assert longer.per_gpu == pytest.approx(best.per_gpu)
    assert longer.per_user < best.per_user / 3


def test_efficiency_stretches_the_step():
    one, half = asked(), asked(efficiency=0.5)
    layout = Layout(1, 64)
    assert point_at(half, layout, 64).per_user == point_at(one, layout, 64).per_user / 2
    # What half as fast an engine gives within 50 ms is what this one gives within 25, halved.
    twice = best_point(asked(tpot=0.025), layout)
    assert best_point(half, layout).batch == twice.batch


def test_the_curve_leaves_out_what_is_beaten():
    points = [point_at(asked(), Layout(1, 64), size) for size in (1, 8, 64)]
    worse = [replace(point, per_gpu=point.per_gpu / 2) for point in points]
    assert frontier([*worse, *points]) == tuple(points)


# --- refusals ------------------------------------------------------------------------------------


def test_wide_expert_parallelism_over_a_slow_network_is_refused():
    plan = make_plan(asked(nic=12.5e9))
    refused = {each.layout.name: each for each in plan.verdicts if each.refused}
    assert {"DEP_16", "DEP_32", "DEP_64"} <= set(refused)
    said = refused["DEP_64"].refused
    assert said == (
        "its exchange over 12.5 GB/s caps a GPU at 1,240 tokens/s from a batch of 9 on; "
        "DEP_8 gives 3,511, TP_2 x DEP_4 2,816"
    )
    assert refused["DEP_64"].instead == Layout(1, 8)
    assert plan.pick.layout == Layout(1, 8)
    assert not {point.layout for point in plan.curve} & {each.layout for each in refused.values()}


def test_a_network_that_breaks_the_promise_alone_is_refused():
    plan = make_plan(asked(nic=1e8))
    (wide,) = (each for each in plan.verdicts if each.layout == Layout(1, 64))
    assert wide.best is None
    assert "takes 100.8 ms at a batch of 1; DEP_8 gives 3,511" in wide.refused


def test_where_users_come_first_a_layout_is_judged_at_its_own_speed():
    """Over 12.5 GB/s, wide expert parallelism is still the best for those who want 138 tokens/s."""
    plan = make_plan(asked(nic=12.5e9, objective="user"))
    refused = {each.layout for each in plan.verdicts if each.refused}
    assert Layout(1, 64) not in refused
    assert Layout(1, 16) in refused


def test_nothing_is_refused_over_a_fast_one():
    plan = make_plan(asked(domain=64))
    assert not [each for each in plan.verdicts if each.refused]
    assert plan.pick.layout.gpus > 8


def test_what_nothing_beats_is_not_refused():
    """In bf16 no single domain holds the model: the network is the limit, and there is no other."""
    plan = make_plan(asked(precision="bf16", nic=5e9))
    usable = [each for each in plan.verdicts if each.best and not each.refused]
    assert usable
    assert all(each.layout.gpus > 8 for each in usable)


def test_the_limits_are_named():
    plan = make_plan(asked())
    limits = {each.layout.name: each.best.limit for each in plan.verdicts if each.best}
    assert limits["DEP_8"] == "memory"
    assert limits["DEP_64"] == "link"
    few = make_plan(asked(shape_named("qwen3-8b"), gpus=1, tpot=0.02))
    assert few.pick.limit == "bandwidth"
    many = make_plan(asked(domain=64, tpot=0.05, context=100, input=50, output=50))
    assert many.pick.limit == "compute"


# --- the pick ------------------------------------------------------------------------------------


def test_throughput_takes_the_most_tokens_of_all():
    plan = make_plan(asked())
    usable = [each.best.per_gpu for each in plan.verdicts if each.best and not each.refused]
    assert plan.pick.per_gpu == max(usable)
    assert plan.pick in plan.curve


def test_user_takes_the_fastest_that_keeps_half():
    most, fast = make_plan(asked()).pick, make_plan(asked(objective="user")).pick
    assert fast.per_user > most.per_user
    assert fast.per_gpu >= KEPT_SHARE * most.per_gpu


def test_gpus_that_no_group_takes_count_as_idle():
    """12 GPUs hold one group of 8: a layout of 4 that is a little slower a GPU may give more."""
    shape = shape_named("qwen3-235b-a22b")
    plan = make_plan(asked(shape, gpus=12, precision="fp8"))
    used = 12 // plan.pick.layout.gpus * plan.pick.layout.gpus
    best = max(
        each.best.per_gpu * (12 // each.layout.gpus * each.layout.gpus)
        for each in plan.verdicts
        if each.best and not each.refused
    )
    assert plan.pick.per_gpu * used == best


def test_nothing_keeps_an_impossible_promise():
    plan = make_plan(asked(tpot=1e-6))
    assert plan.fits
    assert (plan.pick, plan.curve, plan.pools) == (None, (), None)


# --- pools ---------------------------------------------------------------------------------------


def test_balance_by_hand():
    """One of each pool's figures doubled moves the ratio in proportion."""
    request = asked()
    decode = make_plan(request).pick
    pools = balanced(request, decode)
    prompts, answers = pools.prefill_per_gpu / 4096, decode.per_gpu / 1024
    assert pools.decode_per_prefill == pytest.approx(prompts / answers)
    prefill = 64 / (1 + pools.decode_per_prefill)
    assert pools.requests_balanced == pytest.approx(prefill * prompts)
    assert pools.requests_balanced == pytest.approx((64 - prefill) * answers)
    assert pools.requests_even == pytest.approx(32 * min(prompts, answers))
    fed = pools.prefill_groups_beside * pools.prefill_layout.gpus * prompts
    assert fed >= 64 * answers > fed - pools.prefill_layout.gpus * prompts
    longer = balanced(replace(request, output=2048), decode)
    assert longer.decode_per_prefill == pytest.approx(2 * pools.decode_per_prefill)


def test_whole_groups_against_every_division():
    request = asked(nic=12.5e9, output=512)
    decode = make_plan(request).pick
    pools = balanced(request, decode)
    sizes = pools.prefill_layout.gpus, decode.layout.gpus
    prompts, answers = pools.prefill_per_gpu / request.input, decode.per_gpu / request.output
    every = [
        min(first * sizes[0] * prompts, second * sizes[1] * answers)
        for first, second in itertools.product(range(1, 65), repeat=2)
        if first * sizes[0] + second * sizes[1] <= 64
    ]
    assert pools.split.requests_per_s == pytest.approx(max(every))
    assert pools.split.requests_per_s <= pools.requests_balanced * (1 + 1e-9)


def test_short_prompts_go_together_and_cut_kv_goes_over_every_card():
    request = asked(shape_named("llama-3.3-70b"), gpus=8, kv_dtype="bf16", input=16, output=16)
    pools = make_plan(request).pools
    assert pools.prefill_per_gpu > 0.8 * roof(request.shape, H200, "bf16")
    assert pools.prefill_layout == Layout(2)
    assert pools.kv_bytes == 80 * 4096 * 16
    assert pools.kv_seconds == pytest.approx(pools.kv_bytes / 2 / 50e9)


def test_no_division_of_too_few_gpus():
    assert make_plan(asked(gpus=8)).pools.split is None


def test_costs_by_hand():
    """3.6 an hour and 1,000 tokens/s are 3.6 for 3.6 million."""
    request = asked(price=3.6)
    decode = replace(make_plan(request).pick, per_gpu=1000.0)
    costs = balanced(request, decode).costs
    assert costs.output == pytest.approx(1.0)
    assert costs.input == pytest.approx(1000 / balanced(request, decode).prefill_per_gpu)
    assert costs.blended == pytest.approx((costs.input * 4 + costs.output) / 5)
    assert make_plan(asked()).pools.costs is None


def test_another_kind_for_prefill():
    request = asked()
    slow = Pool(Cluster.of(gpu_named("h20")), 1.0)
    other = make_plan(replace(request, prefill=slow)).pools
    assert other.prefill_per_gpu < make_plan(request).pools.prefill_per_gpu
    tiny = Pool(Cluster.of(replace(H200, memory=1e9)), 1.0)
    assert make_plan(replace(request, prefill=tiny)).pools is None


# --- refused in words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"gpus": 0}, "gpus: wanted at least 1, got 0"),
        ({"gpus": 10**9}, "gpus: wanted at most 100000"),
        ({"tpot": 0.0}, "tpot: wanted a time above 0"),
        ({"tpot": float("nan")}, "tpot: wanted a time above 0"),
        ({"output": -1}, "output: wanted at least 1, got -1"),
        ({"fraction": 1.5}, "fraction: wanted above 0 up to 1, got 1.5"),
        ({"efficiency": 0.0}, "efficiency: wanted above 0 up to 1"),
        ({"context": 200_000}, "deepseek-v3 takes 163840 tokens, and .* is 200000"),
        ({"input": 163_840}, "deepseek-v3 takes 163840 tokens, and .* is 164864"),
        ({"price": -1.0}, "price: wanted more than 0 an hour"),
    ],
)
def test_impossible_requests(more, message):
    with pytest.raises(ConfigError, match=message):
        asked(**more)


@pytest.mark.parametrize(
    ("text", "seconds"), [("50ms", 0.05), ("0.05s", 0.05), (" .5 ms ", 0.0005)]
)
def test_times(text, seconds):
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "50", "ms", "-1ms", "1h", "nan s", "1e3ms"])
def test_other_times_are_refused(text):
    with pytest.raises(ConfigError, match="tpot: wanted a time as 50ms or"):
        seconds_of(text)


# --- what is written -----------------------------------------------------------------------------


def test_docs_show_what_is_printed():
    page = (Path(__file__).parents[3] / "docs" / "planning.md").read_text()
    for line in report(summary_of(make_plan(asked(nic=12.5e9, price=3.5)))):
        assert not line or f"    {line}\n" in page, f"docs/planning.md lacks: {line}"


# --- laws ----------------------------------------------------------------------------------------

requests = st.builds(
    asked,
    st.sampled_from(SHAPES),
    st.integers(1, 200),
    st.sampled_from([0.002, 0.02, 0.1]),
    gpu=st.sampled_from(GPUS),
    domain=st.none() | st.sampled_from([1, 4, 72]),
    nic=st.none() | st.floats(1e9, 1e11),
    precision=st.sampled_from(["bf16", "fp8"]),
    kv_dtype=st.sampled_from(["bf16", "fp8"]),
    objective=st.sampled_from(["throughput", "user"]),
    dispatch=st.sampled_from(["pair", "rank", "node"]),
)


@settings(max_examples=60, deadline=None)
@given(requests)
def test_plans_keep_their_word(request):
    """Memory, promise, roof, GPUs; the pick is one of the usable."""
    plan = make_plan(request)
    gpu, shape = request.decode.cluster.gpu, request.shape
    for verdict in plan.verdicts:
        assert verdict.instances * verdict.layout.gpus <= request.gpus
        if (best := verdict.best) is None:
            continue
        kv = sequence_bytes(shape, request.kv_dtype, request.context, verdict.layout)
        assert verdict.weights + best.batch * kv <= gpu.memory * request.fraction
        assert best.step.seconds <= request.tpot * (1 + 1e-9)
        assert best.per_gpu <= roof(shape, gpu, request.precision) * (1 + 1e-9)
    if plan.pick is not None:
        (own,) = (each for each in plan.verdicts if each.layout == plan.pick.layout)
        assert not own.refused
        assert plan.pick.batch <= own.best.batch
    users = [point.per_user for point in plan.curve]
    assert users == sorted(users, reverse=True)
    assert summary_of(plan).fits == plan.fits
    assert next(iter(report(summary_of(plan)))).startswith(shape.name)


@settings(max_examples=40, deadline=None)
@given(requests, st.integers(1, 200))
def test_more_gpus_never_fit_less(request, more):
    few, many = request, replace(request, gpus=request.gpus + more)
    assert set(candidates(few.shape, few.gpus, 8)) <= set(candidates(few.shape, many.gpus, 8))
    assert make_plan(many).fits or not make_plan(few).fits
    assert smallest(few) == smallest(many)


@settings(max_examples=40, deadline=None)
@given(requests)
def test_the_fewest_gpus_are_the_fewest(request):
    found = smallest(request)
    assume(found is not None)
    assert make_plan(replace(request, gpus=found.gpus)).fits
    if found.gpus > 1:
        assert not make_plan(replace(request, gpus=found.gpus - 1)).fits


@settings(max_examples=40, deadline=None)
@given(requests)
def test_a_longer_wait_never_gives_less(request):
    request = replace(request, objective="throughput")
    for layout in candidates(request.shape, request.gpus, request.decode.cluster.domain):
        before = best_point(request, layout)
        after = best_point(replace(request, tpot=2 * request.tpot), layout)
        assert before is None or after.per_gpu >= before.per_gpu * (1 - 1e-9)
