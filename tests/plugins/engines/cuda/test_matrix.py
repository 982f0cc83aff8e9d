"""However the work is cut, shared, batched, interrupted, overlapped or drafted: the same tokens.

Each case runs the same jobs in one way of the matrix; what it must give comes from the plainest
way, one job at a time without a cache, and that way is held against transformers elsewhere. All
KV memory is NaN before anything is written.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from msgspec.structs import replace

from tests.plugins.engines.cuda.driving import engine, job, poison, run, waves
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.tokens import JobSampling, TokenJob

pytestmark = pytest.mark.torch

SIZE = 4
LONG = [5, 17, 99, 42, 42, 7, 11, 12, 13, 99, 42, 42, 7, 3, 8, 9, 100, 101, 17, 99, 42]
SAMPLED = JobSampling(temperature=0.9, seed=7, top_p=0.9)


@cache
def windowed() -> Path:
    """A tiny Gemma 3: two of three layers see six tokens."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.Gemma3TextConfig(
        vocab_size=160,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        sliding_window=6,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        initializer_range=0.5,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=2,
    )
    folder = Path(mkdtemp(prefix="tokenwire-window-"))
    transformers.Gemma3ForCausalLM(config).save_pretrained(folder)
    return folder


@cache
def mixed() -> Path:
    """A tiny Qwen3-MoE: two of three layers have six experts, of which a token takes two."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(2)
    config = transformers.Qwen3MoeConfig(
        vocab_size=160,
        hidden_size=32,
        intermediate_size=48,
        moe_intermediate_size=24,
        num_hidden_layers=3,
        mlp_only_layers=[1],
        num_experts=6,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        initializer_range=0.5,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=2,
    )
    folder = Path(mkdtemp(prefix="tokenwire-mixed-"))
    transformers.Qwen3MoeForCausalLM(config).save_pretrained(folder)
    return folder


@cache
def sunk() -> Path:
    """A tiny gpt-oss: sinks in every head, two of three layers see six tokens, four experts."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.GptOssConfig(
        vocab_size=160,
        hidden_size=32,
        intermediate_size=24,
        num_hidden_layers=3,
        num_local_experts=4,
        num_experts_per_tok=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        sliding_window=6,
        initializer_range=0.5,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=2,
    )
    network = transformers.GptOssForCausalLM(config)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(("sinks", "bias")):
                parameter.normal_(0, 0.5)
    folder = Path(mkdtemp(prefix="tokenwire-sunk-"))
    network.save_pretrained(folder)
    return folder


@cache
def latent() -> Path:
    """A tiny DeepSeek-V3: 24 + 8 numbers of a token in the cache, and two of three layers have
    eight experts in four groups beside one that every token takes."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(4)
    config = transformers.DeepseekV3Config(
        vocab_size=160,
        hidden_size=32,
        intermediate_size=48,
        moe_intermediate_size=24,
        num_hidden_layers=3,
        first_k_dense_replace=1,
        n_routed_experts=8,
        n_shared_experts=1,
        num_experts_per_tok=3,
        n_group=4,
        topk_group=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=16,
        kv_lora_rank=24,
        qk_nope_head_dim=12,
        qk_rope_head_dim=8,
        v_head_dim=12,
        max_position_embeddings=128,
        initializer_range=0.5,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=2,
    )
    network = transformers.DeepseekV3ForCausalLM(config)
    with torch.no_grad():
        for name, values in network.named_buffers():
            if name.endswith("e_score_correction_bias"):
                values.normal_(0, 0.3)
    folder = Path(mkdtemp(prefix="tokenwire-latent-"))
    network.save_pretrained(folder)
    return folder


MODELS = {
    "llama": tiny_llama,
    "gemma3": windowed,
    "qwen3_moe": mixed,
    "gpt_oss": sunk,
    "deepseek_v3": latent,
}


def jobs(prefix: str = "") -> list[TokenJob]:
    return [
        job(f"{prefix}long", LONG),
        job(f"{prefix}fork", [*LONG[:13], 50, 51, 52]),
        job(f"{prefix}short", [9], max_tokens=9),
        job(f"{prefix}sampled", LONG[:10], sampling=SAMPLED, n=2),
    ]


@cache
def expected(model: str) -> dict[tuple[str, int], tuple[int, ...]]:
    found = {}
    for each in jobs():
        made = engine(MODELS[model](), prefix_cache=False, max_batch_size=1)
        poison(made)
        found |= {key: tuple(answer.ids) for key, answer in run(made, each).items()}
    return found


def named(found, prefix: str = ""):
    return {
        (name.removeprefix(prefix), choice): tuple(answer.ids)
        for (name, choice), answer in found.items()
        if name.startswith(prefix)
    }


CHUNKS = (1, SIZE - 1, SIZE, 64)
OVERLAP = (False, True)
PADDED = (False, True)
DRAFTS = (False, True)
FEW = (
    ("qwen3_moe", 1, True, False, False),
    ("qwen3_moe", SIZE - 1, False, True, True),
    ("qwen3_moe", SIZE, True, True, False),
    ("qwen3_moe", 64, True, True, True),
    ("gpt_oss", 1, True, False, False),
    ("gpt_oss", SIZE - 1, False, True, True),
    ("gpt_oss", SIZE, True, True, False),
    ("gpt_oss", 64, True, True, True),
    ("deepseek_v3", 1, True, False, False),
    ("deepseek_v3", SIZE - 1, False, True, True),
    ("deepseek_v3", SIZE, True, True, False),
    ("deepseek_v3", 64, True, True, True),
)
"""What experts could differ in: how many tokens a step has, and rows that only fill it up; and
latents too, which few queries of many keys read as they are."""


@pytest.mark.parametrize(
    ("model", "chunk", "overlap", "padded", "drafts"),
    [*itertools.product(("llama", "gemma3"), CHUNKS, OVERLAP, PADDED, DRAFTS), *FEW],
)
def test_every_way_gives_the_same_tokens(
    model: str, chunk: int, overlap: bool, padded: bool, drafts: bool
) -> None:
    """Cold and mixed, then the same again (full hits), then other prompts that share a part."""
    speculation = {"tokens": 3, "longest": 3, "shortest": 1} if drafts else None
    made = engine(
        MODELS[model](),
        long_prefill_tokens=chunk,
        overlap=overlap,
        graphs=padded,
        speculation=speculation,
    )
    poison(made)
    partial = job("p:long", [*LONG, 60])
    found = waves(made, jobs("cold:"), jobs("hit:"), [partial, *jobs("again:")])
    wanted = expected(model)
    assert named(found, "cold:") == wanted
    assert named(found, "hit:") == wanted
    assert named(found, "again:") == wanted
    assert found["hit:long", 0].counts.cached == len(LONG) // SIZE * SIZE
    assert found["cold:long", 0].counts.cached == 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("overlap", OVERLAP)
@pytest.mark.parametrize("drafts", DRAFTS)
def test_preempted_sequences_give_the_same_tokens(model: str, overlap: bool, drafts: bool) -> None:
    """So few blocks, and so wrong a forecast, that they push each other out again and again."""
    speculation = {"tokens": 3, "longest": 3, "shortest": 1} if drafts else None
    made = engine(
        MODELS[model](),
        kv_gib=13 * SIZE * 3 * 2 * 2 * 8 * 4 / 2**30,
        max_model_len=40,
        overlap=overlap,
        speculation=speculation,
    )
    poison(made)
    many = [replace(each, expected_tokens=0) for index in range(4) for each in jobs(f"{index}:")]
    found = run(made, *many)
    assert made._worker._scheduler.status().preemptions > 0
    for index in range(4):
        assert named(found, f"{index}:") == expected(model)
    status = made._worker._scheduler.status()
    assert status.blocks_free + status.blocks_evictable == status.blocks_total
