"""Mixtures of experts against formulas written out in another way: routing a row at a time, the
whole as a sum over all experts, whatever implementation serves."""

from __future__ import annotations

import itertools
import sys
from importlib import import_module
from types import ModuleType

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels import moe, panels  # noqa: E402
from tokenwire.kernels.fp8_grouped_matmul.reference import fp8_grouped_matmul  # noqa: E402
from tokenwire.kernels.fp8_matmul.reference import fp8_matmul  # noqa: E402
from tokenwire.kernels.grouped_matmul import cpu  # noqa: E402
from tokenwire.kernels.grouped_matmul.cases import offsets_of  # noqa: E402
from tokenwire.kernels.native import compiler_reason  # noqa: E402
from tokenwire.kernels.op import REFERENCE, Signature  # noqa: E402
from tokenwire.kernels.ops import Ops, all_ops  # noqa: E402

TOKENS, EXPERTS, TOP, HIDDEN, INNER = 13, 6, 3, 32, 16
COMPILES = not compiler_reason(moe.SOURCE) and not compiler_reason(panels.SOURCE)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(params=["reference", "chosen"])
def ops(request):
    """Every op's reference, and what an engine takes on a CPU."""
    named = {op.name: REFERENCE for op in all_ops()} if request.param == "reference" else {}
    return Ops.choose(Signature(), named, environ={})


# --- routing -------------------------------------------------------------------------------------


def ranked(values: list[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda place: (-values[place], place))


def route_row(row, top, sigmoid, renormalise, bias, groups, kept, group_top, scale):
    """By lists of floats: [(expert, weight)]."""
    wide = row.double()
    scores = (wide.sigmoid() if sigmoid else wide.softmax(-1)).tolist()
    rank = [score + added for score, added in zip(scores, bias, strict=True)]
    size = len(rank) // groups
    runs = [range(group * size, (group + 1) * size) for group in range(groups)]
    best = [sum(sorted((rank[e] for e in run), reverse=True)[:group_top]) for run in runs]
    open_ = {expert for group in ranked(best)[:kept] for expert in runs[group]}
    picked = [expert for expert in ranked(rank) if expert in open_][:top]
    total = sum(scores[expert] for expert in picked) if renormalise else 1.0
    return [(expert, scores[expert] / total * scale) for expert in picked]


@pytest.mark.parametrize("sigmoid", [False, True])
@pytest.mark.parametrize("renormalise", [False, True])
@pytest.mark.parametrize(("groups", "kept", "group_top"), [(1, 1, 2), (4, 2, 2), (4, 3, 1)])
@pytest.mark.parametrize("biased", [False, True])
def test_a_token_goes_to_its_best_experts(
    ops, sigmoid, renormalise, groups, kept, group_top, biased
):
    logits = torch.randn(9, 16) * 2
    bias = torch.randn(16) * 0.3 if biased else torch.zeros(16)
    options = {"groups": groups, "groups_kept": kept, "group_top": group_top, "scale": 2.5}
    weights, experts = ops.moe_route(
        logits,
        3,
        "sigmoid" if sigmoid else "softmax",
        renormalise,
        bias=bias if biased else None,
        **options,
    )
    assert (weights.dtype, experts.dtype) == (torch.float32, torch.int32)
    for row, logit in enumerate(logits):
        wanted = route_row(
            logit, 3, sigmoid, renormalise, bias.double().tolist(), groups, kept, group_top, 2.5
        )
        assert experts[row].tolist() == [expert for expert, _ in wanted]
        assert weights[row].tolist() == pytest.approx([weight for _, weight in wanted], rel=1e-5)


def test_the_lower_expert_wins_a_tie_and_what_is_no_number_comes_last(ops):
    logits = torch.zeros(3, 5)
    logits[1] = torch.tensor([1.0, 3.0, 3.0, 1.0, 3.0])
    logits[2, :4] = torch.nan
    _, experts = ops.moe_route(logits, 3, "sigmoid")
    assert experts.tolist() == [[0, 1, 2], [1, 2, 4], [4, 0, 1]]
    _, experts = ops.moe_route(torch.full((1, 5), torch.nan), 5)
    assert sorted(experts[0].tolist()) == [0, 1, 2, 3, 4]


def test_the_rule_of_deepseek_v3_is_transformers(ops):
    modeling = pytest.importorskip("transformers.models.deepseek_v3.modeling_deepseek_v3")
    config = import_module("transformers").DeepseekV3Config(
        hidden_size=16,
        n_routed_experts=32,
        num_experts_per_tok=6,
        n_group=8,
        topk_group=3,
        norm_topk_prob=True,
        routed_scaling_factor=2.5,
    )
    router = modeling.DeepseekV3TopkRouter(config)
    with torch.no_grad():
        router.weight.normal_(0, 0.4)
        router.e_score_correction_bias.uniform_(0, 0.3)
        logits, weights, experts = router(torch.randn(40, 16))
    found = ops.moe_route(
        logits,
        6,
        "sigmoid",
        bias=router.e_score_correction_bias,
        groups=8,
        groups_kept=3,
        scale=2.5,
    )
    order = experts.argsort(-1)
    mine = found[1].argsort(-1)
    assert torch.equal(found[1].long().gather(-1, mine), experts.gather(-1, order))
    torch.testing.assert_close(found[0].gather(-1, mine), weights.gather(-1, order))


# --- the whole -----------------------------------------------------------------------------------


def routings():
    """Name -> experts [TOKENS, TOP]."""
    even = torch.randn(TOKENS, EXPERTS).topk(TOP).indices
    return {
        "even": even,
        "skewed": torch.tensor([[1, 4, 3]] * (TOKENS - 1) + [[0, 4, 1]]),
        "one expert without tokens": torch.randn(TOKENS, EXPERTS - 1).topk(TOP).indices,
    }


def dense(x, w, experts, weights):
    """The sum over all experts, in float64."""
    every = torch.einsum("th,eih->tei", x.double(), w.double())
    shares = torch.zeros(x.shape[0], w.shape[0], dtype=torch.float64)
    shares.scatter_(1, experts.long(), weights.double())
    return torch.einsum("te,tei->ti", shares, every)


@pytest.mark.parametrize("routing", ["even", "skewed", "one expert without tokens"])
@pytest.mark.parametrize("way", ["contiguous", "masked", "panels"])
def test_sorted_rows_give_the_sum_over_all_experts(ops, routing, way):
    if way == "panels" and not COMPILES:
        pytest.skip("no C++ compiler")
    experts = routings()[routing].int()
    weights = torch.randn(TOKENS, TOP).softmax(-1)
    x, w = torch.randn(TOKENS, HIDDEN), torch.randn(EXPERTS, INNER, HIDDEN)
    wanted = dense(x, w, experts, weights)
    rows, offsets, inverse = ops.moe_permute(x, experts, EXPERTS)
    assert offsets.diff().tolist() == torch.bincount(experts.flatten(), minlength=6).tolist()
    assert torch.equal(rows[inverse.long()], x[:, None].expand(-1, TOP, -1))
    if way == "masked":
        room = torch.full((EXPERTS, TOKENS, HIDDEN), torch.nan)
        places = experts * TOKENS + inverse - offsets[experts.long()]
        room.view(-1, HIDDEN)[places.long().flatten()] = x.repeat_interleave(TOP, dim=0)
        y = torch.full((EXPERTS, TOKENS, INNER), 7.0)
        ops.grouped_matmul_masked(room, w, offsets.diff(), y)
        for expert, count in enumerate(offsets.diff().tolist()):
            assert bool((y[expert, count:] == 7.0).all())
        y, inverse = y.flatten(0, 1), places
    elif way == "panels":
        panels.pack(w.view(-1, HIDDEN))
        y = panels.grouped(rows, w, offsets)
    else:
        y = ops.grouped_matmul(rows, w, offsets)
    found = ops.moe_combine(y, inverse, weights)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)


def test_pairs_of_no_expert_add_nothing(ops):
    """As where a part of the experts is elsewhere."""
    experts = torch.randn(TOKENS, EXPERTS).topk(TOP).indices.int()
    weights = torch.rand(TOKENS, TOP)
    x, w = torch.randn(TOKENS, HIDDEN), torch.randn(EXPERTS, INNER, HIDDEN)
    total = torch.zeros(TOKENS, INNER)
    for first in (0, 2, 4):
        rows, offsets, inverse = ops.moe_permute(x, experts - first, 2)
        y = ops.grouped_matmul(rows, w[first : first + 2], offsets)
        assert int((inverse < 0).sum()) == experts.numel() - int(offsets[-1])
        total += ops.moe_combine(y, inverse, weights)
    wanted = dense(x, w, experts, weights)
    torch.testing.assert_close(total.double(), wanted, rtol=1e-5, atol=1e-5)


def test_a_tokens_bits_depend_on_no_order_of_its_experts(ops):
    rows, weights = torch.randn(40, 300) * 9, torch.rand(8, 5)
    inverse = torch.randperm(40).view(8, 5).int()
    whole = ops.moe_combine(rows, inverse, weights)
    for order in itertools.islice(itertools.permutations(range(5)), 0, 120, 17):
        turned = ops.moe_combine(rows, inverse[:, list(order)], weights[:, list(order)])
        assert torch.equal(turned, whole)
    assert torch.equal(ops.moe_combine(rows, inverse[3:4], weights[3:4]), whole[3:4])


def test_8_bit_experts_are_each_an_8_bit_layer():
    x = torch.randn(5, 300)
    w = torch.randn(3, 200, 300).to(torch.float8_e4m3fn)
    scales = torch.rand(3, 2, 3) + 0.5
    found = fp8_grouped_matmul(x, w, scales, offsets_of([2, 0, 3]))
    near = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(found[:2], fp8_matmul(x[:2], w[0], scales[0]), **near)
    torch.testing.assert_close(found[2:], fp8_matmul(x[2:], w[2], scales[2]), **near)


# --- on a CPU ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("has_instructions", [False, True])
def test_16_bit_products_are_exact_ones_rounded(dtype, has_instructions, monkeypatch):
    monkeypatch.setattr(cpu, "multiplies", lambda _: has_instructions)
    x, w = torch.randn(9, 40).to(dtype), torch.randn(3, 24, 40).to(dtype)
    offsets = offsets_of([2, 0, 7])
    exact = torch.cat((x[:2].double() @ w[0].double().T, x[2:].double() @ w[2].double().T))
    found = cpu.grouped_matmul(x, w, offsets)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact, atol=0.05, rtol=2 * torch.finfo(dtype).eps)


@pytest.mark.skipif(not COMPILES, reason="no C++ compiler")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_by_packed_experts_does_not_depend_on_the_others(dtype):
    x, w = torch.randn(20, 48).to(dtype), torch.randn(2, 32, 48).to(dtype)
    plain = w.clone()
    panels.pack(w.view(-1, 48))
    whole = panels.grouped(x, w, offsets_of([13, 7]))
    torch.testing.assert_close(
        whole.double(), cpu.grouped_matmul(x, plain, offsets_of([13, 7])).double(),
        rtol=2 * torch.finfo(dtype).eps, atol=1e-4,
    )  # fmt: skip
    assert torch.equal(panels.grouped(x[12:14], w, offsets_of([1, 1])), whole[12:14])
    with pytest.raises(ValueError, match="does not go with packed weights"):
        panels.grouped(x[:, :47], w, offsets_of([13, 7]))


# --- a vendor's ----------------------------------------------------------------------------------


def test_deep_gemm_is_called_as_it_documents(monkeypatch):
    """Played by a few lines of torch; what its kernels compute is proven on a GPU."""
    played = ModuleType("deep_gemm")

    def masked(a, b, d, masked_m, expected_m):
        assert masked_m.dtype == torch.int32
        assert 0 < expected_m <= a.shape[1]
        for expert, count in enumerate(masked_m.tolist()):
            d[expert, :count] = a[expert, :count] @ b[expert].T

    played.m_grouped_bf16_gemm_nt_masked = masked
    monkeypatch.setitem(sys.modules, "deep_gemm", played)
    module = import_module("tokenwire.kernels.grouped_matmul.deep_gemm")
    x, w = torch.randn(2, 4, 8), torch.randn(2, 6, 8)
    y, wanted = torch.ones(2, 4, 6), torch.ones(2, 4, 6)
    counts = torch.tensor([3, 0], dtype=torch.int32)
    module.grouped_matmul_masked(x, w, counts, y)
    cpu.grouped_matmul_masked(x, w, counts, wanted)
    torch.testing.assert_close(y, wanted)
    monkeypatch.delitem(sys.modules, "tokenwire.kernels.grouped_matmul.deep_gemm")
