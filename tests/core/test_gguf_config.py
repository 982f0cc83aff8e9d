"""config.json out of a GGUF: sizes, windows, rope scaling, what ends an answer; broken headers."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest
from gguf import GGUFWriter, RopeScalingType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.gguf_vocabularies import sizes
from tests.core.test_fetch import gguf
from tokenwire.core.errors import ConfigError
from tokenwire.core.gguf_config import config_fields
from tokenwire.core.gguf_header import open_gguf


def config(path: Path, architecture: str, add=lambda writer: None) -> dict[str, object]:
    writer = GGUFWriter(str(path), architecture)
    sizes(writer)
    add(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    _, header = open_gguf(path)
    return config_fields(header.fields, [tensor.name for tensor in header.tensors], str(path))


@pytest.mark.parametrize(
    ("architecture", "window", "model_type", "kind", "seen"),
    [
        ("llama", None, "llama", "LlamaForCausalLM", None),
        ("llama", 32, "mistral", "MistralForCausalLM", 32),
        ("qwen2", 32, "qwen2", "Qwen2ForCausalLM", None),
        ("qwen3", None, "qwen3", "Qwen3ForCausalLM", None),
        ("gemma3", 32, "gemma3_text", "Gemma3ForCausalLM", 32),
    ],
)
def test_the_family_and_its_window(tmp_path, architecture, window, model_type, kind, seen) -> None:
    def add(writer: GGUFWriter) -> None:
        if window is not None:
            writer.add_sliding_window(window)

    found = config(tmp_path / "a.gguf", architecture, add)
    assert (found["model_type"], found["architectures"]) == (model_type, [kind])
    assert found.get("sliding_window") == seen
    assert (found["max_position_embeddings"], found["num_key_value_heads"]) == (128, 4)
    assert found["head_dim"] == 2


def test_rope_scaling_is_said_as_config_json_says_it(tmp_path) -> None:
    def linear(writer: GGUFWriter) -> None:
        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(8.0)

    def yarn(writer: GGUFWriter) -> None:
        writer.add_rope_scaling_type(RopeScalingType.YARN)
        writer.add_rope_scaling_factor(4.0)
        writer.add_rope_scaling_orig_ctx_len(32)
        writer.add_rope_scaling_attn_factors(0.5)

    found = config(tmp_path / "a.gguf", "gemma3", linear)
    assert found["rope_scaling"] == {"rope_type": "linear", "factor": 8.0}
    scaling = config(tmp_path / "b.gguf", "qwen3", yarn)["rope_scaling"]
    assert scaling == {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "attention_factor": 0.5 * (1 + 0.1 * log(4.0)),
    }


def test_the_ends_of_text_and_of_turns_end_answers(tmp_path) -> None:
    def add(writer: GGUFWriter) -> None:
        writer.add_eos_token_id(1)
        writer.add_eot_token_id(106)

    assert config(tmp_path / "a.gguf", "gemma3", add)["eos_token_id"] == [1, 106]


def test_a_size_that_is_missing_is_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"w: wanted the key qwen3\.embedding_length"):
        config_fields({"general.architecture": "qwen3"}, [], "w")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_broken_header_is_refused_in_words_or_read(tmp_path, data) -> None:
    whole = bytearray(gguf(tmp_path / "a.gguf").read_bytes())
    for _ in range(3):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    path = tmp_path / "b.gguf"
    path.write_bytes(bytes(whole[:cut]))
    message = ""
    try:
        opened, _ = open_gguf(path, arrays=True)
        opened.close()
    except ConfigError as error:
        message = str(error)
    assert not message or "wanted a whole GGUF file" in message
