"""What is asked of shared experts has an effect, or is refused."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tokenwire.core.errors import ConfigError
from tokenwire.core.settings import Place, convert
from tokenwire.plugins.engines.cuda.models.families import parse_config
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sharing import want_shared

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 128,
}
DENSE = {**SIZES, "architectures": ["LlamaForCausalLM"]}
MIXED = {
    **SIZES,
    "architectures": ["Qwen3MoeForCausalLM"],
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}


def look(model: dict[str, Any], **fields: Any) -> None:
    settings = convert(CudaSettings, fields, Place("test", "engine"))
    want_shared(parse_config(model), settings, settings.layout)


@pytest.mark.parametrize(
    ("model", "fields", "said"),
    [
        (DENSE, {"redundant_experts": 2, "parallel_strategy": "DEP_2"}, "llama has no experts"),
        (DENSE, {"rebalance": {}}, "rebalance: llama has no experts: leave it out"),
        (
            MIXED,
            {"redundant_experts": 2},
            "all experts are on every rank of TP_1: leave it out, or",
        ),
        (MIXED, {"rebalance": {}, "parallel_strategy": "TP_2"}, "on every rank of TP_2"),
        (
            MIXED,
            {"redundant_experts": 8, "parallel_strategy": "DEP_2"},
            "wanted at most 6, which is each of 6 experts on each of 2 parts; got 8",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(model, fields, said) -> None:
    with pytest.raises(ConfigError, match=said):
        look(model, **fields)


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (DENSE, {}),
        (DENSE, {"parallel_strategy": "TP_2"}),
        (MIXED, {"parallel_strategy": "DEP_2", "redundant_experts": 6, "rebalance": {}}),
        (MIXED, {"parallel_strategy": "TP_2 x DEP_2", "redundant_experts": 2}),
    ],
)
def test_the_rest_is_not(model, fields, caplog) -> None:
    look(model, **fields)
    assert not caplog.records


def test_parts_of_a_dense_model_are_told_of_instances(caplog) -> None:
    with caplog.at_level(logging.WARNING):
        look(DENSE, parallel_strategy="DEP_4")
    assert "instance_count: 4" in caplog.text
