"""Configurations that no network can be made of are refused in words, whatever the family."""

from __future__ import annotations

import pytest

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.families import parse_config

COMMON = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "num_experts_per_tok": 2,
}
LATENT = {
    "q_lora_rank": 12,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 6,
    "v_head_dim": 7,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "moe_intermediate_size": 12,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
}
FAMILIES = {
    "Qwen3Moe": {
        "num_experts": 4,
        "moe_intermediate_size": 8,
        "decoder_sparse_step": 1,
        "head_dim": 8,
    },
    "Mixtral": {"num_local_experts": 4},
    "DeepseekV2": LATENT,
    "DeepseekV3": LATENT,
    "GptOss": {"num_local_experts": 4, "head_dim": 8, "sliding_window": 8},
}
MAY_BE_NONE = {"q_lora_rank", "n_shared_experts", "first_k_dense_replace"}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}


def fields(family: str, **changes: object) -> dict[str, object]:
    named = {"architectures": [f"{family}ForCausalLM"]}
    return {**COMMON, **FAMILIES[family], **named, **changes}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("wrong", [0, -1])
def test_sizes_below_one_are_named(family: str, wrong: int) -> None:
    assert parse_config(fields(family)).layers == 2
    for name in (*COMMON, *FAMILIES[family]):
        if wrong == 0 and name in MAY_BE_NONE:
            continue
        with pytest.raises(ConfigError, match=rf"{name}: wanted|num_experts_per_tok: .*{name}"):
            parse_config(fields(family, **{name: wrong}))


@pytest.mark.parametrize(
    ("family", "changes", "words"),
    [
        ("Mixtral", {"num_key_value_heads": 3}, r"_value_heads: wanted a divisor of .*got 3"),
        ("Mixtral", {"sliding_window": -1}, "sliding_window: wanted"),
        ("Qwen3Moe", {"head_dim": 7}, "wanted an even number of rotated dimensions.*got 7"),
        ("DeepseekV3", {"qk_rope_head_dim": 5}, "wanted an even number of rotated .*got 5"),
        ("Mixtral", {"rope_theta": 0}, "rope_theta: wanted more than 0"),
        ("GptOss", {"rope_scaling": {**YARN, "factor": 0}}, "factor of the rope: wanted"),
        (
            "GptOss",
            {"rope_scaling": {**YARN, "original_max_position_embeddings": 0}},
            "original_max_position_embeddings: wanted at least 1",
        ),
        ("Mixtral", {"rms_norm_eps": -1e-6}, "rms_norm_eps: wanted 0 or more"),
        (
            "Qwen3Moe",
            {"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 128]}},
            "weight_block_size: wanted two numbers above 0",
        ),
    ],
)
def test_numbers_that_do_not_fit_are_named(
    family: str, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_config(fields(family, **changes))


def test_a_window_that_is_left_out_is_the_family_s() -> None:
    left_out = {**fields("GptOss"), "sliding_window": None}
    assert parse_config(left_out).windows == (128, 0)
