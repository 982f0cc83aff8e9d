"""Eight ranks over a slowed link fall back to two groups of the mixed layout, and these answer as
one rank does. What other policies do: test_wide.py, and test_fallback.py of the front."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.plugins.engines.cuda.parallel.forked import Forked
from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobSampling, JobStopping, TokenJob
from tokenwire.plugins.engines.cuda.build import build
from tokenwire.plugins.engines.cuda.parallel.front.building import build_groups
from tokenwire.plugins.engines.cuda.settings import CudaSettings, Slo

pytestmark = pytest.mark.torch

BASE = {
    "device": "cpu",
    "max_batch_size": 4,
    "kv_gib": 0.001,
    "block_size": 4,
    "threads": 1,
    "grammar": "none",
    "overlap": False,
}
WIDE = {
    "parallel_strategy": "DEP_8",
    "wide_ep": "fallback",
    "domain": 4,
    "slow_link_gb_s": 1e-5,
    # Why: a promise that even a busy machine's links keep.
    "slo": Slo(user_tokens_per_s=0.01),
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3-MoE of random weights: 8 experts, of which a token takes 4."""
    import torch
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(7)
    folder = tmp_path_factory.mktemp("experts")
    Qwen3MoeForCausalLM(
        Qwen3MoeConfig(
            vocab_size=96,
            hidden_size=32,
            intermediate_size=48,
            moe_intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            num_experts=8,
            num_experts_per_tok=4,
            max_position_embeddings=128,
            initializer_range=0.4,
            tie_word_embeddings=False,
        )
    ).save_pretrained(folder)
    return folder


PROMPTS = [[5, 6, 7], [40, 41], [9], [80, 2, 3, 4, 11]]


async def answers(engine: Engine) -> list[list[int]]:
    """Greedy, all prompts at once; and the engine's end."""
    found: dict[str, list[int]] = {}
    engine.submit(
        [
            TokenJob(
                job=str(at),
                model="m",
                prompt=TokenIds(prompt),
                sampling=JobSampling(temperature=0),
                stopping=JobStopping(max_tokens=6, ignore_eos=True),
            )
            for at, prompt in enumerate(PROMPTS)
        ]
    )
    left = len(PROMPTS)
    async for batch in engine.batches():
        for delta in batch:
            found.setdefault(delta.job, []).extend(delta.ids)
            left -= delta.finish is not None
        if not left:
            break
    await engine.drain(0)
    return [found[str(at)] for at in range(len(PROMPTS))]


def test_the_mixed_layout_starts_and_answers_as_one_rank(
    checkpoint: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = BASE | {"path": str(checkpoint)}
    engine = build_groups(CudaSettings(**(base | WIDE)), lone_services(), launch=Forked)
    status = engine.status()
    assert status.ready
    assert status.about["layout"] == "TP_2 x DEP_2"
    assert status.about["instances_ready"] == 2
    assert str(status.about["fell_back"]).startswith("DEP_8 reaches beyond its domains of 4")
    assert "TP_2 x DEP_2 starts instead" in caplog.text
    alone = build(CudaSettings(**base), lone_services())
    assert asyncio.run(answers(engine)) == asyncio.run(answers(alone))
