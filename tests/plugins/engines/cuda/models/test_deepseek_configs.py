"""What DeepSeek's configurations say, and those of models built alike; which cannot be."""

from __future__ import annotations

import pytest
from msgspec import structs

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.families import parse_config

KIMI = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "kimi_k2",
    "vocab_size": 163840,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "num_nextn_predict_layers": 0,
    "n_routed_experts": 384,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
    "routed_scaling_factor": 2.827,
    "norm_topk_prob": True,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-6,
    "rope_theta": 50000.0,
    "rope_scaling": {
        "type": "yarn",
        "factor": 32.0,
        "beta_fast": 1.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
    },
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "torch_dtype": "bfloat16",
}


def test_a_published_configuration_is_read() -> None:
    config = parse_config(KIMI)
    assert config.kv_widths() == config.kv_widths(8) == (576, 0)
    assert config.kv_shape(8) == (1, 576, 0)
    assert config.attention_scale == pytest.approx(192**-0.5 * 1.3465735902799727**2)
    rope = config.ropes[0]
    assert (rope.dim, rope.attention_factor, rope.factor) == (64, 1.0, 32.0)
    mixture = config.mixture
    assert mixture is not None
    assert (mixture.experts, mixture.shared, mixture.scale) == (384, 2048, 2.827)
    assert (mixture.scoring, mixture.bias, mixture.renormalise) == ("sigmoid", True, True)
    assert mixture.layers == tuple(range(1, 61))
    sparse = parse_config({**KIMI, "moe_layer_freq": 3}).mixture
    assert sparse is not None
    assert sparse.layers == tuple(range(3, 61, 3))
    assert parse_config({**KIMI, "n_routed_experts": None}).mixture is None


def test_v2_is_scaled_or_renormalised() -> None:
    """Not both, as in the published checkpoints' code."""
    fields = {
        **KIMI,
        "architectures": ["DeepseekV2ForCausalLM"],
        "topk_method": "group_limited_greedy",
        "scoring_func": "softmax",
        "norm_topk_prob": False,
    }
    scaled, whole = parse_config(fields).mixture, parse_config({**fields, "norm_topk_prob": True})
    assert scaled is not None
    assert whole.mixture is not None
    assert (scaled.scale, scaled.renormalise, scaled.group_top) == (2.827, False, 1)
    assert (whole.mixture.scale, whole.mixture.renormalise) == (1.0, True)
    greedy = parse_config({**fields, "topk_method": "greedy", "n_group": 8, "topk_group": 3})
    assert greedy.mixture == structs.replace(scaled, group_top=2)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"topk_method": "greedy"}, "topk_method: wanted 'noaux_tc', got 'greedy'"),
        ({"scoring_func": "softmax"}, "scoring_func: wanted 'sigmoid', got 'softmax'"),
        ({"n_group": 7}, r"n_group and topk_group: wanted equal groups .*\(384\).*got 7 and 1"),
        ({"n_group": 8, "topk_group": 9}, "got 8 and 9"),
        ({"n_group": 64}, r"num_experts_per_tok \(8\); got 64 and 1"),
        ({"kv_lora_rank": None}, "wanted the field 'kv_lora_rank'"),
        ({"num_experts_per_tok": 385}, r"wanted 1 to n_routed_experts \(384\)"),
    ],
)
def test_configurations_that_cannot_be_are_named(changes, told) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_config({**KIMI, **changes})
