"""Over ranks too: with determinism asked for, no company changes a request's bits."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.plugins.engines.cuda.load.checkpoints import tiny  # noqa: E402
from tests.plugins.engines.cuda.models.test_deepseek import make as make_latent  # noqa: E402
from tests.plugins.engines.cuda.models.test_gpt_oss import make  # noqa: E402
from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.parallel.steady import (  # noqa: E402
    logits_cut_up,
    serve_steady,
    sums,
)
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.panels import plain_reason  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(bool(plain_reason(Signature())), reason=plain_reason(Signature())),
]

MOE = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
    "head_dim": 8,
}


def test_sums_of_rows_do_not_hang_on_their_number() -> None:
    assert run_ranks("TP_4", sums) == [True] * 4


@pytest.mark.parametrize(("kind", "layout"), [("Llama", "TP_4"), ("Qwen3Moe", "TP_3")])
def test_a_sliced_network_keeps_its_bits(kind: str, layout: str, tmp_path) -> None:
    changes = MOE if kind == "Qwen3Moe" else {}
    if layout == "TP_3":
        changes = {**changes, "num_attention_heads": 6, "num_key_value_heads": 3}
    tiny(tmp_path, kind, **changes)
    holds(run_ranks(layout, logits_cut_up, str(tmp_path)))


def test_sliced_sinks_and_biases_are_those_of_the_whole(tmp_path) -> None:
    """gpt-oss on four slices: sinks cut by heads, experts' last biases added once."""
    network = make(tmp_path, sinks=2.0)
    found = run_ranks("TP_4", logits_cut_up, str(tmp_path))
    holds(found)
    draw = random.Random(0)
    ids = [draw.randrange(3, 90) for _ in range(29)]
    with torch.no_grad():
        wanted = network(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(found[0][0], wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("layout", ["TP_2", "TP_4"])
def test_sliced_latents_keep_their_bits(layout: str, tmp_path) -> None:
    make_latent("v3", tmp_path)
    holds(run_ranks(layout, logits_cut_up, str(tmp_path)))


@pytest.mark.parametrize("redundant", [-1, 3])
def test_shared_experts_give_the_bits_of_one_rank_that_serves_a_prompt_alone(
    redundant: int, tmp_path
) -> None:
    """Three parts of different prompts, blank steps among them, replicas or none."""
    tiny(tmp_path, "Qwen3Moe", **MOE)
    draw = random.Random(1)
    prompts = [[draw.randrange(3, 90) for _ in range(size)] for size in (9, 2, 17, 5, 1, 12, 7)]
    alone = [serve_steady(SOLE, str(tmp_path), [prompt], -1)[0] for prompt in prompts]
    found = run_ranks("DEP_3", serve_steady, str(tmp_path), prompts, redundant)
    assert {which for each in found for which in each} == set(range(len(prompts)))
    for each in found:
        for which, (ids, logits) in each.items():
            common = min(len(ids), len(alone[which][0]))
            assert ids[:common] == alone[which][0][:common]
            rows = len(prompts[which]) + common - 1
            assert torch.equal(logits[:rows], alone[which][1][:rows])


def holds(found) -> None:
    for rank in found:
        for each in rank:
            assert torch.equal(each, found[0][0])
