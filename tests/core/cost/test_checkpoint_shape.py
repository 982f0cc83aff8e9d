"""Configs of every family become shapes: those of the known models, and what each fault is told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.cost.checkpoint_shape import FAMILIES, shape_of_config
from tokenwire.core.cost.known_shapes import shape_named
from tokenwire.core.cost.shape import Gqa, Mla
from tokenwire.core.cost.weights import parameters
from tokenwire.core.errors import ConfigError


def config(family, layers, hidden, vocabulary, heads, kv_heads, **more):
    return {
        "model_type": family,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "vocab_size": vocabulary,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        **more,
    }


MLA = {
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}

CONFIGS = {
    "llama-3.1-8b": config(
        "llama", 32, 4096, 128256, 32, 8, intermediate_size=14336, max_position_embeddings=131072
    ),
    "qwen3-0.6b": config(
        "qwen3", 28, 1024, 151936, 16, 8, intermediate_size=3072, head_dim=128,
        tie_word_embeddings=True, max_position_embeddings=40960, sliding_window=None,
        use_sliding_window=False, max_window_layers=28,
    ),
    "qwen3-30b-a3b": config(
        "qwen3_moe", 48, 2048, 151936, 32, 4, intermediate_size=6144, head_dim=128,
        moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, decoder_sparse_step=1,
        mlp_only_layers=[], max_position_embeddings=40960,
    ),
    "mixtral-8x7b": config(
        "mixtral", 32, 4096, 32000, 32, 8, intermediate_size=14336, num_local_experts=8,
        num_experts_per_tok=2, sliding_window=None, max_position_embeddings=32768,
    ),
    "deepseek-v3": config(
        "deepseek_v3", 61, 7168, 129280, 128, 128, intermediate_size=18432, q_lora_rank=1536,
        moe_intermediate_size=2048, n_routed_experts=256, num_experts_per_tok=8,
        n_shared_experts=1, first_k_dense_replace=3, moe_layer_freq=1,
        max_position_embeddings=163840, quantization_config={"quant_method": "fp8"}, **MLA,
    ),
    "deepseek-v2-lite": config(
        "deepseek_v2", 27, 2048, 102400, 16, 16, intermediate_size=10944, q_lora_rank=None,
        moe_intermediate_size=1408, n_routed_experts=64, num_experts_per_tok=6,
        n_shared_experts=2, first_k_dense_replace=1, max_position_embeddings=163840, **MLA,
    ),
    "gpt-oss-20b": config(
        "gpt_oss", 24, 2880, 201088, 64, 8, intermediate_size=2880, head_dim=64,
        num_local_experts=32, num_experts_per_tok=4, sliding_window=128,
        layer_types=["sliding_attention", "full_attention"] * 12,
        max_position_embeddings=131072, quantization_config={"quant_method": "mxfp4"},
    ),
    "gemma-3-27b": {
        "model_type": "gemma3",
        "text_config": config(
            "gemma3_text", 62, 5376, 262208, 32, 16, intermediate_size=21504, head_dim=128,
            sliding_window=1024, max_position_embeddings=131072,
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_published_configs_are_the_known_shapes(name):
    assert shape_of_config(CONFIGS[name], name) == shape_named(name)


def test_dense_layers_of_a_mixture():
    some = CONFIGS["qwen3-30b-a3b"] | {"decoder_sparse_step": 2, "mlp_only_layers": [1]}
    shape = shape_of_config(some)
    assert (shape.dense_layers, shape.dense_width) == (25, 6144)
    assert shape_of_config(CONFIGS["deepseek-v3"] | {"moe_layer_freq": 2}).dense_layers == 32


@pytest.mark.parametrize(
    ("changed", "layers"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 32),
        ({"model_type": "gemma2", "sliding_window": 4096}, 16),
        ({"model_type": "qwen2", "sliding_window": 4096, "max_window_layers": 20}, 0),
        (
            {
                "model_type": "qwen2",
                "sliding_window": 4096,
                "max_window_layers": 20,
                "use_sliding_window": True,
            },
            12,
        ),
        ({"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 4}, 24),
    ],
)
def test_windows(changed, layers):
    shape = shape_of_config(CONFIGS["llama-3.1-8b"] | changed)
    assert shape.window_layers == layers
    assert bool(shape.window) == bool(layers)


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        (
            "llama-3.1-8b",
            {"model_type": "mamba"},
            "model_type 'mamba' has no cost model; known are",
        ),
        ("llama-3.1-8b", {"hidden_size": None}, "lacks hidden_size; a config that leaves defaults"),
        ("llama-3.1-8b", {"hidden_size": "x"}, "hidden_size: wanted a whole number from 1, got x"),
        ("llama-3.1-8b", {"hidden_size": True}, "wanted a whole number from 1, got True"),
        ("llama-3.1-8b", {"num_hidden_layers": 0}, "wanted a whole number from 1, got 0"),
        ("llama-3.1-8b", {"num_key_value_heads": 5}, "32 heads cannot share 5 KV heads evenly"),
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, "a token cannot pick 9 of 8 experts"),
        (
            "llama-3.1-8b",
            {"quantization_config": {"quant_method": "awq"}},
            "quant_method 'awq' has no cost model",
        ),
    ],
)
def test_faults_are_told_with_the_file_and_the_key(name, changed, message):
    with pytest.raises(ConfigError, match=message) as told:
        shape_of_config(CONFIGS[name] | changed, "mine")
    assert str(told.value).startswith("mine: config.json")


values = st.none() | st.booleans() | st.integers(-2, 300) | st.text(max_size=3) | st.just([])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(CONFIGS)), st.data())
def test_any_config_gives_a_shape_or_a_sentence(name, data):
    found = dict(CONFIGS[name].get("text_config", CONFIGS[name]))
    for key in data.draw(st.lists(st.sampled_from(sorted(found)), max_size=3)):
        found[key] = data.draw(values)
    try:
        shape = shape_of_config(found)
    except ConfigError:
        return
    assert 0 <= shape.dense_layers <= shape.layers
    assert parameters(shape).total > 0


@pytest.mark.torch
@pytest.mark.parametrize("family", [each for each in FAMILIES if each not in ("kimi_k2", "gemma3")])
def test_weights_are_as_many_as_those_of_transformers(family):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    small = config(
        family, 4, 64, 320, 4, 2, intermediate_size=96, head_dim=16, tie_word_embeddings=False
    )
    if family in ("mixtral", "gpt_oss"):
        small |= {"num_local_experts": 8, "num_experts_per_tok": 2}
    if family == "qwen3_moe":
        small |= {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
        small |= {"mlp_only_layers": [2], "decoder_sparse_step": 1}
    if family.startswith("deepseek"):
        small |= {
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "n_shared_experts": 2,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
            "num_key_value_heads": 4,
            "q_lora_rank": 24,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 16,
            "v_head_dim": 16,
            "head_dim": None,
        }
    given = {
        key: value for key, value in small.items() if key != "model_type" and value is not None
    }
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(family, **given)
        )
    there = sum(
        each.numel()
        for name, each in model.named_parameters()
        if each.dim() > 1 and not name.endswith("bias")
    )
    shape = shape_of_config(small)
    assert there == parameters(replace(shape, tied=False)).total
    assert isinstance(shape.attention, Mla if family.startswith("deepseek") else Gqa)
