"""config.json in the forms that checkpoints have it: old, new, nested, flat. Needs no torch."""

from __future__ import annotations

import pytest

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.config import Rope
from tokenwire.plugins.engines.cuda.models.families import parse_config

SIZES: dict[str, object] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}


def parse(architecture: str, **fields: object):
    return parse_config({**SIZES, "architectures": [architecture], **fields})


def test_old_and_new_names_of_rope_say_the_same() -> None:
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling["original_max_position_embeddings"] = 64
    new = parse(
        "LlamaForCausalLM",
        rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, **scaling},
    )
    old = parse("LlamaForCausalLM", rope_theta=5e5, rope_scaling={"rope_type": "llama3", **scaling})
    assert new == old
    assert new.ropes == (Rope(16, 5e5, "llama3", 8.0, 64, 1.0, 4.0),)
    oldest = parse("LlamaForCausalLM", rope_scaling={"type": "linear", "factor": 2.0})
    assert oldest.ropes == (Rope(16, 1e4, "linear", 2.0),)


def test_heads_are_counted_and_sized_where_the_file_does_not_say() -> None:
    config = parse("LlamaForCausalLM")
    assert (config.kv_heads, config.head_dim, config.attention_scale) == (4, 16, 0.25)
    assert (config.tie, config.dtype) == (False, "float32")
    assert parse("LlamaForCausalLM", torch_dtype="bfloat16").dtype == "bfloat16"
    assert parse("LlamaForCausalLM", eos_token_id=[3, 4]).eos_ids == (3, 4)


def test_a_window_is_of_those_layers_that_the_file_says() -> None:
    assert parse("MistralForCausalLM", sliding_window=None).windows == (0,) * 4
    assert parse("MistralForCausalLM", sliding_window=9).windows == (9,) * 4
    assert parse("Qwen2ForCausalLM", sliding_window=9).windows == (0,) * 4
    later = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 3}
    assert parse("Qwen2ForCausalLM", **later).windows == (0, 0, 0, 9)
    types = ["full_attention", "sliding_attention"] * 2
    listed = parse("Qwen3ForCausalLM", **later, layer_types=types)
    assert listed.windows == (0, 9, 0, 9)
    with pytest.raises(ConfigError, match=r"layer_types: wanted 4 times .*'linear_attention'"):
        parse("Qwen3ForCausalLM", **later, layer_types=["linear_attention"] * 4)


def test_gemma_s_text_is_found_in_a_multimodal_config() -> None:
    flat = parse("Gemma3ForCausalLM", dtype="bfloat16", eos_token_id=[1, 106])
    nested = parse_config(
        {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "text_config": dict(SIZES),
            "vision_config": {"hidden_size": 1152},
            "torch_dtype": "bfloat16",
            "eos_token_id": [1, 106],
        }
    )
    assert nested == flat
    assert flat.windows == (4096,) * 4
    assert flat.embed_scale == 8.0
    assert (flat.tie, flat.activation, flat.head_dim) == (True, "gelu_tanh", 256)


def test_gemma_s_two_ropes_are_told_in_two_ways() -> None:
    old = parse(
        "Gemma3ForCausalLM",
        sliding_window_pattern=2,
        rope_theta=1e6,
        rope_local_base_freq=2e4,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    )
    new = parse(
        "Gemma3ForCausalLM",
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
        },
    )
    assert new == old
    assert new.ropes == (Rope(256, 1e6, "linear", 8.0), Rope(256, 2e4))
    assert new.rope_of_layer == (1, 0, 1, 0)
    assert new.windows == (4096, 0, 4096, 0)


def test_what_a_text_model_cannot_do_is_refused() -> None:
    with pytest.raises(ConfigError, match="use_bidirectional_attention"):
        parse("Gemma3ForCausalLM", use_bidirectional_attention=True)
    with pytest.raises(ConfigError, match="wanted one of LlamaForCausalLM"):
        parse_config({})


def test_an_encoder_that_is_to_generate_is_told_of_its_task() -> None:
    with pytest.raises(ConfigError, match=r"encoder, which generates nothing: .*`task: embed`"):
        parse("BertModel")
