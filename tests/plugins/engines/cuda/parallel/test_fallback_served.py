"""Eight ranks over a slowed link fall back to two groups of the mixed layout, and these answer as
one rank does; or are refused, or warned of, as the settings say."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.plugins.engines.cuda.parallel.forked import Forked
from tokenwire.core.errors import ConfigError
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
    "domain": 4,
    "slow_link_gb_s": 1e-6,
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


def wide(checkpoint: Path, **fields: object) -> CudaSettings:
    return CudaSettings(**(BASE | WIDE | {"path": str(checkpoint)} | fields))


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
    engine = build_groups(wide(checkpoint, wide_ep="fallback"), lone_services(), launch=Forked)
    status = engine.status()
    assert status.ready
    assert status.about["layout"] == "TP_2 x DEP_2"
    assert status.about["instances_ready"] == 2
    assert str(status.about["fell_back"]).startswith("DEP_8 reaches beyond its domains of 4")
    assert "TP_2 x DEP_2 starts instead" in caplog.text
    alone = build(CudaSettings(**(BASE | {"path": str(checkpoint)})), lone_services())
    assert asyncio.run(answers(engine)) == asyncio.run(answers(alone))


def test_it_is_refused_with_the_layout_to_take(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match="Set parallel_strategy TP_2 x DEP_2 and instance_count"):
        build_groups(wide(checkpoint), lone_services(), launch=Forked)


def test_a_warning_starts_it_all_the_same(checkpoint: Path) -> None:
    engine = build_groups(wide(checkpoint, wide_ep="warn"), lone_services(), launch=Forked)
    assert engine.status().about["layout"] == "DEP_8"
    assert "fell_back" not in engine.status().about
    asyncio.run(engine.drain(0))
